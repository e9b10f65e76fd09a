/* SPDX-License-Identifier: MIT */
/* Explains why a HIP runtime finds no device. */
#ifndef SS_CLI_NO_DEVICE_H
#define SS_CLI_NO_DEVICE_H

#include <stddef.h>

#define SS_NO_DEVICE_BYTES 512

/* Looks at the files of the kernel and at the environment, and puts one sentence without a full
 * stop into `out`. `root` stands in front of absolute paths; "" but in tests. `library`: the file
 * of the runtime that found no device; NULL: not known. Needs no runtime, and changes nothing. */
void ss_no_device_reason(const char *root, const char *library, char out[SS_NO_DEVICE_BYTES]);

#endif

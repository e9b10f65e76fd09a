/* SPDX-License-Identifier: MIT */
#ifndef SS_CLI_SIZE_TEXT_H
#define SS_CLI_SIZE_TEXT_H

#include <stdint.h>

/* Writes a number of bytes with a unit, as "4.4 GiB" (at most 9 characters, so that columns fit),
 * and returns out. */
const char *ss_size_text(uint64_t bytes, char out[16]);

#endif

/* SPDX-License-Identifier: MIT */
/* The output of `somashim dump` for a running process. */
#ifndef SS_SHIM_DUMP_H
#define SS_SHIM_DUMP_H

#include "live/page.h"

/* Writes the identity of the process, the statistics and all live blocks to `fd`, and closes `fd`.
 * Returns 0 or an errno value. Waits for locks of pools; no lock of ours held. */
int ss_dump_write(int fd, const struct ss_live_identity *who);

#endif

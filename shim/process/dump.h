/* SPDX-License-Identifier: MIT */
/* What `somashim dump` prints of a running process. */
#ifndef SS_SHIM_DUMP_H
#define SS_SHIM_DUMP_H

#include "live/page.h"

/* Writes who the process is, the statistics and all live blocks to `fd`, and closes it. Returns 0
 * or an errno value. Waits for locks of pools; no lock of ours held. */
int ss_dump_write(int fd, const struct ss_live_identity *who);

#endif

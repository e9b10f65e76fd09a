/* SPDX-License-Identifier: MIT */
/*
 * The tool `poison`: freed blocks are filled in the order of the stream that frees, and held back
 * for as long as a budget has room for them. One that comes back changed was written after its
 * free. (ss_check_keep() and its like are in checker.h.)
 */
#ifndef SS_SHIM_QUARANTINE_H
#define SS_SHIM_QUARANTINE_H

#include <stdbool.h>

#include "core/core.h"

/* All that is held goes back; blocks of hipFree unread, unless the call may wait. True: something
 * did. */
bool ss_quarantine_empty(bool may_wait);
/* Before a stream ends: what was freed on it goes back. */
void ss_quarantine_stream_ends(struct ss_timeline *tl);

#endif

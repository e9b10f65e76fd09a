/* SPDX-License-Identifier: MIT */
/*
 * The tool `poison`: freed blocks are filled in the order of the stream that frees, and held as
 * long as a budget has room for them. A block with changed bytes was written after its free.
 * (ss_check_keep() and its like are in checker.h.)
 */
#ifndef SS_SHIM_QUARANTINE_H
#define SS_SHIM_QUARANTINE_H

#include <stdbool.h>

#include "core/core.h"

/* Returns all held blocks to their pools; blocks of hipFree unread, unless the call may wait. True:
 * at least one returned. */
bool ss_quarantine_empty(bool may_wait);
/* Before a stream ends: returns the blocks that were freed on it. */
void ss_quarantine_stream_ends(struct ss_timeline *tl);

#endif

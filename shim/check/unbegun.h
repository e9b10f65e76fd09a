/* SPDX-License-Identifier: MIT */
/*
 * Which copies to pinned memory have not begun? The host may learn from such a copy how far its
 * stream is, but not before the copy has begun. A fence in front of it, which the device has not
 * reached, proves that. Any thread.
 */
#ifndef SS_SHIM_CHECK_UNBEGUN_H
#define SS_SHIM_CHECK_UNBEGUN_H

#include "shim/check/inside.h"

#define SS_UNBEGUN_ROOM 9 /* streams that are answered for, and the end of the list */

/* A copy to pinned memory is about to be enqueued. Call it before ss_check_use() of its source. */
void ss_unbegun_copy(struct ss_timeline *tl);
/* Lists the work that has not begun now, for ss_check_free(). */
void ss_unbegun(struct ss_check_unbegun list[SS_UNBEGUN_ROOM]);
/* The stream is about to be destroyed. */
void ss_unbegun_stream_ends(const struct ss_timeline *tl);

#endif

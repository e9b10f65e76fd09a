/* SPDX-License-Identifier: MIT */
/*
 * The live page of this process, from the writer's side. Needs libc only. At most one thread at a
 * time may call these functions; the caller ensures that.
 */
#ifndef SS_LIVE_WRITER_H
#define SS_LIVE_WRITER_H

#include <stdbool.h>

#include "live/page.h"

/* Makes the page of this process in `directory`, and removes stale pages there. No descriptor stays
 * open. `who` is copied. NULL with errno set: there is no page. */
struct ss_live_page *ss_live_create(const char *directory, const struct ss_live_identity *who);
/* Shows `figures` from now on. */
void ss_live_publish(struct ss_live_page *page, const struct ss_live_figures *figures);
/* Opens the file for the answer to a dump request. -1 with errno set. */
int ss_live_dump_open(void);
/* In a forked child, whose mapping would keep the lock on the page of its parent. No other thread
 * may use the page. */
void ss_live_leave(struct ss_live_page *page);
/* Removes the file of the page. The page's memory stays mapped, because other threads may read
 * it. */
void ss_live_remove(void);

#endif

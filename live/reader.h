/* SPDX-License-Identifier: MIT */
/*
 * Live pages of other processes, from the reader's side. Pages are read into memory of the reader
 * and never mapped, so a file that shrinks harms nobody. The copy is checked: afterwards counts are
 * within their arrays, and strings end and hold printable ASCII only.
 */
#ifndef SS_LIVE_READER_H
#define SS_LIVE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "live/page.h"

enum ss_live_result {
	SS_LIVE_OK,
	SS_LIVE_GONE,  /* the file cannot be read, or is not a page */
	SS_LIVE_NEWER, /* the page has a version that this reader does not know */
	SS_LIVE_BUSY,  /* the page was being written for too long */
	SS_LIVE_LEFT,  /* the process runs another program by now (exec) */
};

/* Checks and repairs `size` bytes of a page in memory. */
enum ss_live_result ss_live_check(struct ss_live_page *page, size_t size);
/* Opens the file `path` if it may be a page: a regular file of the right size that belongs to the
 * caller, or to anybody if the caller is root. `flags` as for open(). -1 with errno set. */
int ss_live_open(const char *path, int flags);
/* Reads the page in the file `path`. */
enum ss_live_result ss_live_read(const char *path, struct ss_live_page *out);
/* As ss_live_read(), and SS_LIVE_LEFT if the process `pid` runs another program. */
enum ss_live_result ss_live_read_process(const char *path, uint32_t pid, struct ss_live_page *out);
/* Seconds since the figures were those of the process; 0 if the page's times are impossible. */
double ss_live_age(const struct ss_live_page *page);
/* Asks the process for new figures, or for a dump. The next call of HIP answers, after which
 * refresh_done or dump_done is `value`. False with errno set: the page cannot be written. */
bool ss_live_ask_refresh(const char *path, uint32_t value);
bool ss_live_ask_dump(const char *path, uint32_t value);

#endif

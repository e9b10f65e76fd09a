/* SPDX-License-Identifier: MIT */
/*
 * Requests to a process to sleep or to wake, from the client's side. The page is mapped for its
 * futexes only: the kernel reads those, so a file that shrinks harms nobody. The rest is read and
 * written as a file.
 */
#ifndef SS_LIVE_SLEEP_REQUEST_H
#define SS_LIVE_SLEEP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "live/page.h"

struct ss_live_sleeper {
	int fd;
	struct ss_live_page *mapped; /* for futexes */
	uint32_t request;            /* that was made last */
};

/* Opens the page in the file `path`. False with errno set. */
bool ss_live_sleeper_open(struct ss_live_sleeper *s, const char *path);
void ss_live_sleeper_close(struct ss_live_sleeper *s);
/* Makes a request. `store`: a directory, "" = none. False with errno set; ENAMETOOLONG: `store` is
 * too long. */
bool ss_live_sleeper_ask(struct ss_live_sleeper *s, enum ss_live_sleep_command command,
			 const char *store, uint32_t patience_ms);
/* Waits for at most `ms` until a request is answered, or something else happens. */
void ss_live_sleeper_wait(const struct ss_live_sleeper *s, uint32_t done, unsigned ms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The places and names of live pages, and the detection of stale pages.
 *
 * A page is the file somashim-NAMESPACE-PID-START in the directory of SOMASHIM_LIVE: the inode
 * number of the pid namespace, the process id in it, and the start time of the process in clock
 * ticks after boot. So the name of a page and /proc alone show whether the page is stale, and the
 * contents of a file cannot cause the removal of another file. A process of another pid namespace
 * (a container) is not visible, and its namespace may have ended. But its page is locked (flock) as
 * long as the process has the page mapped.
 */
#ifndef SS_LIVE_DIRECTORY_H
#define SS_LIVE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_LIVE_DIRECTORY "/dev/shm" /* the default; memory, and the same for all sessions */
#define SS_LIVE_PATH 1024            /* bytes of the longest path of a page */

struct ss_live_name {
	uint64_t space; /* pid namespace */
	uint32_t pid;
	uint64_t start;
};

/* "off", "no", "false" and "0" as the directory mean that there are no pages. */
bool ss_live_enabled(const char *directory);
/* The name of the calling process's page. False: /proc does not give it. */
bool ss_live_own_name(struct ss_live_name *out);
/* The name of the page of a process in the caller's pid namespace, whether it has one or not.
 * False: there is no such process. */
bool ss_live_name_of(uint32_t pid, struct ss_live_name *out);
/* False: the path is too long. */
bool ss_live_path(const char *directory, const struct ss_live_name *name, char out[SS_LIVE_PATH]);
/* False: this is not the name of a page. */
bool ss_live_parse_name(const char *text, struct ss_live_name *out);
/* The path of the file with the answer for `dump`. False: the path is too long. */
bool ss_live_dump_path(const char *page, char out[SS_LIVE_PATH]);

enum ss_live_process {
	SS_LIVE_RUNS,
	SS_LIVE_ELSEWHERE, /* in another pid namespace: /proc does not show whether it runs */
	SS_LIVE_ENDED,
};
/* `space`: pid namespace of the caller (ss_live_own_name). */
enum ss_live_process ss_live_look(const struct ss_live_name *name, uint64_t space);

/* Removes the pages of this user whose processes have ended, with their dumps. Any process may call
 * it at any time. */
void ss_live_clean(const char *directory);

/* Calls `each` for every page in `directory` that may be read: a regular file of the right size
 * that belongs to the caller, or to any user if the caller is root. Pages whose process has ended
 * are removed and not shown. False with errno set: the directory cannot be read. */
typedef void ss_live_each(const char *path, const struct ss_live_name *name,
			  enum ss_live_process state, void *arg);
bool ss_live_scan(const char *directory, ss_live_each *each, void *arg);

#endif

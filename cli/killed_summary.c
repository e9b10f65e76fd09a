/* SPDX-License-Identifier: MIT */
/*
 * A killed process writes no statistics. But its live page stays until somebody removes it, so
 * `somashim run` can say what the process held a moment before.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/killed_summary.h"
#include "cli/live_directory.h"
#include "cli/plural.h"
#include "cli/size_text.h"
#include "live/directory.h"
#include "live/reader.h"

static void print(const struct ss_live_page *page)
{
	const struct ss_live_figures *f = &page->figures;
	struct ss_live_counts sum = {0};
	uint64_t used = 0, reserved = 0;
	char used_text[16], reserved_text[16];

	for (uint32_t i = 0; i < f->device_count; i++) {
		used += f->device[i].used;
		reserved += f->device[i].reserved;
		sum.allocations += f->device[i].ended.allocations;
		sum.frees += f->device[i].ended.frees;
	}
	for (uint32_t i = 0; i < f->pool_count; i++) {
		sum.allocations += f->pool[i].counts.allocations;
		sum.frees += f->pool[i].counts.frees;
	}
	fprintf(stderr,
		"somashim: process %" PRIu32
		" was killed. %.1f s before, %s were in use and %s held, "
		"after %" PRIu64 " %s, %" PRIu64 " %s and %" PRIu64 " driver %s.\n",
		page->who.pid, ss_live_age(page), ss_size_text(used, used_text),
		ss_size_text(reserved, reserved_text), sum.allocations,
		ss_plural(sum.allocations, "allocation", "allocations"), sum.frees,
		ss_plural(sum.frees, "free", "frees"), f->driver_calls,
		ss_plural(f->driver_calls, "call", "calls"));
}

/* This does not use ss_live_scan(), which removes the pages of processes that have ended. */
void ss_killed_summary(pid_t pid)
{
	const char *directory = ss_live_directory();
	struct ss_live_name own, name;
	static struct ss_live_page page; /* too large for the stack */
	char path[SS_LIVE_PATH];
	struct dirent *e;
	DIR *d;

	if (!ss_live_own_name(&own) || !(d = opendir(directory)))
		return;
	while ((e = readdir(d))) {
		if (ss_live_parse_name(e->d_name, &name) && name.pid == (uint32_t)pid &&
		    name.space == own.space && ss_live_path(directory, &name, path) &&
		    ss_live_read(path, &page) == SS_LIVE_OK) {
			print(&page);
			break;
		}
	}
	closedir(d);
}

/* SPDX-License-Identifier: MIT */
/*
 * A killed process writes no statistics. But its live page stays until somebody removes it, so
 * `somashim run` can say what the process held a moment before.
 */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/killed_summary.h"
#include "cli/live_directory.h"
#include "cli/size_text.h"
#include "live/directory.h"
#include "live/reader.h"

static void print(const struct ss_live_page *page) {
	const struct ss_live_figures *f = &page->figures;
	struct ss_live_counts sum = { 0 };
	uint64_t used = 0, reserved = 0;
	char used_text[16], reserved_text[16];
	struct timespec now;

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
	clock_gettime(CLOCK_BOOTTIME, &now);
	fprintf(stderr, "somashim: process %" PRIu32 " was killed. %.1f s before, %s were in use and %s held, "
		"after %" PRIu64 " allocations, %" PRIu64 " frees and %" PRIu64 " driver calls.\n",
		page->who.pid, (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)f->updated_ns / 1e9,
		ss_size_text(used, used_text), ss_size_text(reserved, reserved_text), sum.allocations,
		sum.frees, f->driver_calls);
}

void ss_killed_summary(pid_t pid) {
	struct ss_live_name own, name;
	static struct ss_live_page page; /* too large for the stack */
	char pattern[SS_LIVE_PATH];
	glob_t found;

	if (!ss_live_own_name(&own) || snprintf(pattern, sizeof(pattern), "%s/somashim-*-%ld-*",
			ss_live_directory(), (long)pid) >= (int)sizeof(pattern) ||
	    glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];
		if (ss_live_parse_name(strrchr(path, '/') + 1, &name) && name.space == own.space &&
		    ss_live_read(path, &page) == SS_LIVE_OK) {
			print(&page);
			break;
		}
	}
	globfree(&found);
}

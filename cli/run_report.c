/* SPDX-License-Identifier: MIT */
/* Creates the shared page that SOMASHIM_REPORT names. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/temporary_file.h"
#include "cli/run_report.h"
#include "core/base/mapped_file.h"
#include "trace/cut_guard.h"

static char path[PATH_MAX];
static struct ss_report *outer; /* the page of a `somashim` that has started this one, or NULL */

static void open_outer(void)
{
	const char *name = getenv("SOMASHIM_REPORT");
	int fd = name && *name ? open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size == SS_REPORT_BYTES)
		outer = ss_file_map(fd, 0, SS_REPORT_BYTES);
	if (outer)
		ss_cut_guard_mapping(outer, SS_REPORT_BYTES);
	if (outer && outer->magic != SS_REPORT_MAGIC) {
		ss_cut_guard_end(outer);
		munmap(outer, SS_REPORT_BYTES);
		outer = NULL;
	}
	close(fd);
}

struct ss_report *ss_run_report_open(char *err, size_t err_size)
{
	open_outer();
	int fd = ss_temporary_file("somashim-run", SS_REPORT_BYTES, path);

	if (fd < 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		return NULL;
	}
	struct ss_report *r = ss_file_map(fd, 0, SS_REPORT_BYTES);
	int error = errno;
	close(fd);
	if (!r || setenv("SOMASHIM_REPORT", path, 1) != 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(r ? errno : error));
		unlink(path);
		return NULL;
	}
	ss_cut_guard_mapping(r, SS_REPORT_BYTES);
	r->magic = SS_REPORT_MAGIC;
	return r;
}

static void raise_to(_Atomic uint64_t *high, uint64_t value)
{
	uint64_t old = atomic_load(high);

	while (old < value && !atomic_compare_exchange_weak(high, &old, value)) {}
}

bool ss_run_report_close(const struct ss_report *r, char *err, size_t err_size)
{
	unlink(path);
	if (r->magic != SS_REPORT_MAGIC) {
		snprintf(err, err_size,
			 "%s was cut or overwritten: what the program did is not known", path);
		return false;
	}
	if (!outer)
		return true;
	atomic_fetch_add(&outer->loaded, r->loaded);
	atomic_fetch_add(&outer->used, r->used);
	atomic_fetch_add(&outer->no_device, r->no_device);
	atomic_fetch_add(&outer->disabled, r->disabled);
	atomic_fetch_add(&outer->unused, r->unused);
	atomic_fetch_add(&outer->bypassed, r->bypassed);
	atomic_fetch_add(&outer->unwritten, r->unwritten);
	for (int i = 0; i < SS_ROUTES; i++)
		atomic_fetch_add(&outer->route[i], r->route[i]);
	atomic_fetch_add(&outer->served_calls, r->served_calls);
	atomic_fetch_add(&outer->driver_calls, r->driver_calls);
	atomic_fetch_add(&outer->memory_calls, r->memory_calls);
	atomic_fetch_add(&outer->allocations, r->allocations);
	atomic_fetch_add(&outer->misses, r->misses);
	atomic_fetch_add(&outer->taken_again, r->taken_again);
	atomic_fetch_add(&outer->decayed_bytes, r->decayed_bytes);
	atomic_fetch_add(&outer->excess_bytes, r->excess_bytes);
	raise_to(&outer->used_high, r->used_high);
	raise_to(&outer->reserved_high, r->reserved_high);
	raise_to(&outer->rest_high, r->rest_high);
	return true;
}

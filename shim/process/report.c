/* SPDX-License-Identifier: MIT */
/*
 * Maps the page in which this process counts what it does for `somashim run` (report.h). The
 * constructor maps it, because the program may close all
 * files or change its root before it calls HIP.
 *
 * Locks: none.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "core/statistics.h"
#include "driver/rocm/copies.h"
#include "shim/process/kernel_sample.h"
#include "shim/process/report.h"
#include "trace/cut_guard.h"

union ss_report_page somashim_report __attribute__((aligned(SS_REPORT_BYTES)));

/* Maps the file over the variable, and adds the counts from the time in which the loader bound the
 * program. */
static void map_over(int fd)
{
	struct ss_report before = somashim_report.r, *r = &somashim_report.r;
	uint32_t magic = 0;

	if (pread(fd, &magic, sizeof(magic), offsetof(struct ss_report, magic)) != sizeof(magic) ||
	    magic != SS_REPORT_MAGIC ||
	    mmap(r, SS_REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
		return;
	ss_cut_guard_mapping(r, SS_REPORT_BYTES);
	for (int i = 0; i < SS_ROUTES; i++)
		atomic_fetch_add(&r->route[i], before.route[i]);
	ss_report_add(&r->loaded);
}

__attribute__((constructor)) static void open_report(void)
{
	const char *path = secure_getenv("SOMASHIM_REPORT");
	struct stat st;
	int fd;

	/* The copy in front of us has mapped the file, and may share the variable with us. */
	if (!path || !*path || ss_copy_aside())
		return;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size == SS_REPORT_BYTES)
		map_over(fd);
	close(fd);
}

void ss_report_step(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(somashim_report.r.step, sizeof(somashim_report.r.step), fmt, args);
	va_end(args);
	ss_report_add(&somashim_report.r.progress);
}

static void raise_to(_Atomic uint64_t *high, uint64_t value)
{
	uint64_t old = atomic_load(high);

	while (old < value && !atomic_compare_exchange_weak(high, &old, value))
		;
}

void ss_report_totals(struct ss_core *core)
{
	struct ss_report *r = &somashim_report.r;
	struct ss_pool_stats s;

	if (r->magic != SS_REPORT_MAGIC)
		return; /* no process reads the file */
	ss_stats_total(core, &s);
	atomic_fetch_add(&r->served_calls, s.allocations + s.frees);
	atomic_fetch_add(&r->driver_calls, s.driver_calls);
	atomic_fetch_add(&r->memory_calls, s.memory_calls);
	atomic_fetch_add(&r->allocations, s.allocations);
	atomic_fetch_add(&r->misses, s.misses);
	atomic_fetch_add(&r->taken_again, s.taken_again);
	atomic_fetch_add(&r->decayed_bytes, s.decayed_bytes);
	atomic_fetch_add(&r->excess_bytes, s.excess_bytes);
	raise_to(&r->used_high, s.used_high);
	raise_to(&r->reserved_high, s.reserved_high);
	raise_to(&r->rest_high, ss_kernel_rest_high());
}

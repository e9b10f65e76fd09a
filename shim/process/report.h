/* SPDX-License-Identifier: MIT */
/*
 * The facts that `somashim run` and `somashim doctor` get about the program: one page of a file
 * that every process of the run maps, so a killed process loses nothing. SOMASHIM_REPORT names the
 * file.
 */
#ifndef SS_SHIM_REPORT_H
#define SS_SHIM_REPORT_H

#include <stdatomic.h>
#include <stdint.h>

#define SS_REPORT_MAGIC 0x53535234u /* "SSR4" */

struct ss_core;

/* The ways by which references reach our entries. */
enum ss_route {
	SS_ROUTE_LINK,  /* bound by name; counted by the auditor */
	SS_ROUTE_PAST,  /* would have bound to the runtime; the auditor redirected it */
	SS_ROUTE_DLSYM, /* by dlsym() or dlvsym() */
	SS_ROUTE_PROC,  /* by hipGetProcAddress and its kin */
	SS_ROUTE_TABLE, /* our functions are in the runtime's own table */
	SS_ROUTES,
};

enum ss_test {
	SS_TEST_OFF,    /* no process makes self-tests */
	SS_TEST_READY,  /* no process has asked */
	SS_TEST_ASKING, /* a process writes the runtime to try */
	SS_TEST_WANTED,
	SS_TEST_DONE,
};

struct ss_report {
	uint32_t magic;
	/* Numbers of processes: that loaded the shim; that the shim served; in which the shim found
	 * no device; in which SOMASHIM_DISABLE was set; that loaded HIP and never called us; with a
	 * bypass. */
	atomic_uint loaded, used, no_device, disabled, unused, bypassed;
	/* Processes that could not write the checker's findings into SOMASHIM_CHECK_FILE. */
	atomic_uint unwritten;
	atomic_uint route[SS_ROUTES];
	/* Sums over the processes that have ended: allocations and frees that the pools served,
	 * each of which is a call into the runtime natively; the calls into the runtime that the
	 * pools made for them; and those among these calls that allocate, release, map or open
	 * memory. */
	_Atomic uint64_t served_calls, driver_calls, memory_calls;
	/* Allocations, allocations that were no hit, and bytes as in struct ss_pool_stats. */
	_Atomic uint64_t allocations, misses, taken_again, decayed_bytes, excess_bytes;
	/* Bytes, of the process with the most. */
	_Atomic uint64_t used_high, reserved_high;
	/* bytes of devices that pools and counted calls do not explain, as the kernel counts
	 * them */
	_Atomic uint64_t rest_high;
	/* The self-test: `progress` grows with every call that returned; the text names the running
	 * step. The text is written by one thread and may be torn while it changes. */
	atomic_uint progress;
	char step[96];
	/* The self-test that `somashim run` makes on request: its state, which is a futex; the
	 * process that makes the test; the runtime that the test is to try. */
	_Atomic uint32_t test; /* enum ss_test */
	uint32_t tester;
	char runtime[1024];
};

#define SS_REPORT_BYTES 4096 /* one page: the file is mapped over the variable */

union ss_report_page {
	struct ss_report r;
	char bytes[SS_REPORT_BYTES];
};

/* The auditor looks the symbol up by name and counts in it from the first binding on. */
extern union ss_report_page somashim_report __attribute__((visibility("default")));

static inline void ss_report_add(atomic_uint *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* The self-test begins a step. */
void ss_report_step(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Adds the totals of this process, at its end. Calls no driver. */
void ss_report_totals(struct ss_core *core);

#endif

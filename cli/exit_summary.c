/* SPDX-License-Identifier: MIT */
/*
 * Prints the summary of `somashim run` when the program has ended: one sentence on what the pools
 * did, and one on how the program's calls reached them, or why they did not.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exit_summary.h"
#include "cli/no_device.h"
#include "cli/plural.h"
#include "cli/run_loader.h"
#include "cli/run_preload.h"
#include "cli/run_program.h"
#include "cli/size_text.h"
#include "config/values.h"
#include "shim/process/report.h"
#include "trace/process_job.h"

#define LOADER_FAILED 127 /* exit status of the dynamic loader, if it cannot start a program */

/* ---- jobs --------------------------------------------------------------- */

/* -1: not in a job. */
static int find_rank(int *local_rank)
{
	struct ss_process_job job;

	if (!ss_process_job(&job)) {
		*local_rank = -1;
		return -1;
	}
	*local_rank = ss_process_number(job.local_rank);
	return ss_process_number(job.rank);
}

int ss_job_rank(void)
{
	int local_rank, rank = find_rank(&local_rank);

	return rank < 0 ? 0 : rank;
}

/* "rank 3 (local rank 1 on HOST): ", or nothing outside of a job. */
static void print_rank(void)
{
	char host[64] = "?";
	int local_rank, rank = find_rank(&local_rank);

	if (rank < 0)
		return;
	gethostname(host, sizeof(host) - 1);
	if (local_rank >= 0)
		fprintf(stderr, "rank %d (local rank %d on %s): ", rank, local_rank, host);
	else
		fprintf(stderr, "rank %d (on %s): ", rank, host);
}

/* ---- profilers ---------------------------------------------------------- */

/* Profilers start the program with an LD_PRELOAD of their own, and some versions drop its earlier
 * contents (rocm-systems#3989). A profiler is known by the name of the program that we start, by a
 * variable, or by its library in LD_PRELOAD. */
static const struct {
	const char *name;
	const char *programs[2]; /* how the program's name begins; NULL = no second name */
	const char *variable;    /* how one of its variables begins, or NULL */
	const char *library;
} profilers[] = {
	{"rocprof-compute", {"rocprof-compute", "omniperf"}, NULL, "librocprofiler-compute"},
	{"rocprof-sys", {"rocprof-sys", NULL}, "ROCPROFSYS_", "librocprof-sys"},
	{"omnitrace", {"omnitrace", NULL}, "OMNITRACE_", "libomnitrace"},
};

static bool begins_with(const char *text, const char *prefix)
{
	return prefix && strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool environment_has(const char *prefix)
{
	for (char **e = environ; e && *e; e++)
		if (begins_with(*e, prefix))
			return true;
	return false;
}

/* NULL if there is none. */
static const char *find_profiler(const char *program)
{
	const char *base = strrchr(program, '/'), *preload = getenv("LD_PRELOAD");

	base = base ? base + 1 : program;
	for (size_t i = 0; i < sizeof(profilers) / sizeof(profilers[0]); i++)
		if (begins_with(base, profilers[i].programs[0]) ||
		    begins_with(base, profilers[i].programs[1]) ||
		    environment_has(profilers[i].variable) ||
		    (preload && strstr(preload, profilers[i].library)))
			return profilers[i].name;
	return NULL;
}

/* ---- the pools ---------------------------------------------------------- */

/* 3430 as "3,430". */
static const char *grouped(uint64_t n, char out[32])
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), to = 0;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			out[to++] = ',';
		out[to++] = digits[i];
	}
	out[to] = '\0';
	return out;
}

static void print_pools(const struct ss_report *r)
{
	char calls[32], driver[32], memory[32], used[16], held[16], rest[16];

	if (!r->served_calls)
		return; /* nothing was allocated, or every process was killed */
	fprintf(stderr, "somashim: ");
	print_rank();
	fprintf(stderr,
		"%s memory %s became %s %s of the runtime (%s for device memory); %s%s in use at "
		"most, %s held%s%s.\n",
		grouped(r->served_calls, calls), ss_plural(r->served_calls, "call", "calls"),
		grouped(r->driver_calls, driver), ss_plural(r->driver_calls, "call", "calls"),
		grouped(r->memory_calls, memory), r->used > 1 ? "in the largest process " : "",
		ss_size_text(r->used_high, used), ss_size_text(r->reserved_high, held),
		r->rest_high ? ", and outside of the pools " : "",
		r->rest_high ? ss_size_text(r->rest_high, rest) : "");
}

#define GOOD_HITS 90 /* percent: from here on an option would help little */

/* Names the option that would have kept idle memory which was released, and taken again. It does so
 * only if that memory was at least as much as the pools held at most, and if many allocations had
 * to take memory. */
static void print_advice(const struct ss_report *r)
{
	uint64_t hits = r->allocations - r->misses;
	bool aged = r->decayed_bytes >= r->excess_bytes;
	uint64_t idle = aged ? r->decayed_bytes : r->excess_bytes;
	char again[16];

	if (!r->allocations || 100 * hits >= GOOD_HITS * r->allocations ||
	    r->taken_again < r->reserved_high || 2 * idle < r->taken_again)
		return;
	fprintf(stderr,
		"somashim: hits %.1f %%: %s were released while they were idle, and taken again. "
		"%s\n",
		100.0 * (double)hits / (double)r->allocations, ss_size_text(r->taken_again, again),
		aged ? "SOMASHIM_RELEASE_THRESHOLD=max keeps idle memory; SOMASHIM_DECAY_MS keeps "
		       "it for that long, if it is longer than the pauses of the program." :
		       "A larger SOMASHIM_RELEASE_THRESHOLD, or max, keeps idle memory, unless the "
		       "program sets a threshold itself (hipMemPoolAttrReleaseThreshold).");
}

/* ---- the verdict -------------------------------------------------------- */

static void print_routes(const struct ss_report *r)
{
	static const char *const routes[SS_ROUTES] = {
		[SS_ROUTE_LINK] = "bound by name",
		[SS_ROUTE_PAST] = "bound past the preload, turned round by the auditor",
		[SS_ROUTE_DLSYM] = "by dlsym()",
		[SS_ROUTE_PROC] = "by hipGetProcAddress()",
		[SS_ROUTE_TABLE] = "by the runtime's API table",
	};
	const char *separator = "; references: ";

	fprintf(stderr, "used in %u %s", r->used, ss_plural(r->used, "process", "processes"));
	for (int i = 0; i < SS_ROUTES; i++) {
		if (r->route[i]) {
			fprintf(stderr, "%s%u %s", separator, r->route[i], routes[i]);
			separator = ", ";
		}
	}
	if (r->bypassed)
		fprintf(stderr, "; in %u, calls went past it", r->bypassed);
}

/* `status`: of waitpid(). */
static void print_reason(const struct ss_report *r, const char *program, int status)
{
	const char *profiler = find_profiler(program);
	char reason[PATH_MAX * 2 + 64];

	if (r->disabled) {
		fprintf(stderr, "not used: SOMASHIM_DISABLE is set");
		return;
	}
	if (r->no_device) {
		char why[SS_NO_DEVICE_BYTES];
		ss_no_device_reason("", NULL, why);
		fprintf(stderr, "not used: no device was found: %s", why);
		return;
	}
	if (r->unused) {
		fprintf(stderr,
			"NOT USED, although %s has HIP: no call of it came by (linked "
			"statically, in another link namespace, %sor none was made)",
			program,
			getenv("LD_AUDIT") ? "" : "with RTLD_DEEPBIND, which needs run --audit, ");
	} else if (r->loaded) {
		fprintf(stderr,
			"not used: no call into HIP of %s reached the library (none was "
			"made, or in another link namespace: dlmopen)",
			program);
	} else if (*ss_preload_library() &&
		   ss_loader_refusal(ss_preload_library(), reason, sizeof(reason))) {
		fprintf(stderr, "NOT LOADED: the dynamic loader refuses the library: %s", reason);
		return;
	} else if (ss_program_obstacle(program, reason, sizeof(reason))) {
		fprintf(stderr, "NOT LOADED: %s", reason);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == LOADER_FAILED) {
		fprintf(stderr,
			"NOT LOADED: the dynamic loader did not start %s, for the reason "
			"that it printed",
			program);
	} else {
		fprintf(stderr, "NOT LOADED: %s started without its LD_PRELOAD", program);
	}
	if (profiler) {
		fprintf(stderr,
			"; %s may have replaced LD_PRELOAD: start it first, as in "
			"%s ... -- somashim run PROGRAM",
			profiler, profiler);
	}
}

static void print_verdict(const struct ss_report *r, const char *program, int status)
{
	fprintf(stderr, "somashim: ");
	print_rank();
	if (r->used)
		print_routes(r);
	else
		print_reason(r, program, status);
	fprintf(stderr, "\n");
}

void ss_exit_summary(const struct ss_report *r, const char *program, int status)
{
	bool served = r->used && !r->bypassed;

	if (served && ss_job_rank() > 0)
		return;
	print_pools(r);
	print_advice(r);
	print_verdict(r, program, status);
}

void ss_exit_warning(const struct ss_report *r, const char *program, int status)
{
	if (!r->used || r->bypassed)
		print_verdict(r, program, status);
}

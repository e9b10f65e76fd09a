/* SPDX-License-Identifier: MIT */
/*
 * Statistics at the end of the process, after its process id, rank and host, as a table or as one
 * line of JSON. exit() writes the statistics, and so does _exit(), which workers of Python's
 * multiprocessing call. A process that is killed writes none.
 *
 * Locks: none but those of ss_stats().
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/rocm/rocm.h"
#include "shim/process/log.h"
#include "shim/process/service.h"
#include "shim/process/stats.h"
#include "trace/process_job.h"
#include "core/statistics.h"

/* The text is made in memory: _exit() may be called in a signal handler, in a thread that holds the
 * heap's lock or the lock of the log's stream. */
static char text[64 << 10], buffer[BUFSIZ];
static FILE *in_memory;
static pid_t owner;
static atomic_bool written;

/* -1: not in a job. */
static int find_rank(void)
{
	struct ss_process_job job;

	return ss_process_job(&job) ? ss_process_number(job.rank) : -1;
}

void ss_shim_stats_start(void)
{
	if (!ss_options.stats)
		return;
	in_memory = fmemopen(text, sizeof(text), "w");
	if (in_memory)
		setvbuf(in_memory, buffer, _IOFBF, sizeof(buffer));
	owner = getpid();
}

/* Writes a JSON string, without characters that are not printable ASCII. */
static void put_string(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": \"", name);
	for (const char *s = value; *s; s++) {
		if (*s < ' ' || *s > '~')
			continue;
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputs("\"", out);
}

struct list {
	FILE *out;
	bool any;
};

static void put_pool(const struct ss_pool_stats *s, void *arg)
{
	struct list *list = arg;
	FILE *out = list->out;

	fprintf(out, "%s{\"device\": %d, ", list->any ? ", " : "", s->device);
	list->any = true;
	put_string(out, "pci", ss_rocm_pci(s->device));
	fputs(", ", out);
	put_string(out, "pool", s->kind);
	fputs(", ", out);
	if (s->backing)
		put_string(out, "backing", s->backing);
	else
		fputs("\"backing\": null", out);
#define N(field) fprintf(out, ", \"" #field "\": %" PRIu64, s->field)
	N(allocations), N(frees), N(hits), N(misses), N(out_of_memory);
	N(reuse_same_stream), N(reuse_completed), N(reuse_event), N(reuse_implicit);
	N(reuse_internal), N(waits), N(segments), N(grown), N(reserved), N(reserved_high);
	N(used), N(used_high), N(released_bytes), N(trims), N(remaps);
#undef N
	fputs("}", out);
}

/* Writes the sum over destroyed pools, as one pool. */
static void put_ended(const struct ss_device_stats *d, void *arg)
{
	struct ss_pool_stats ended = *d->ended;

	if (!d->ended_count)
		return;
	ended.device = d->device;
	ended.kind = "ended";
	ended.hits = ended.allocations - ended.misses;
	put_pool(&ended, arg);
}

static void print_json(FILE *out, const char *host, int rank)
{
	struct list list = {.out = out};
	struct ss_pool_stats total;
	uint64_t aside = 0;

	for (int dev = 0; dev < ss_rocm_devices; dev++)
		aside += ss_set_aside(ss_core, dev);
	ss_stats_total(ss_core, &total);
	fprintf(out, "{\"somashim\": \"%s\", \"pid\": %d, \"rank\": ", SOMASHIM_VERSION,
		(int)owner);
	if (rank >= 0)
		fprintf(out, "%d, ", rank);
	else
		fputs("null, ", out);
	put_string(out, "host", host);
	fprintf(out,
		", \"fences\": %" PRIu64 ", \"busy_queries\": %" PRIu64
		", \"driver_calls\": %" PRIu64 ", \"driver_ns\": %" PRIu64
		", \"host_bytes\": %" PRIu64 ", \"set_aside\": %" PRIu64 ", \"pools\": [",
		total.fences, total.busy_queries, total.driver_calls, total.driver_ns,
		ss_host_bytes(ss_core), aside);
	ss_stats(ss_core, &(struct ss_stats_visitor){put_ended, put_pool}, &list);
	fputs("]}\n", out);
}

static void print_table(FILE *out, const char *host, int rank)
{
	fprintf(out, "somashim: statistics of process %d", (int)owner);
	if (rank >= 0)
		fprintf(out, ", rank %d", rank);
	fprintf(out, ", on %s\n", host);
	ss_shim_stats_table(ss_core, out);
}

void ss_shim_stats_write(void)
{
	char host[256] = "";
	long size;

	if (!in_memory || getpid() != owner || atomic_exchange(&written, true))
		return;
	gethostname(host, sizeof(host) - 1);
	if (ss_options.stats == SS_STATS_JSON)
		print_json(in_memory, host, find_rank());
	else
		print_table(in_memory, host, find_rank());
	fflush(in_memory);
	size = ftell(in_memory);
	if (size > 0)
		ss_shim_log_write(text, (size_t)size);
}

/* ---- _exit() and quick_exit() ------------------------------------------------------------- */

/* Neither runs destructors. */
static void end_now(void)
{
	int state = atomic_load(&ss_state);

	if (state != SS_ON && state != SS_EXITING)
		return;
	ss_run_hook(SS_HOOK_END);
	ss_shim_stats_write();
}

static void (*next_exit)(int);

__attribute__((constructor)) static void find_next(void)
{
	void *fn = dlsym(RTLD_NEXT, "_exit");

	memcpy(&next_exit, &fn, sizeof(fn));
	/* The function registered first runs last. After it quick_exit() makes no call that we
	 * see. */
	(void)at_quick_exit(end_now);
}

static _Noreturn void leave(int status)
{
	SS_UNCANCELLED; /* _exit() ends the process, even if the thread is cancelled */
	end_now();
	if (next_exit)
		next_exit(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT _Noreturn void _exit(int status)
{
	leave(status);
}

EXPORT _Noreturn void _Exit(int status)
{
	leave(status);
}

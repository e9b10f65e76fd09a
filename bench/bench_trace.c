/* SPDX-License-Identifier: MIT */
/*
 * What recording costs: nanoseconds per event with a stack of 16 frames, and bytes per event in the
 * file. `bench_trace [FILE] [PAIRS] [RING_BYTES]` prints a line per case; each pair of an
 * allocation and a free is three events, of which two have a stack. At the end the file is read.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace/reader.h"
#include "trace/writer.h"

#define POOL ((void *)0x1000)
#define STREAM ((void *)0x2000)
#define CALLERS 64 /* different call sites, as different paths of the same depth */

static int pairs = 1000000;
static bool only_allocations;

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) void one_pair(uint64_t n)
{
	void *p = (void *)(uintptr_t)(0x7f0000000000 + n % 4096 * 65536);

	ss_trace_alloc(p, 1000 + n % 100, 2048, 0, POOL, STREAM, 0);
	ss_trace_free(p, 0, POOL, STREAM, 0);
	ss_trace_reusable(p, 2048, 0, POOL);
}

static __attribute__((noinline)) void one_allocation(uint64_t n)
{
	ss_trace_alloc((void *)(uintptr_t)(0x7f0000000000 + n * 65536), 1000, 2048, 0, POOL, STREAM,
		       0);
}

/* `path` has a bit per frame: which of two call sites leads to the next. */
static __attribute__((noinline)) void descend(int depth, uint64_t path, uint64_t n)
{
	if (depth == 0 && only_allocations) {
		one_allocation(n);
	} else if (depth == 0) {
		one_pair(n);
	} else if (path & 1) {
		descend(depth - 1, path >> 1, n);
		__asm__ volatile("" ::: "memory");
	} else {
		descend(depth - 1, path >> 1, n);
		__asm__ volatile("nop" ::: "memory");
	}
}

static __attribute__((noinline)) void through_alloca(int depth, uint64_t n)
{
	volatile char *room = alloca(16 + n % 64 * 16);

	room[0] = 1;
	descend(depth, 0, n);
	(void)room[0];
}

/* Frames outside of descend(): main or the thread, the loop, libc. They make up 16. */
#define OUTER 5

static void *few_stacks(void *arg)
{
	for (int i = 0; i < pairs; i++)
		descend(16 - OUTER, (uint64_t)i % CALLERS, (uint64_t)i);
	return NULL;
}

static void *allocations(void *arg)
{
	only_allocations = true;
	for (int i = 0; i < 3 * pairs; i++)
		descend(16 - OUTER, (uint64_t)i % CALLERS, (uint64_t)i);
	only_allocations = false;
	return NULL;
}

static void *many_stacks(void *arg)
{
	for (int i = 0; i < pairs; i++)
		descend(16 - OUTER, (uint64_t)i * 2654435761u >> 8, (uint64_t)i);
	return NULL;
}

static void *varying_frame(void *arg)
{
	for (int i = 0; i < pairs / 10; i++)
		through_alloca(15 - OUTER, (uint64_t)i);
	return NULL;
}

static uint64_t disk_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void read_back(const char *path)
{
	char err[512];
	struct ss_trace_item item;
	uint64_t events = 0, sum = 0;
	double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));

	if (!r) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	while (ss_trace_reader_next(r, &item)) {
		sum += item.size;
		events++;
	}
	ss_trace_reader_close(r);
	printf("%-34s %8.1f ns/event (%.1f million events, %.1f GB asked for)\n", "read",
	       (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / (double)events, (double)events / 1e6,
	       (double)sum / 1e9);
}

/* Runs the case in `threads` threads. ns is processor time per event. */
static void run(const char *name, void *(*body)(void *), int threads, double each, const char *path)
{
	pthread_t t[8];
	uint64_t bytes = disk_bytes(path);
	double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	double events = 3.0 * each * (threads ? threads : 1);

	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, body, NULL) != 0)
			exit(1);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	if (threads == 0)
		body(NULL);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	bytes = disk_bytes(path) - bytes;
	printf("%-34s %8.1f ns/event %6.1f bytes/event\n", name, cpu / events,
	       (double)bytes / events);
}

int main(int argc, char **argv)
{
	char path[256];

	snprintf(path, sizeof(path), "%s", argc > 1 ? argv[1] : "bench.trace");
	pairs = argc > 2 ? atoi(argv[2]) : pairs;
	/* Nobody moves the beginning of a ring here, so it needs room for all events. */
	ss_trace_set_ring(argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	run("off", few_stacks, 0, pairs, path);
	if (!ss_trace_open(path, NULL)) {
		perror(path);
		return 1;
	}
	run("16 frames, 64 stacks", few_stacks, 0, pairs, path);
	run("16 frames, allocations only", allocations, 0, pairs, path);
	run("16 frames, 64 stacks, 8 threads", few_stacks, 8, pairs, path);
	run("16 frames, 2048 stacks", many_stacks, 0, pairs, path);
	run("16 frames, one with alloca", varying_frame, 0, pairs / 10, path);
	ss_trace_close();
	read_back(path);
	unlink(path);
	return 0;
}

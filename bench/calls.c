/* SPDX-License-Identifier: MIT */
/*
 * Wall microseconds per pair of allocation and free as a program has them, of mixed sizes (256
 * bytes to 16 MiB), with device work between the two. It is a plain HIP program: without the
 * preload it measures the runtime's own calls.
 *   calls classic|async [--keep] [SECONDS]    each of three rounds takes SECONDS (0.05); --keep:
 *                                             the pool gives nothing back
 * A line per shape: "THREADSxSTREAMS work W live L sync S" and the median.
 *   work  none; memset: 4 KiB of the block; busy: some microseconds of other work on the stream
 *   live  blocks that are kept: the oldest is freed for a new one
 *   sync  the stream is waited for after so many pairs; 0: never
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "tests/apps/device_work.h"
#include "tests/random.h"

#define THREADS 4
#define LIVE 32
#define ROUNDS 3
#define BUSY_US 5

enum work { NONE, MEMSET, BUSY };
static const char *const work_names[] = {"none", "memset", "busy"};

static const struct shape {
	int threads, streams;
	enum work work;
	unsigned live, sync;
} shapes[] = {
	{1, 1, NONE, 1, 0},
	{1, 1, NONE, LIVE, 0},
	{1, 1, MEMSET, LIVE, 64},
	{1, 1, BUSY, LIVE, 0},
	{1, 1, BUSY, LIVE, 64},
	{1, THREADS, MEMSET, LIVE, 64},
	{1, THREADS, BUSY, LIVE, 64},
	{THREADS, THREADS, NONE, LIVE, 0},
	{THREADS, THREADS, MEMSET, LIVE, 64},
	{THREADS, THREADS, BUSY, LIVE, 64},
};

static bool async;
static struct shape now;
static hipStream_t stream[THREADS];
static atomic_bool stop;
static pthread_barrier_t start;

struct worker {
	pthread_t thread;
	unsigned me;
	uint64_t pairs, rng;
	double us;
};

static size_t draw_size(uint64_t *rng)
{
	static const unsigned bits[] = {8, 9, 10, 12, 12, 14, 16, 16, 18, 20, 20, 21, 22, 24};
	uint64_t n = next_random(rng);

	return ((size_t)1 << bits[n % (sizeof(bits) / sizeof(bits[0]))]) - (n >> 32 & 127);
}

static void give(void *ptr, hipStream_t s)
{
	if (!ptr)
		return;
	if (async)
		CHECK(hipFreeAsync(ptr, s));
	else
		CHECK(hipFree(ptr));
}

static void *run(void *arg)
{
	struct worker *w = arg;
	void *held[LIVE] = {NULL};
	hipStream_t on[LIVE] = {NULL};
	double from;

	CHECK(hipSetDevice(0));
	pthread_barrier_wait(&start);
	from = now_ns();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		unsigned slot = (unsigned)(w->pairs % now.live);
		hipStream_t s = stream[now.threads > 1 ? w->me : w->pairs % (unsigned)now.streams];
		size_t size = draw_size(&w->rng);
		void *p = NULL;

		give(held[slot], on[slot]);
		if (async)
			CHECK(hipMallocAsync(&p, size, s));
		else
			CHECK(hipMalloc(&p, size));
		if (now.work == MEMSET)
			CHECK(hipMemsetAsync(p, 1, size < 4096 ? size : 4096, s));
		else if (now.work == BUSY)
			CHECK(device_work(s));
		held[slot] = p;
		on[slot] = s;
		w->pairs++;
		if (now.sync && w->pairs % now.sync == 0)
			CHECK(hipStreamSynchronize(s));
	}
	w->us = (now_ns() - from) / 1e3;
	for (unsigned i = 0; i < now.live; i++)
		give(held[i], on[i]);
	CHECK(hipDeviceSynchronize());
	return NULL;
}

/* Microseconds per pair of one thread. */
static double one_round(double seconds, unsigned round)
{
	struct worker w[THREADS];
	double us = 0, pairs = 0;

	memset(w, 0, sizeof(w));
	atomic_store(&stop, false);
	pthread_barrier_init(&start, NULL, (unsigned)now.threads + 1);
	for (int i = 0; i < now.threads; i++) {
		w[i].me = (unsigned)i;
		w[i].rng = (uint64_t)i * 77 + round;
		if (pthread_create(&w[i].thread, NULL, run, &w[i]))
			die("no thread");
	}
	pthread_barrier_wait(&start);
	usleep((useconds_t)(seconds * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < now.threads; i++) {
		pthread_join(w[i].thread, NULL);
		us += w[i].us;
		pairs += (double)w[i].pairs;
	}
	pthread_barrier_destroy(&start);
	return us / (pairs > 0 ? pairs : 1);
}

int main(int argc, char **argv)
{
	bool keep = argc > 2 && !strcmp(argv[2], "--keep");
	double seconds = argc > 2 + keep ? atof(argv[2 + keep]) : 0.05, us[ROUNDS];
	uint64_t all = UINT64_MAX;
	hipMemPool_t pool;

	if (argc < 2 || (strcmp(argv[1], "classic") && strcmp(argv[1], "async")) || seconds <= 0)
		die("usage: calls classic|async [--keep] [SECONDS]");
	async = !strcmp(argv[1], "async");
	CHECK(hipSetDevice(0));
	CHECK(device_work_prepare(BUSY_US));
	if (keep) {
		CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
		CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &all));
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		now = shapes[i];
		for (unsigned round = 0; round < ROUNDS; round++)
			us[round] = one_round(seconds, round);
		printf("%dx%d work %s live %u sync %u %.3f\n", now.threads, now.streams,
		       work_names[now.work], now.live, now.sync, median(us, ROUNDS));
		fflush(stdout);
	}
	return 0;
}

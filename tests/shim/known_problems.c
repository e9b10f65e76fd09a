/* SPDX-License-Identifier: MIT */
/*
 * Known problems of the runtime's own pools, each as a program that would show it
 * (docs/known-problems.md). An alarm ends a case that hangs.
 *
 *   known [case..]     all of them by default
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "known_problems.h"

hipMemPool_t pool;

/* C1: allocate, copy and free on two streams, with a threshold of 0, so that each
 * synchronization gives back what is idle - and nothing else. */
static void two_streams(void)
{
	hipStream_t s[2] = {stream_new(), stream_new()};
	size_t size = MIB + 4096;
	unsigned char *host = malloc(size), *back = malloc(size);

	set_threshold(0);
	for (int i = 0; i < 100; i++) {
		void *p[2], *q[2];

		memset(host, 1 + i, size);
		for (int k = 0; k < 2; k++) {
			OK(hipMallocAsync(&p[k], size, s[k]));
			OK(hipMemcpyAsync(p[k], host, size, hipMemcpyHostToDevice, s[k]));
			OK(hipMallocAsync(&q[k], size, s[k]));
			OK(hipMemcpyAsync(q[k], p[k], size, hipMemcpyDeviceToDevice, s[k]));
			OK(hipFreeAsync(p[k], s[k]));
		}
		OK(hipStreamSynchronize(s[i & 1])); /* the other one has not ended */
		for (int k = 0; k < 2; k++) {
			memset(back, 0, size);
			OK(hipMemcpyAsync(back, q[k], size, hipMemcpyDeviceToHost, s[k]));
			OK(hipStreamSynchronize(s[k]));
			CHECK(!memcmp(back, host, size));
			OK(hipFreeAsync(q[k], s[k]));
		}
	}
	free(host);
	free(back);
	for (int k = 0; k < 2; k++)
		OK(hipStreamDestroy(s[k]));
}

/* C3: what is idle stays up to the threshold and goes above it. */
static void thresholds(void)
{
	static const size_t keep[] = {192 * MIB, 128 * MIB, 64 * MIB, 0};
	hipStream_t s = stream_new();
	void *p[8];

	set_threshold(UINT64_MAX);
	for (int i = 0; i < 8; i++)
		OK(hipMallocAsync(&p[i], 32 * MIB, s));
	for (int i = 0; i < 8; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipDeviceSynchronize());
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) >= 256 * MIB);
	for (unsigned i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
		uint64_t left;

		set_threshold(keep[i]);
		for (int k = 0; k < 3; k++) /* and again: nothing more goes */
			OK(hipDeviceSynchronize());
		left = figure(pool, hipMemPoolAttrReservedMemCurrent);
		CHECK(left >= keep[i]);
		CHECK(left < keep[i] + 64 * MIB); /* less than a segment above it */
		/* Taking and freeing what is there changes nothing. */
		OK(hipMallocAsync(&p[0], keep[i] ? 32 * MIB : 0, s));
		if (p[0]) /* of nothing it is an error up to 6.x */
			OK(hipFreeAsync(p[0], s));
		OK(hipStreamSynchronize(s));
		CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) >= keep[i]);
	}
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
	OK(hipStreamDestroy(s));
}

/* C4: what does not fit leaves every figure as it was, and nothing is lost. */
static void too_large(void)
{
	hipStream_t s = stream_new();
	uint64_t reserved, used;
	size_t left, after, total;
	void *p, *q;

	set_threshold(UINT64_MAX);
	OK(hipMallocAsync(&p, 100 * MIB, s));
	stamp(p, 7, 100 * MIB, s);
	reserved = figure(pool, hipMemPoolAttrReservedMemCurrent);
	used = figure(pool, hipMemPoolAttrUsedMemCurrent);
	OK(hipMemGetInfo(&left, &total));
	for (int i = 0; i < 5; i++) {
		GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, total, s));
		GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, left + MIB, s));
		CHECK(!q);
	}
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == reserved);
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == used);
	OK(hipMemGetInfo(&after, &total));
	CHECK(after == left);
	CHECK(holds(p, 7, 100 * MIB, s));
	OK(hipFreeAsync(p, s));
	OK(hipMallocAsync(&q, left, s)); /* all of it is still to be had */
	OK(hipFreeAsync(q, s));
	OK(hipStreamDestroy(s));
}

/* A thread that is inside a wait until somebody releases `stream`. */
struct waiter {
	pthread_t thread;
	hipStream_t stream;
	hipEvent_t event;
	int how; /* an event, a stream, or the device */
};

static const char *const wait_names[] = {
	"hipEventSynchronize",
	"hipStreamSynchronize",
	"hipDeviceSynchronize",
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	if (w->how == 0)
		OK(hipEventSynchronize(w->event));
	else if (w->how == 1)
		OK(hipStreamSynchronize(w->stream));
	else
		OK(hipDeviceSynchronize());
	return NULL;
}

/* C5, C23: whatever another thread waits for, memory is to be had. */
static void beside_waits(void)
{
	hipStream_t busy = stream_new(), s = stream_new();
	void *work, *p[16];

	OK(hipMallocAsync(&work, MIB, busy));
	for (int how = 0; how < 3; how++) {
		struct waiter w = {.stream = busy, .how = how};
		uint64_t before = sim_count(wait_names[how]);

		OK(hipEventCreate(&w.event));
		stall(busy);
		stamp(work, how, MIB, busy);
		OK(hipEventRecord(w.event, busy));
		CHECK(!pthread_create(&w.thread, NULL, wait_for, &w));
		while (sim_count(wait_names[how]) == before)
			sched_yield();
		for (int i = 0; i < 50; i++) {
			for (int k = 0; k < 16; k++)
				OK(hipMallocAsync(&p[k], (size_t)(1 + i) << (10 + k % 8), s));
			for (int k = 0; k < 16; k++)
				OK(hipFreeAsync(p[k], k & 1 ? s : busy));
		}
		OK(hipMallocAsync(&p[0], (128u + (unsigned)how) << 20, s)); /* grows */
		OK(hipFreeAsync(p[0], s));
		release(busy);
		pthread_join(w.thread, NULL);
		OK(hipEventDestroy(w.event));
	}
	OK(hipFreeAsync(work, busy));
	OK(hipStreamDestroy(busy));
	OK(hipStreamDestroy(s));
}

static void *null_worker(void *arg)
{
	void *p[8];

	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 8; k++)
			OK(hipMallocAsync(&p[k], (size_t)256 << k, NULL));
		stamp(p[i % 8], i, 256, NULL);
		for (int k = 0; k < 8; k++)
			OK(hipFreeAsync(p[k], NULL));
		if (i % 25 == 24)
			OK(hipStreamSynchronize(NULL));
	}
	return arg;
}

/* C6: many threads, one null stream, a blocking stream beside it. */
static void many_threads(void)
{
	pthread_t t[32];
	hipStream_t s;

	OK(hipStreamCreate(&s));
	for (int i = 0; i < 32; i++)
		CHECK(!pthread_create(&t[i], NULL, null_worker, NULL));
	for (int i = 0; i < 32; i++)
		pthread_join(t[i], NULL);
	OK(hipStreamDestroy(s));
	OK(hipStreamSynchronize(NULL));
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == 0);
}

/* C7: what grows and shrinks fits where hipMalloc would. */
static void grows_and_shrinks(void)
{
	hipStream_t s = stream_new(), t = stream_new();
	size_t left, total;
	void *p, *q;

	set_threshold(UINT64_MAX);
	OK(hipMemGetInfo(&left, &total));
	for (size_t size = left / 32; size < left; size += size / 2) {
		OK(hipMallocAsync(&p, size, s));
		stamp(p, 1, 4096, s);
		OK(hipFreeAsync(p, s));
	}
	for (size_t size = left; size > left / 32; size -= size / 3) {
		OK(hipMallocAsync(&p, size / 2, s));
		stamp(p, 2, 4096, s);
		OK(hipFreeAsync(p, s));
		OK(hipMallocAsync(&q, size / 3, t));
		OK(hipFreeAsync(q, t));
	}
	OK(hipMallocAsync(&p, left, s));
	OK(hipFreeAsync(p, s));
	/* And from one kind of memory to the other and back. */
	OK(hipMalloc(&p, left - MIB));
	OK(hipFree(p));
	OK(hipMallocAsync(&p, left, t));
	OK(hipFreeAsync(p, t));
	OK(hipStreamDestroy(s));
	OK(hipStreamDestroy(t));
}

static hipStream_t held;
static _Atomic bool let_go, came_back;

static uint64_t waits(void)
{
	return sim_count("hipStreamSynchronize") + sim_count("hipDeviceSynchronize") +
	       sim_count("hipEventSynchronize");
}

/* Lets the stream go once the other thread waits for it, or did not wait. */
static void *letter_go(void *arg)
{
	uint64_t before = *(uint64_t *)arg;

	while (waits() == before && !came_back)
		sched_yield();
	let_go = !came_back;
	release(held);
	return NULL;
}

/* C8, C9, C25: hipFree of either kind of block waits, for a stream that does not
 * block too, as it did before 7.0. */
static void free_waits(void)
{
	held = stream_new();
	for (int async = 0; async < 2; async++) {
		uint64_t before;
		pthread_t t;
		void *p;

		OK(async ? hipMallocAsync(&p, MIB, held) : hipMalloc(&p, MIB));
		stall(held);
		stamp(p, 1, MIB, held);
		let_go = came_back = false;
		before = waits();
		CHECK(!pthread_create(&t, NULL, letter_go, &before));
		OK(hipFree(p));
		came_back = true;
		pthread_join(t, NULL);
		CHECK(let_go);
		GIVES(hipSuccess, hipStreamQuery(held));
	}
	OK(hipStreamDestroy(held));
}

/* C10: the smallest of allocations, from both calls. */
static void small(void)
{
	void *p, *q;

	OK(hipMallocAsync(&p, 64, NULL));
	OK(hipMallocFromPoolAsync(&q, 64, pool, NULL));
	CHECK(p && q && p != q);
	stamp(p, 1, 64, NULL);
	stamp(q, 2, 64, NULL);
	CHECK(holds(p, 1, 64, NULL) && holds(q, 2, 64, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipFreeAsync(q, NULL));
}

/* C12: what is live is not free, what is cached is, and 64 times so. */
static void free_figure(void)
{
	hipStream_t s = stream_new();
	size_t first, now, total, all;
	void *p, *q;

	set_threshold(UINT64_MAX);
	OK(hipMemGetInfo(&first, &all));
	for (int i = 0; i < 64; i++) {
		OK(hipMallocAsync(&p, 64 * MIB, s));
		OK(hipMalloc(&q, 32 * MIB));
		OK(hipMemGetInfo(&now, &total));
		CHECK(total == all && now <= first - 96 * MIB && now + 104 * MIB >= first);
		OK(hipFreeAsync(p, s));
		OK(hipFree(q));
		OK(hipMemGetInfo(&now, &total));
		CHECK(now + 8 * MIB >= first && now <= total);
	}
	OK(hipStreamDestroy(s));
}

/* C15, C16: a captured allocation is the runtime's, lives as long as the runtime
 * says, and its errors are the runtime's; our own pools keep away from it. */
static void captured_block(void)
{
	void (*fail)(const char *) = (void (*)(const char *))sim_call("somasim_fail");
	void (*clear)(void) = (void (*)(void))sim_call("somasim_fail_clear");
	hipStream_t s = stream_new();
	hipGraphExec_t exec;
	hipGraph_t graph;
	void *p, *q;

	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	OK(hipMallocAsync(&p, MIB, s));
	stamp(p, 5, MIB, s);
	OK(hipStreamEndCapture(s, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, s));
	OK(hipStreamSynchronize(s));
	for (int i = 0; i < 20; i++) {
		OK(hipMallocAsync(&q, MIB, s));
		CHECK((char *)q + MIB <= (char *)p || (char *)q >= (char *)p + MIB);
		stamp(q, 6, MIB, s);
		OK(hipFreeAsync(q, s));
		OK(hipDeviceSynchronize());
	}
	CHECK(holds(p, 5, MIB, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));

	CHECK(fail && clear);
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	fail("hipMallocAsync:%1=2");
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, MIB, s));
	clear();
	(void)hipStreamEndCapture(s, &graph);
	(void)hipGetLastError();
	OK(hipStreamDestroy(s));
}

static const struct {
	const char *name;
	void (*run)(void);
	const char * not ; /* a backing that it says nothing about */
} cases[] = {
	{"two_streams", two_streams, NULL},     {"thresholds", thresholds, NULL},
	{"too_large", too_large, NULL},         {"beside_waits", beside_waits, NULL},
	{"many_threads", many_threads, NULL},   {"grows_and_shrinks", grows_and_shrinks, NULL},
	{"free_waits", free_waits, NULL},       {"small", small, NULL},
	{"free_figure", free_figure, NULL},     {"captured_block", captured_block, NULL},
	{"a_million", a_million, NULL},         {"particles", particles, NULL},
	{"fragmentation", fragmentation, NULL},
};

int main(int argc, char **argv)
{
	bool found = false;

	CHECK(preloaded());
	alarm(300);
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool asked = argc == 1;

		for (int k = 1; k < argc; k++)
			asked |= !strcmp(argv[k], cases[i].name);
		if (!asked)
			continue;
		found = true;
		if (cases[i].not &&backed_by(cases[i].not ))
			continue;
		cases[i].run();
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(pool, 0));
		OK(hipDeviceSynchronize());
	}
	CHECK(found);
	return 0;
}

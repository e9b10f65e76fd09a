/* SPDX-License-Identifier: MIT */
/*
 * Kernels that hold their block: each writes a value into the block, takes some microseconds, and
 * counts the words that are another value by then, while other threads allocate and free. A byte
 * with two owners is counted.
 *
 *   busy classic|async|mixed SEED [STEPS [MICROSECONDS]]
 */
#include <pthread.h>
#include <unistd.h>

#include "../random.h"
#include "test.h"

#define THREADS 4
#define STREAMS 8 /* the null stream, the thread's own, blocking ones and others */
#define LIVE 12   /* per thread */
#define MOST_WORDS 16384 /* that a kernel looks at, at each end of the block */

struct block {
	char *p;
	size_t size;
	uint32_t value;
	int stream;
	bool async;
};

static hipStream_t streams[STREAMS];
static const char *mode = "mixed";
static uint64_t seed = 1;
static int steps = 300, most_us = 200;
static uint32_t *wrong; /* on the device */
static char hold, look; /* their addresses name the kernels */

/* The kernels, as the software device runs them. */
static uint32_t others(const volatile uint32_t *p, uint64_t n, uint32_t value)
{
	uint32_t count = 0;

	for (uint64_t i = 0; i < n; i++)
		count += p[i] != value;
	return count;
}

static void look_body(void **args)
{
	uint32_t *p = *(uint32_t **)args[0], *counter = *(uint32_t **)args[3];

	__atomic_fetch_add(counter, others(p, *(uint64_t *)args[1], *(uint32_t *)args[2]),
			   __ATOMIC_RELAXED);
}

static void hold_body(void **args)
{
	uint32_t *p = *(uint32_t **)args[0], value = *(uint32_t *)args[2];

	for (uint64_t i = 0; i < *(uint64_t *)args[1]; i++)
		p[i] = value;
	usleep((useconds_t)(*(uint64_t *)args[3] / 1000));
	__atomic_fetch_add(*(uint32_t **)args[4], others(p, *(uint64_t *)args[1], value),
			   __ATOMIC_RELAXED);
}

/* The device's own kernels of these names, where it has some. */
static void make_kernels(void)
{
	static const size_t hold_sizes[] = {8, 8, 4, 8, 8, 0}, look_sizes[] = {8, 8, 4, 8, 0};
	int (*own)(const void *, const char *) = (int (*)(const void *, const char *))sim_call(
		"somacuda_register");
	void (*reg)(const void *, void (*)(void **), const size_t *);

	if (own) {
		CHECK(!own(&hold, "hold") && !own(&look, "check"));
		return;
	}
	reg = (void (*)(const void *, void (*)(void **), const size_t *))sim_call(
		"somasim_register_kernel_args");
	if (!reg) {
		fprintf(stderr, "needs a device that brings kernels\n");
		exit(SKIP);
	}
	reg(&hold, hold_body, hold_sizes);
	reg(&look, look_body, look_sizes);
}

/* The kernel on both ends of the block, which for a small one are the same. */
static void launch(const struct block *b, const void *kernel, uint64_t ns)
{
	uint64_t words = b->size / 4, n = words > MOST_WORDS ? MOST_WORDS : words;

	for (int end = 0; end < (words > MOST_WORDS ? 2 : 1); end++) {
		uint32_t *at = (uint32_t *)b->p + (end ? words - n : 0), value = b->value;
		void *h[] = {&at, &n, &value, &ns, &wrong}, *l[] = {&at, &n, &value, &wrong};

		OK(hipLaunchKernel(kernel, (dim3){2, 1, 1}, (dim3){256, 1, 1},
				   kernel == &hold ? h : l, 0, streams[b->stream]));
	}
}

static bool take(struct block *b, uint64_t *rng)
{
	unsigned bits = 6 + (unsigned)(next_random(rng) % 17); /* up to 4 MiB */
	void *p = NULL;
	hipError_t err;

	b->size = (64 + next_random(rng) % (1u << bits)) & ~(size_t)3;
	b->async = !strcmp(mode, "async") || (!strcmp(mode, "mixed") && next_random(rng) % 2);
	b->stream = (int)(next_random(rng) % STREAMS);
	b->value = (uint32_t)next_random(rng) | 1;
	err = b->async ? hipMallocAsync(&p, b->size, streams[b->stream]) : hipMalloc(&p, b->size);
	b->p = p;
	if (err == hipErrorOutOfMemory)
		return false;
	OK(err);
	return true;
}

static void give(struct block *b)
{
	if (b->async)
		OK(hipFreeAsync(b->p, streams[b->stream]));
	else
		OK(hipFree(b->p));
	b->p = NULL;
}

static void *work(void *arg)
{
	uint64_t rng = seed * 1000 + (uint64_t)(uintptr_t)arg;
	struct block live[LIVE];
	hipEvent_t event;

	memset(live, 0, sizeof(live));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	for (int i = 0; i < steps; i++) {
		struct block *b = &live[next_random(&rng) % LIVE];

		if (!b->p) {
			if (take(b, &rng))
				launch(b, &hold, next_random(&rng) % (uint64_t)most_us * 1000);
			continue;
		}
		/* Another stream looks at it, behind an event, and frees it. */
		if (next_random(&rng) % 3 == 0) {
			OK(hipEventRecord(event, streams[b->stream]));
			b->stream = (int)(next_random(&rng) % STREAMS);
			OK(hipStreamWaitEvent(streams[b->stream], event, 0));
			launch(b, &look, 0);
		}
		give(b);
		if (next_random(&rng) % 97 == 0)
			OK(hipStreamSynchronize(streams[next_random(&rng) % STREAMS]));
	}
	for (int i = 0; i < LIVE; i++)
		if (live[i].p)
			give(&live[i]);
	OK(hipDeviceSynchronize());
	OK(hipEventDestroy(event));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint32_t count = 1;

	CHECK(preloaded());
	if (argc > 1)
		mode = argv[1];
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	if (argc > 3)
		steps = atoi(argv[3]);
	if (argc > 4)
		most_us = atoi(argv[4]);
	make_kernels();
	OK(hipMalloc((void **)&wrong, sizeof(*wrong)));
	OK(hipMemset(wrong, 0, sizeof(*wrong)));
	streams[1] = hipStreamPerThread;
	for (int i = 2; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&streams[i],
					    i & 1 ? hipStreamNonBlocking : hipStreamDefault));
	OK(hipDeviceSynchronize());
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	OK(hipDeviceSynchronize());
	OK(hipMemcpy(&count, wrong, sizeof(count), hipMemcpyDeviceToHost));
	if (count)
		fprintf(stderr, "busy %s, seed %llu: %u words were another value\n", mode,
			(unsigned long long)seed, count);
	return count != 0;
}

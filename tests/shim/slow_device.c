/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=never on a device that is slower than its host. Memory in flight is
 * bounded. An allocation waits for it, but not for long, and not where the device may be
 * waiting for the program.
 */
#include <pthread.h>
#include <time.h>

#include "test.h"

#define BLOCK (16u << 20)
#define SMALL (512u << 10)
#define KERNEL_NS 2000000
#define STREAMS 4
#define ROUNDS 50
#define FEW_NAPS 60

static void (*reg)(const void *, void (*)(void **), const size_t *);
static char kernel;
static _Atomic int overlaps;
static _Atomic bool held; /* no kernel ends */

/* A short sleep of the shim is one of the program's: counted by thread. */
static _Thread_local unsigned naps;

__attribute__((visibility("default"))) int nanosleep(const struct timespec *t,
						     struct timespec *rest)
{
	naps++;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, t, rest);
}

/* The block belongs to the kernel for as long as it runs. */
static void body(void **args)
{
	uint64_t *p = *(uint64_t **)args[0], tag = *(uint64_t *)args[1];
	struct timespec t = {0, KERNEL_NS};

	__atomic_store_n(p, tag, __ATOMIC_RELAXED);
	do
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	while (held);
	overlaps += __atomic_load_n(p, __ATOMIC_RELAXED) != tag;
}

static void launch(void *p, uint64_t tag, hipStream_t stream)
{
	void *args[] = {&p, &tag};

	OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

static void *worker(void *arg)
{
	hipStream_t stream = arg;
	void *p;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		OK(hipMalloc(&p, BLOCK));
		launch(p, (uint64_t)(uintptr_t)arg << 8 | i, stream);
		OK(hipFree(p));
	}
	OK(hipStreamSynchronize(stream));
	return NULL;
}

/* A thread per stream: four blocks for each, and up to four more where the machine itself
 * stands still for so long that a wait was given up (40 without a bound). Blocking streams
 * have the null stream behind them, of which only a free can ask. */
static void bounded(unsigned flags)
{
	hipStream_t stream[STREAMS];
	pthread_t thread[STREAMS];
	uint64_t before = device_free(0);

	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&stream[i], flags));
	for (int i = 0; i < STREAMS; i++)
		CHECK(pthread_create(&thread[i], NULL, worker, stream[i]) == 0);
	for (int i = 0; i < STREAMS; i++)
		pthread_join(thread[i], NULL);
	fprintf(stderr, "%.1f blocks per stream\n",
		(double)(before - device_free(0)) / BLOCK / STREAMS);
	CHECK(!overlaps);
	CHECK(before - device_free(0) <= 8ull * STREAMS * BLOCK);
}

/* Frees `count` blocks that the stream works on; how many naps did that take? */
static unsigned run(int count, hipStream_t stream)
{
	void *p;

	naps = 0;
	for (int i = 0; i < count; i++) {
		OK(hipMalloc(&p, BLOCK));
		launch(p, (uint64_t)i, stream);
		OK(hipFree(p));
	}
	return naps;
}

/* A kernel waits for what the host does only when it has allocated much. */
static void held_up(void)
{
	hipStream_t stream;

	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	held = true;
	CHECK(run(80, stream) > 0);
	/* By now it is known to be of no use. On a busy machine a wait still takes as long as a
	 * fence took lately, which is a few naps; a full wait of 50 ms has far more. */
	CHECK(run(8, stream) <= 8 * FEW_NAPS);
	held = false;
	OK(hipStreamSynchronize(stream));
	CHECK(!overlaps);
}

/* The same with a value. That can be seen, so nobody waits. */
static void value(void)
{
	hipStream_t stream;
	uint64_t *flag;

	OK(hipHostMalloc((void **)&flag, sizeof(*flag), 0));
	*flag = 0;
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipStreamWaitValue64(stream, flag, 1, hipStreamWaitValueEq, ~0ull));
	CHECK(run(80, stream) == 0);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	OK(hipStreamSynchronize(stream));
	CHECK(!overlaps);
}

static _Atomic bool within; /* a function runs, and has looked */

static void callback(hipStream_t stream, hipError_t status, void *arg)
{
	struct timespec t = {0, 1000000};
	void *p;

	naps = 0;
	OK(hipMalloc(&p, BLOCK));
	OK(hipFree(p));
	*(unsigned *)arg = naps;
	within = true;
	while (within)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* A function on the stream that allocates: while it runs, nothing behind it ends. */
static void function(void)
{
	struct timespec t = {0, 1000000};
	unsigned inside = 1;
	hipStream_t stream;

	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipStreamAddCallback(stream, callback, &inside, 0));
	while (!within)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	CHECK(run(32, stream) == 0);
	within = false;
	OK(hipStreamSynchronize(stream));
	CHECK(inside == 0 && !overlaps);
}

static void *destroyer(void *stream)
{
	OK(hipStreamDestroy(stream));
	return NULL;
}

/* A free by another thread, while a stream is being destroyed that the shim has already
 * recorded its last fence on: nothing comes behind that, so the free needs no other. */
static void destroyed(void)
{
	int (*hold)(const char *, int) = (int (*)(const char *, int))sim_call("somasim_hold");
	int (*holds)(void) = (int (*)(void))sim_call("somasim_holds");
	void (*let_go)(void) = (void (*)(void))sim_call("somasim_let_go");
	const char *fence = getenv("SOMASHIM_FENCE");
	void *p, *q = NULL, *scratch;
	struct timespec ts = {0, 1000000};
	hipStream_t stream, other;
	pthread_t thread;

	CHECK(hold && holds && let_go);
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipMalloc(&p, BLOCK));
	OK(hipMallocAsync(&scratch, 4096, stream));
	held = true; /* a stream at its end is not given a fence */
	launch(p, 1, stream);
	OK(hipFreeAsync(scratch, stream));
	CHECK(hold(fence && !strcmp(fence, "signal") ? "hipStreamWriteValue64" : "hipEventRecord",
		   1) == 0);
	CHECK(pthread_create(&thread, NULL, destroyer, stream) == 0);
	while (!holds())
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	OK(hipFree(p));
	held = false;
	let_go();
	pthread_join(thread, NULL);
	for (int i = 0; i < 200 && q != p; i++) {
		OK(hipMalloc(&q, BLOCK));
		if (q != p)
			OK(hipFree(q));
		OK(hipStreamSynchronize(other));
		OK(hipStreamSynchronize(NULL));
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	}
	CHECK(q == p && !overlaps);
}

#define MANY 100 /* more than the streams that are asked at a time */

/* Many streams, each of which is at its end soon. */
static void many(void)
{
	hipStream_t stream[MANY];
	uint64_t before = device_free(0);
	void *p;

	for (int i = 0; i < MANY; i++)
		OK(hipStreamCreateWithFlags(&stream[i],
					    i % 3 ? hipStreamNonBlocking : hipStreamDefault));
	for (int i = 0; i < 10 * MANY; i++) {
		OK(hipMalloc(&p, SMALL));
		OK(hipMemsetAsync(p, i, SMALL, stream[i * 37 % MANY]));
		OK(hipFree(p));
	}
	fprintf(stderr, "%.1f blocks per stream\n",
		(double)(before - device_free(0)) / SMALL / MANY);
	CHECK(before - device_free(0) <= 6ull * MANY * SMALL);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {sizeof(void *), sizeof(uint64_t), 0};

	CHECK(argc == 2 && preloaded());
	reg = (void (*)(const void *, void (*)(void **), const size_t *))sim_call(
		"somasim_register_kernel_args");
	if (!reg)
		return SKIP;
	reg(&kernel, body, sizes);
	if (!strcmp(argv[1], "bounded"))
		bounded(hipStreamNonBlocking);
	else if (!strcmp(argv[1], "blocking"))
		bounded(hipStreamDefault);
	else if (!strcmp(argv[1], "held"))
		held_up();
	else if (!strcmp(argv[1], "value"))
		value();
	else if (!strcmp(argv[1], "many"))
		many();
	else if (!strcmp(argv[1], "destroyed"))
		destroyed();
	else
		function();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * One thread is inside hipStreamSynchronize of a stream that stands. Meanwhile another thread's
 * calls make no call of the runtime with that stream (known problem O8): from 7.2 on it would
 * return only together with the wait. And what was freed on the stream is reused once that has
 * returned.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

#define SIZE (8u << 20)
#define AGE_US 20000 /* SOMASHIM_DECAY_MS is 5 */

static hipStream_t s, own; /* another thread waits for s; the one that the calls are for */
static pthread_t waiter;

static uint64_t asked(void)
{
	return ((uint64_t(*)(void))sim_must("somasim_asked_while_waiting"))();
}

static void *wait_for_s(void *arg)
{
	OK(hipStreamSynchronize(s));
	return arg;
}

/* From now on a thread waits for s, on which something was freed. */
static void begin(unsigned flags)
{
	int (*inside)(hipStream_t) = (int (*)(hipStream_t))sim_must("somasim_synchronizing");
	void *p;

	OK(hipStreamCreateWithFlags(&s, flags));
	OK(hipMallocAsync(&p, SIZE, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, SIZE, s));
	OK(hipFreeAsync(p, s));
	CHECK(!pthread_create(&waiter, NULL, wait_for_s, NULL));
	while (inside(s) != 1)
		sched_yield();
}

static void end(void)
{
	uint64_t before = asked();

	release(s);
	pthread_join(waiter, NULL);
	CHECK(before == 0);
	OK(hipStreamDestroy(s));
}

/* ---- what the other thread calls ------------------------------------------------- */

/* Some are so long after the last that decay looks for what is idle. */
static void frees_on(hipStream_t stream, int times)
{
	void *p;

	for (int i = 0; i < times; i++) {
		OK(hipMallocAsync(&p, 65536, stream));
		usleep(AGE_US);
		OK(hipFreeAsync(p, stream));
	}
}

static void frees_in_order(void)
{
	frees_on(own, 6);
}

/* SOMASHIM_FREE_SYNC is never. */
static void frees(void)
{
	void *p;

	for (int i = 0; i < 6; i++) {
		OK(hipMalloc(&p, 65536));
		usleep(AGE_US);
		OK(hipFree(p));
	}
}

/* More and more: each new peak is a reason to ask and to wait for what s holds. */
static void grows(void)
{
	void *p[6];

	for (int i = 0; i < 6; i++)
		OK(hipMallocAsync(&p[i], SIZE, own));
	for (int i = 0; i < 6; i++)
		OK(hipFreeAsync(p[i], own));
	OK(hipStreamSynchronize(own));
}

static void grows_classic(void)
{
	void *p[6];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 6; i++)
			OK(hipMalloc(&p[i], SIZE));
		for (int i = 0; i < 6; i++)
			OK(hipFree(p[i]));
	}
}

/* SOMASHIM_OOM_WAIT_MS is 100. All that is missing is what s holds. (On a full device own may have
 * been made to wait for s, so nobody waits for own.) */
static void fails(void)
{
	static void *p[1024];
	unsigned n = 0;
	void *more;

	while (hipMallocAsync(&p[n], SIZE, own) == hipSuccess)
		n++;
	GIVES(hipErrorOutOfMemory, hipGetLastError());
	GIVES(hipErrorOutOfMemory, hipMalloc(&more, SIZE));
	(void)hipGetLastError();
	while (n)
		OK(hipFreeAsync(p[--n], own));
}

static void trims(void)
{
	hipMemPool_t pool;
	uint64_t all = UINT64_MAX;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &all));
	OK(hipMemPoolTrimTo(pool, 0));
}

static void asks_for_free(void)
{
	size_t left, total;

	for (int i = 0; i < 3; i++) {
		OK(hipMemGetInfo(&left, &total));
		usleep(AGE_US);
	}
}

/* The thread of decay has its time. */
static void sleeps(void)
{
	void *p;

	OK(hipMallocAsync(&p, SIZE, own));
	OK(hipFreeAsync(p, own));
	usleep(6 * AGE_US);
}

static void makes_streams(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	hipStream_t more;
	void *p;

	OK(hipStreamCreateWithFlags(&more, hipStreamNonBlocking));
	OK(hipMallocFromPoolAsync(&p, SIZE, pool, more));
	OK(hipFreeAsync(p, more));
	OK(hipStreamDestroy(more));
	OK(hipMemPoolDestroy(pool));
}

static void frees_on_it(void)
{
	frees_on(s, 3);
}

static void (*const calls[])(void) = {
	frees_in_order, frees,  frees_on_it,   grows, grows_classic,
	asks_for_free,  sleeps, makes_streams, trims, fails,
};

/* What was freed behind the wait is there for another stream: no further memory is needed. */
static void reused(void)
{
	hipMemPool_t pool;
	uint64_t reserved;
	void *p;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	begin(hipStreamNonBlocking);
	reserved = figure(pool, hipMemPoolAttrReservedMemCurrent);
	end();
	OK(hipMallocAsync(&p, SIZE, own));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) <= reserved);
	OK(hipFreeAsync(p, own));
	OK(hipStreamSynchronize(own));
}

int main(void)
{
	OK(hipStreamCreateWithFlags(&own, hipStreamNonBlocking));
	reused();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin(hipStreamNonBlocking);
		calls[i]();
		end();
		if (backed_by("vmm"))
			continue; /* a map waits for blocking streams */
		begin(hipStreamDefault);
		calls[i]();
		end();
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory was unmapped and does not seem to come back, because somebody else takes as much
 * meanwhile. If that is another pool of this process, it says nothing about the runtime. If
 * it is unknown, that is found out later. A runtime that really keeps memory loses only
 * little to repeated attempts.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

/* What the shim takes for the time. */
static _Atomic long ahead;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, id, t);

	if (id == CLOCK_MONOTONIC)
		t->tv_sec += ahead;
	return err;
}

static hipMemPool_t pool, others;
static hipStream_t stream;

static void *trim(void *arg)
{
	OK(hipMemPoolTrimTo(pool, 0));
	return arg;
}

/* A block lives, another is trimmed; meanwhile the device loses twice as much. */
static void trimmed_beside(bool to_a_pool)
{
	int (*hold)(const char *, int) = (int (*)(const char *, int))sim_call("somasim_hold");
	int (*holds)(void) = (int (*)(void))sim_call("somasim_holds");
	void (*let_go)(void) = (void (*)(void))sim_call("somasim_let_go");
	pthread_t thread;
	void *p;

	CHECK(hold && holds && let_go);
	OK(hipMallocFromPoolAsync(&p, 32 * MIB, pool, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipStreamSynchronize(stream));
	CHECK(hold("hipMemUnmap", 1) == 0);
	CHECK(!pthread_create(&thread, NULL, trim, NULL));
	/* Where nothing is given back any more, nobody comes by. */
	for (int i = 0; i < 1000 && !holds(); i++)
		usleep(1000);
	if (to_a_pool)
		OK(hipMallocFromPoolAsync(&p, 64 * MIB, others, stream));
	else
		OK(hipExtMallocWithFlags(&p, 64 * MIB, hipDeviceMallocFinegrained));
	let_go();
	pthread_join(thread, NULL);
}

/* How much goes back of a pool of which not all is in use? */
static uint64_t gives(void)
{
	uint64_t before;
	void *p;

	OK(hipMallocFromPoolAsync(&p, 32 * MIB, pool, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipStreamSynchronize(stream));
	before = device_free(0);
	OK(hipMemPoolTrimTo(pool, 0));
	return device_free(0) - before;
}

/* A device that does not say what it has does not say that it keeps it, either: after the
 * release, or neither before nor after. */
static void unknown(void)
{
	void (*fail)(const char *) = (void (*)(const char *))sim_must("somasim_fail");
	void (*clear)(void) = (void (*)(void))sim_must("somasim_fail_clear");

	/* (The first figure is that of the growth.) */
	for (int i = 0; i < 8; i++) {
		fail(i < 4 ? "hipMemGetInfo:%1" : "hipMemGetInfo:3");
		CHECK(gives() >= 30 * MIB);
		clear();
	}
}

/* An hour and a half on a runtime that keeps what it is given (V6, V7). */
static void kept(void)
{
	uint64_t before = device_free(0);

	for (int i = 0; i < 200; i++) {
		(void)gives();
		ahead += 30;
	}
	fprintf(stderr, "%.0f MiB are gone\n", ((double)before - (double)device_free(0)) / MIB);
	CHECK(device_free(0) + 160 * MIB >= before);
}

int main(void)
{
	uint64_t keep = UINT64_MAX;
	void *lives;

	CHECK(preloaded());
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP;
	alarm(60);
	pool = make_pool(0, hipMemHandleTypeNone);
	others = make_pool(0, hipMemHandleTypeNone);
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	OK(hipMemPoolSetAttribute(others, hipMemPoolAttrReleaseThreshold, &keep));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipMallocFromPoolAsync(&lives, 2 * MIB, pool, stream));
	OK(hipStreamSynchronize(stream));
	if (getenv("SOMASIM_QUIRKS")) {
		kept();
		return 0;
	}
	CHECK(gives() >= 30 * MIB);
	unknown();

	for (int i = 0; i < 4; i++)
		trimmed_beside(true);
	CHECK(gives() >= 30 * MIB);

	for (int i = 0; i < 4; i++)
		trimmed_beside(false);
	CHECK(gives() == 0);
	ahead += 30;
	CHECK(gives() >= 30 * MIB);
	return 0;
}

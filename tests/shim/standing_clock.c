/* SPDX-License-Identifier: MIT */
/*
 * A clock that stands still, as under tools that record and replay a program: each wait of the shim
 * ends all the same. The device has 1 GiB, and one stream that does not go on.
 *
 *   standing_clock CASE      SOMASHIM_OOM_WAIT_MS=100 SOMASHIM_DECAY_MS=20 SOMASHIM_FREE_SYNC=never
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipStream_t s, t;
static _Atomic unsigned long asked;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *now)
{
	asked++;
	if (id == CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, id, now);
	*now = (struct timespec){1000, 0};
	return 0;
}

static void *in_flight(uint64_t size)
{
	void *p;

	OK(hipMallocAsync(&p, size, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 4096, s));
	OK(hipFreeAsync(p, s));
	return p;
}

/* Before the pool grows it waits for what is in flight. */
static void grows(void)
{
	void *p, *q;

	p = in_flight(64 * MIB);
	OK(hipMallocAsync(&q, 64 * MIB, t));
	CHECK(p != q);
	OK(hipFreeAsync(q, t));
}

/* Nothing completes before the call gives up. */
static void full(void)
{
	void *p;

	(void)in_flight(600 * MIB);
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, 700 * MIB, t));
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, 700 * MIB));
	GIVES(hipErrorOutOfMemory,
	      hipExtMallocWithFlags(&p, 700 * MIB, hipDeviceMallocFinegrained));
}

/* hipFree does not wait, and hipMalloc waits for what was freed. */
static void frees(void)
{
	void *p;

	for (int i = 0; i < 12; i++) {
		OK(hipMalloc(&p, 64 * MIB));
		if (!i)
			stall(s);
		OK(hipMemsetAsync(p, 1, 4096, s));
		OK(hipFree(p));
	}
}

/* The thread of decay sleeps although its sleeps are over at once. */
static void decays(void)
{
	unsigned long before;
	void *p;

	OK(hipMallocAsync(&p, MIB, t));
	OK(hipFreeAsync(p, t));
	before = asked;
	usleep(300000);
	CHECK(asked - before < 3000);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"grows", grows}, {"full", full}, {"frees", frees}, {"decays", decays}};

int main(int argc, char **argv)
{
	CHECK(preloaded() && argc == 2);
	alarm(30);
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP;
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			_exit(0);
		}
	CHECK(!"such a case");
	return 1;
}

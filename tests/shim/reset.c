/* SPDX-License-Identifier: MIT */
/*
 * hipDeviceReset frees all memory of the device, whichever backing it has. Nothing is lost
 * from one reset to the next, and pointers from before are unknown afterwards.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

#define MIB ((uint64_t)1 << 20)
#define HELD (400 * MIB) /* of 1 GiB: a third one does not fit beside two */

static void *some(bool pool)
{
	void *p;

	if (pool)
		OK(hipMallocAsync(&p, HELD, NULL));
	else
		OK(hipMalloc(&p, HELD));
	OK(hipMemset(p, 1, MIB));
	return p;
}

/* The streams go, and what was being captured on them: nobody is refused afterwards. */
static void in_a_capture(void)
{
	hipStream_t s;
	void *p;

	for (int i = 0; i < 2; i++) {
		OK(hipStreamCreate(&s));
		OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
		OK(hipMallocAsync(&p, MIB, s));
		OK(hipDeviceReset());
		(void)hipGetLastError();
		OK(hipStreamCreate(&s));
		OK(hipMallocAsync(&p, MIB, s));
		OK(hipMemsetAsync(p, 1, MIB, s));
		OK(hipFreeAsync(p, s));
		OK(hipStreamDestroy(s));
	}
}

/* Nothing runs any more that may touch what goes. */
static atomic_int late;

static void is_late(hipStream_t s, hipError_t err, void *arg)
{
	(void)s, (void)err, (void)arg;
	usleep(50000);
	atomic_store(&late, 1);
}

static void under_way(void)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMalloc(&p, 4096));
	OK(hipStreamAddCallback(s, is_late, NULL, 0));
	OK(hipMemsetAsync(p, 1, 4096, s));
	OK(hipDeviceReset());
	CHECK(atomic_load(&late));
}

static void *reset_it(void *arg)
{
	OK(hipDeviceReset());
	return arg;
}

/* HIP forbids that another thread allocates meanwhile, and what it gets may be nothing. But no pool
 * keeps memory that goes with the real call, and hands it out again afterwards. */
static void beside(void)
{
	int (*hold)(const char *, int) = sim_must("somasim_hold");
	int (*held)(void) = sim_must("somasim_holds");
	void (*let_go)(void) = sim_must("somasim_let_go");
	pthread_t thread;
	void *p, *q;

	hold("hipDeviceReset", 0);
	CHECK(!pthread_create(&thread, NULL, reset_it, NULL));
	while (!held())
		usleep(1000);
	(void)hipMalloc(&p, MIB);
	(void)hipMallocAsync(&q, MIB, NULL);
	let_go();
	pthread_join(thread, NULL);
	(void)hipGetLastError();
	OK(hipMalloc(&p, MIB));
	OK(hipMallocAsync(&q, MIB, NULL));
	OK(hipMemset(p, 1, MIB));
	OK(hipMemset(q, 1, MIB));
	OK(hipFreeAsync(q, NULL));
	OK(hipFree(p));
}

int main(void)
{
	uint64_t before;
	hipMemPool_t mine;
	void *p, *q;

	CHECK(preloaded());
	/* A runtime keeps what it needed itself. */
	some(true);
	OK(hipDeviceReset());
	before = device_free(0);
	for (int i = 0; i < 12; i++) {
		p = some(i & 1);
		if (i & 2) {
			/* A pool of the program's, and blocks that were freed. */
			mine = make_pool(0, hipMemHandleTypeNone);
			OK(hipMallocFromPoolAsync(&q, 64 * MIB, mine, NULL));
			OK(hipMemsetAsync(q, 1, MIB, NULL));
			OK(hipFreeAsync(q, NULL));
			OK(hipMallocFromPoolAsync(&q, 32 * MIB, mine, NULL));
		}
		OK(hipDeviceReset());
		CHECK(device_free(0) + 16 * MIB >= before);
		CHECK(hipFree(p) != hipSuccess);
		(void)hipGetLastError();
	}
	/* With work under way. */
	p = some(true);
	for (int i = 0; i < 20; i++)
		OK(hipMemsetAsync(p, i, 8 * MIB, NULL));
	OK(hipDeviceReset());
	CHECK(device_free(0) + 16 * MIB >= before);
	p = some(false);
	OK(hipFree(p));
	/* The reset of a primary context does nothing. */
	p = some(true);
	OK(hipDevicePrimaryCtxReset(0));
	OK(hipMemset(p, 1, MIB));
	OK(hipFree(p));
	in_a_capture();
	under_way();
	beside();
	return 0;
}

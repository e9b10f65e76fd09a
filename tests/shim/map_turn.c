/* SPDX-License-Identifier: MIT */
/*
 * Threads that map at the same time, each in a pool of its own (vmm; the program itself maps, too).
 *
 *   alone   no two of them are inside the runtime's map, unmap or SetAccess at once
 *   stuck   one that stands still in there stops no other
 */
#include <pthread.h>
#include <unistd.h>

#define BYTES 65536
#include "test.h"

#define MIB ((size_t)1 << 20)
#define THREADS 4
#define ROUNDS 6

static const char *const calls[] = {"hipMemMap", "hipMemUnmap", "hipMemSetAccess"};

/* Grows in a few steps, and gives everything back. */
static void use(hipMemPool_t pool, hipStream_t s)
{
	void *p[3];

	for (int i = 0; i < 3; i++)
		OK(hipMallocFromPoolAsync(&p[i], (16 + 8 * (size_t)i) * MIB, pool, s));
	for (int i = 0; i < 3; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(pool, 0));
}

static void *in_pool(void *arg)
{
	int devices = 0, dev;
	hipMemPool_t pool;
	hipStream_t s;

	OK(hipGetDeviceCount(&devices));
	dev = (int)(uintptr_t)arg % devices;
	OK(hipSetDevice(dev));
	pool = make_pool(dev, hipMemHandleTypeNone);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int r = 0; r < ROUNDS; r++)
		use(pool, s);
	OK(hipStreamDestroy(s));
	OK(hipMemPoolDestroy(pool));
	return NULL;
}

/* Memory that the program maps for itself. */
static void *by_hand(void *arg)
{
	/* hipMemAllocationProp since 5.7; older headers have another order. */
	struct {
		int type, handle;
		hipMemLocation at;
		void *win32;
		unsigned char flags[8];
	} prop = {.type = hipMemAllocationTypePinned, .at = {hipMemLocationTypeDevice, 0}};
	hipMemAccessDesc rw = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t h;
	void *va;

	OK(hipMemAddressReserve(&va, 2 * MIB, 0, NULL, 0));
	OK(hipMemCreate(&h, 2 * MIB, (hipMemAllocationProp *)&prop, 0));
	for (int r = 0; r < 4 * ROUNDS; r++) {
		OK(hipMemMap(va, 2 * MIB, 0, h, 0));
		OK(hipMemSetAccess(va, 2 * MIB, &rw, 1));
		fill(va, r);
		CHECK(holds(va, r));
		OK(hipMemUnmap(va, 2 * MIB));
	}
	OK(hipMemRelease(h));
	OK(hipMemAddressFree(va, 2 * MIB));
	return arg;
}

static void alone(void)
{
	int (*count)(const char *) = sim_must("somasim_count_inside");
	int (*most)(void) = sim_must("somasim_most_inside");
	pthread_t thread[THREADS];
	uint64_t before = 0, after = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		CHECK(count(calls[i]) == 0);
		before += sim_count(calls[i]);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, i ? in_pool : by_hand, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		after += sim_count(calls[i]);
	CHECK(after - before > THREADS * ROUNDS);
	fprintf(stderr, "%d calls, at most %d at once\n", (int)(after - before), most());
	CHECK(most() == 1);
}

/* A call that waits for a stream, which waits for this thread. */
static void stuck(void)
{
	int (*hold)(const char *, int) = sim_must("somasim_hold");
	int (*held)(void) = sim_must("somasim_holds");
	void (*let_go)(void) = sim_must("somasim_let_go");
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	pthread_t thread;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		CHECK(hold(calls[i], 0) == 0);
		CHECK(!pthread_create(&thread, NULL, in_pool, NULL));
		while (!held())
			usleep(1000);
		use(pool, s);
		CHECK(held());
		let_go();
		pthread_join(thread, NULL);
	}
	OK(hipStreamDestroy(s));
	OK(hipMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	CHECK(preloaded());
	if (!strcmp(what, "alone"))
		alone();
	else if (!strcmp(what, "stuck"))
		stuck();
	else
		return 2;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Pools are destroyed while other threads work in them without naming them: an allocation
 * uses the current pool, and a synchronization gives back idle memory of all pools.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

static hipStream_t stream;
static void *block;

/* Holds the next call of this name at its end, until let_go(). */
static void hold(const char *name)
{
	int (*fn)(const char *, int) = (int (*)(const char *, int))sim_must("somasim_hold");

	CHECK(fn(name, 1) == 0);
}

static void until_held(void)
{
	int (*fn)(void) = (int (*)(void))sim_call("somasim_holds");

	while (!fn())
		usleep(1000);
}

static void let_go(void)
{
	((void (*)(void))sim_call("somasim_let_go"))();
}

static int other_device(void)
{
	int count = 0;

	OK(hipGetDeviceCount(&count));
	return count > 1;
}

/* ---- growth --------------------------------------------------------------- */

static void *allocates(void *arg)
{
	(void)arg;
	OK(hipSetDevice(0));
	OK(hipMallocAsync(&block, 8 << 20, stream));
	return NULL;
}

/* A pool is destroyed while a thread asks the device for memory for it; another is made. */
static void growth(void)
{
	hipMemPool_t pool, next;
	hipPointerAttribute_t at;
	int dev = other_device();
	pthread_t thread;
	hipStream_t s;
	uint64_t before;
	void *p;

	/* So that the next device has had pools. */
	OK(hipMemPoolDestroy(make_pool(dev, hipMemHandleTypeNone)));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	before = device_free(0);
	pool = make_pool(0, hipMemHandleTypeNone);
	OK(hipDeviceSetMemPool(0, pool));
	hold(backed_by("vmm") ? "hipMemCreate" : "hipExtMallocWithFlags");
	pthread_create(&thread, NULL, allocates, NULL);
	until_held();
	OK(hipMemPoolDestroy(pool));
	GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
	next = make_pool(dev, hipMemHandleTypeNone);
	let_go();
	pthread_join(thread, NULL);

	OK(hipPointerGetAttributes(&at, block));
	CHECK(at.device == 0);
	CHECK(figure(next, hipMemPoolAttrUsedMemCurrent) == 0);
	CHECK(figure(next, hipMemPoolAttrReservedMemCurrent) == 0);
	OK(hipFreeAsync(block, stream));
	OK(hipDeviceSynchronize());
	/* It was the last of its pool. */
	CHECK(device_free(0) == before);
	OK(hipSetDevice(dev));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMallocFromPoolAsync(&p, 8 << 20, next, s));
	OK(hipPointerGetAttributes(&at, p));
	CHECK(at.device == dev);
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolDestroy(next));
}

/* ---- giving back ---------------------------------------------------------- */

static void *synchronizes(void *arg)
{
	(void)arg;
	OK(hipSetDevice(0));
	OK(hipDeviceSynchronize());
	return NULL;
}

/* A pool is destroyed while a synchronization gives its memory back; another is made. With
 * SOMASHIM_LIMIT=16M and two devices it shows whose memory went. */
static void giving_back(void)
{
	hipMemPool_t pool, next;
	pthread_t thread;
	hipStream_t s;
	void *p;

	OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMemPoolDestroy(make_pool(1, hipMemHandleTypeNone)));
	OK(hipSetDevice(0));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	pool = make_pool(0, hipMemHandleTypeNone);
	OK(hipMallocFromPoolAsync(&p, 8 << 20, pool, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipStreamQuery(stream));
	hold(backed_by("vmm") ? "hipMemRelease" : "hipFree");
	pthread_create(&thread, NULL, synchronizes, NULL);
	until_held();
	OK(hipMemPoolDestroy(pool));
	next = make_pool(1, hipMemHandleTypeNone);
	let_go();
	pthread_join(thread, NULL);
	OK(hipMallocAsync(&p, 12 << 20, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipSetDevice(1));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, 24 << 20, s));
	OK(hipMemPoolDestroy(next));
}

/* ---- what is left ---------------------------------------------------------- */

/* Nothing, where nobody has to wait for that. */
static void nothing_left(void)
{
	uint64_t before;
	hipStream_t busy;
	void *p, *q;

	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&busy, hipStreamNonBlocking));
	OK(hipMalloc(&q, 4096));
	before = device_free(0);
	for (int i = 0; i < 48; i++) {
		hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);

		OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, stream));
		OK(hipMemsetAsync(p, 1, 1 << 20, stream));
		if (i == 16)
			stall(busy);
		if (i == 16)
			OK(hipMemsetAsync(q, 1, 4096, busy));
		if (i == 32)
			release(busy);
		if (i == 32)
			while (hipStreamQuery(busy) != hipSuccess)
				usleep(100);
		if (i % 2)
			OK(hipFreeAsync(p, stream));
		while (hipStreamQuery(stream) != hipSuccess)
			usleep(100);
		/* Nor does it matter who is last. */
		if (i % 2 == 0)
			OK(hipFreeAsync(p, stream));
		OK(hipMemPoolDestroy(pool));
		if (i < 16 || i >= 32)
			CHECK(device_free(0) == before);
	}
}

/* ---- many ------------------------------------------------------------------ */

#define MANY 100

/* Pools that have more addresses each than memory: there are enough for all, and some are
 * left for others. On a device of 1 TiB. */
static void many(void)
{
	size_t others = 16ull << 40;
	hipMemPool_t pool[MANY];
	uint64_t before;
	void *p[MANY];

	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	before = device_free(0);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < MANY; i++) {
			pool[i] = make_pool(0, hipMemHandleTypeNone);
			OK(hipMallocFromPoolAsync(&p[i], i % 2 ? 4096 : 8 << 20, pool[i], stream));
			OK(hipMemsetAsync(p[i], 1, 4096, stream));
		}
		void *room = mmap(NULL, others, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		CHECK(room != MAP_FAILED && munmap(room, others) == 0);
		for (int i = 0; i < MANY; i++)
			OK(hipFreeAsync(p[i], stream));
		OK(hipStreamSynchronize(stream));
		for (int i = 0; i < MANY; i++)
			OK(hipMemPoolDestroy(pool[i]));
		CHECK(device_free(0) == before);
	}
}

/* ---- all at once ---------------------------------------------------------- */

#define MAKERS 2
#define OTHERS 2
#ifdef __SANITIZE_THREAD__ /* sees a race in its first rounds, and costs fifteen times */
#define POOLS 40
#else
#define POOLS 200
#endif

static _Atomic bool over;

static void *synchronizes_device(void *arg)
{
	(void)arg;
	OK(hipSetDevice(0));
	while (!over)
		OK(hipDeviceSynchronize());
	return NULL;
}

static void *uses_current(void *arg)
{
	hipPointerAttribute_t at;
	hipStream_t s;
	void *p;

	(void)arg;
	OK(hipSetDevice(0));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (unsigned i = 0; !over; i++) {
		OK(hipMallocAsync(&p, (i % 5 + 1) << 20, s));
		OK(hipPointerGetAttributes(&at, p));
		CHECK(at.device == 0);
		OK(hipFreeAsync(p, s));
	}
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	return NULL;
}

static void *makes_pools(void *arg)
{
	int dev = (int)(intptr_t)arg % 2 ? other_device() : 0;
	unsigned turn = (unsigned)(intptr_t)arg + 1;
	hipStream_t s;
	void *p;

	OK(hipSetDevice(dev));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < POOLS; i++) {
		hipMemPool_t pool = make_pool(dev, hipMemHandleTypeNone);

		if (dev == 0)
			OK(hipDeviceSetMemPool(0, pool));
		OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, s));
		OK(hipFreeAsync(p, s));
		turn = turn * 1664525 + 1013904223;
		for (volatile unsigned n = 0; n < turn >> 18; n++)
			;
		OK(hipMemPoolDestroy(pool));
	}
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	return NULL;
}

static void threads(void)
{
	pthread_t maker[MAKERS], other[2 * OTHERS];
	uint64_t before = device_free(0);

	for (int i = 0; i < OTHERS; i++) {
		pthread_create(&other[2 * i], NULL, synchronizes_device, NULL);
		pthread_create(&other[2 * i + 1], NULL, uses_current, NULL);
	}
	for (int i = 0; i < MAKERS; i++)
		pthread_create(&maker[i], NULL, makes_pools, (void *)(intptr_t)i);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(maker[i], NULL);
	over = true;
	for (int i = 0; i < 2 * OTHERS; i++)
		pthread_join(other[i], NULL);
	OK(hipDeviceSynchronize());
	OK(hipSetDevice(0));
	OK(hipDeviceSynchronize());
	if (!backed_by("vmm"))
		CHECK(device_free(0) == before);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "growth";

	if (!strcmp(what, "growth"))
		growth();
	else if (!strcmp(what, "giving_back"))
		giving_back();
	else if (!strcmp(what, "nothing_left"))
		nothing_left();
	else if (!strcmp(what, "many"))
		many();
	else if (!strcmp(what, "threads"))
		threads();
	else
		return 1;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory that is mapped is open to the devices that the process uses, and to a further one from its
 * first use on. That use waits for nothing that is under way.
 *
 *   second_device used    which devices have access, and when
 *   second_device held    a device is first used while another thread stands in a map
 *   second_device refused the driver refuses access once
 *   second_device threads devices are first used, and all others beside them, by several threads
 *   second_device gap     where access is accepted only without a gap below (7.0 to 7.13)
 */
#include <pthread.h>
#include <unistd.h>

#define BYTES 65536
#include "test.h"

#define MIB ((size_t)1 << 20)
#define SIZE (8 * MIB)

static hipStream_t s;

static bool open_to(void *p, int dev)
{
	hipMemLocation at = {hipMemLocationTypeDevice, dev};
	unsigned long long flags = 0;

	OK(hipMemGetAccess(&flags, &at, p));
	return flags == hipMemAccessFlagsProtReadWrite;
}

#define PART 4096

/* Memsets and copies, which the runtime refuses if the current device has no access: a part of each
 * MiB, because ThreadSanitizer takes its time over whole blocks. */
static void use(void *p, int value)
{
	unsigned char h[PART];

	for (uint64_t at = 0; at < SIZE; at += MIB) {
		unsigned char *part = (unsigned char *)p + at;

		OK(hipMemset(part, value, PART));
		OK(hipMemcpy(h, part, PART, hipMemcpyDeviceToHost));
		CHECK(h[0] == value && h[PART - 1] == value);
	}
}

static void *take(void)
{
	void *p;

	OK(hipMallocAsync(&p, SIZE, s));
	OK(hipStreamSynchronize(s));
	return p;
}

static void used(void)
{
	hipStream_t stalled, other;
	void *p, *q, *r;

	p = take();
	for (int dev = 1; dev < 4; dev++)
		CHECK(!open_to(p, dev));
	/* Work that does not end, and a device that is used for the first time. */
	OK(hipStreamCreateWithFlags(&stalled, hipStreamNonBlocking));
	stall(stalled);
	OK(hipSetDevice(1));
	use(p, 3);
	CHECK(open_to(p, 1) && !open_to(p, 2));
	release(stalled);
	OK(hipStreamSynchronize(stalled));
	/* Memory of both, from now on. */
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipMallocAsync(&q, 3 * SIZE, other));
	CHECK(open_to(q, 0) && open_to(q, 1) && !open_to(q, 2));
	OK(hipSetDevice(0));
	use(q, 4);
	OK(hipMallocAsync(&r, 5 * SIZE, s));
	CHECK(open_to(r, 1));
	/* A third. */
	OK(hipSetDevice(2));
	use(p, 5);
	use(q, 6);
	use(r, 7);
	CHECK(!open_to(r, 3));
	OK(hipSetDevice(0));
	OK(hipFreeAsync(p, s));
	OK(hipFreeAsync(r, s));
	OK(hipFreeAsync(q, other));
	OK(hipDeviceSynchronize());
}

static void *grow(void *arg)
{
	hipStream_t mine;

	OK(hipStreamCreateWithFlags(&mine, hipStreamNonBlocking));
	OK(hipMallocAsync((void **)arg, 64 * MIB, mine));
	return NULL;
}

static void held(void)
{
	int (*hold)(const char *, int) = sim_must("somasim_hold");
	int (*is_held)(void) = sim_must("somasim_holds");
	void (*let_go)(void) = sim_must("somasim_let_go");
	void *p = take(), *large = NULL;
	pthread_t thread;

	CHECK(hold("hipMemMap", 0) == 0);
	CHECK(!pthread_create(&thread, NULL, grow, &large));
	while (!is_held())
		usleep(1000);
	OK(hipSetDevice(1)); /* returns, though the map does not */
	CHECK(!large);
	let_go();
	pthread_join(thread, NULL);
	use(p, 8);
	use(large, 9);
}

static void refused(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	void *p = take();
	uint64_t n;

	fail("hipMemSetAccess:%1");
	OK(hipSetDevice(1));
	CHECK(!open_to(p, 1));
	clear();
	/* The next use tries again, and the one after that has nothing to do. */
	OK(hipSetDevice(1));
	use(p, 2);
	n = sim_count("hipMemSetAccess");
	OK(hipSetDevice(0));
	OK(hipSetDevice(1));
	CHECK(sim_count("hipMemSetAccess") == n);
}

/* A gap is filled by a map, which may wait. So every device has access before there is one. */
static void gap(void)
{
	hipStream_t stalled;
	hipMemPool_t pool;
	uint64_t maps;
	void *p[3];

	for (int i = 0; i < 3; i++)
		p[i] = take();
	CHECK(!open_to(p[2], 1));
	OK(hipFreeAsync(p[1], s));
	OK(hipStreamSynchronize(s));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) < 3 * SIZE);
	OK(hipStreamCreateWithFlags(&stalled, hipStreamDefault));
	stall(stalled);
	maps = sim_count("hipMemMap");
	OK(hipSetDevice(1));
	use(p[0], 3);
	use(p[2], 4);
	CHECK(sim_count("hipMemMap") == maps);
	release(stalled);
	OK(hipSetDevice(0));
	OK(hipDeviceSynchronize());
	p[1] = take();
	OK(hipSetDevice(2));
	use(p[1], 5);
}

#define THREADS 4
#define ROUNDS 10
#define HELD 5

/* Blocks of one device, used while another is current; the pool grows and is trimmed meanwhile. */
static void *beside(void *arg)
{
	unsigned x = (unsigned)(uintptr_t)arg;
	hipMemPool_t pool;
	hipStream_t mine;
	void *p[HELD];

	for (int round = 0; round < ROUNDS; round++) {
		int dev = rand_r(&x) % 4;

		OK(hipSetDevice(dev));
		OK(hipStreamCreateWithFlags(&mine, hipStreamNonBlocking));
		for (int i = 0; i < HELD; i++)
			OK(hipMallocAsync(&p[i], SIZE + rand_r(&x) % SIZE, mine));
		OK(hipStreamSynchronize(mine));
		OK(hipSetDevice(rand_r(&x) % 4));
		for (int i = 0; i < HELD; i++)
			use(p[i], i + 1);
		OK(hipStreamSynchronize(NULL));
		for (int i = 0; i < HELD; i++)
			OK(hipFreeAsync(p[i], mine));
		OK(hipStreamSynchronize(mine));
		OK(hipDeviceGetDefaultMemPool(&pool, dev));
		if (round % 3 == 0)
			OK(hipMemPoolTrimTo(pool, 0));
		OK(hipStreamDestroy(mine));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, beside, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "used";

	CHECK(preloaded());
	alarm(300); /* a lock that is left behind hangs */
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	if (!strcmp(what, "held"))
		held();
	else if (!strcmp(what, "refused"))
		refused();
	else if (!strcmp(what, "gap"))
		gap();
	else if (!strcmp(what, "threads"))
		threads();
	else
		used();
	return 0;
}

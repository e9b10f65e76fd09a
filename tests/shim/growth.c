/* SPDX-License-Identifier: MIT */
/*
 * A pool of virtual memory grows, moves chunks and gives memory back while other threads do
 * the same, and it is opened to a peer while it has gaps. Every call succeeds, also on
 * runtimes that accept access only from the start of a reservation. The device's own figure
 * shows what came back.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "borders.h"

#define MIB ((size_t)1 << 20)
#define THREADS 6
#define ROUNDS 60

static hipMemPool_t pool;

static uint64_t reserved(void)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

static hipStream_t stream_new(void)
{
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	return s;
}

/* ---- one thread stands between map and access ---------------------------- */

static void *grow(void *arg)
{
	hipStream_t s = stream_new();
	int value = (int)(uintptr_t)arg;
	char *p;

	OK(hipMallocAsync((void **)&p, 20 * MIB, s));
	stamp_borders(p, 20 * MIB, value, s);
	check_borders(p, 20 * MIB, value, s);
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	return NULL;
}

static void beside(const char *call, int at_end)
{
	int (*hold)(const char *, int) = (int (*)(const char *, int))sim_call("somasim_hold");
	int (*holds)(void) = (int (*)(void))sim_call("somasim_holds");
	void (*let_go)(void) = (void (*)(void))sim_call("somasim_let_go");
	uint64_t before = sim_count("hipMallocAsync");
	pthread_t a, b;

	CHECK(hold && holds && let_go);
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
	CHECK(hold(call, at_end) == 0);
	CHECK(!pthread_create(&a, NULL, grow, (void *)1));
	while (!holds())
		sched_yield();
	CHECK(!pthread_create(&b, NULL, grow, (void *)2));
	/* Long enough for b to do all that it can without a. */
	usleep(100000);
	let_go();
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CHECK(sim_count("hipMallocAsync") == before); /* no call was passed on */
}

/* ---- many at once --------------------------------------------------------- */

static void *churn(void *arg)
{
	struct {
		char *p;
		size_t size;
		int value;
	} b[4] = {{0}};
	unsigned seed = (unsigned)(uintptr_t)arg * 7919 + 1;
	hipStream_t s = stream_new();

	for (int r = 0; r < ROUNDS; r++) {
		int i = rand_r(&seed) % 4;

		if (b[i].p) {
			check_borders(b[i].p, b[i].size, b[i].value, s);
			OK(hipFreeAsync(b[i].p, s));
		}
		b[i].size = (size_t)(1 + rand_r(&seed) % 24) * 700001;
		b[i].value = rand_r(&seed) % 255;
		OK(hipMallocAsync((void **)&b[i].p, b[i].size, s));
		stamp_borders(b[i].p, b[i].size, b[i].value, s);
		if (r % 8 == 7) {
			OK(hipStreamSynchronize(s));
			OK(hipMemPoolTrimTo(pool, 0));
		}
	}
	for (int i = 0; i < 4; i++)
		if (b[i].p) {
			check_borders(b[i].p, b[i].size, b[i].value, s);
			OK(hipFreeAsync(b[i].p, s));
		}
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	return NULL;
}

static void many(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, churn, (void *)(uintptr_t)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
}

/* ---- gaps ------------------------------------------------------------------ */

/* Three blocks; the memory of the middle one goes back; then a peer gets access. */
static void gaps(hipStream_t s)
{
	hipMemAccessDesc d = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
	size_t size = 24 * MIB;
	hipStream_t peer;
	char *p[3], *q;
	int n = 0;

	OK(hipGetDeviceCount(&n));
	for (int i = 0; i < 3; i++) {
		OK(hipMallocAsync((void **)&p[i], size, s));
		stamp_borders(p[i], size, 10 + i, s);
	}
	OK(hipFreeAsync(p[1], s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	CHECK(reserved() < 3 * size);
	if (n > 1) {
		OK(hipMemPoolSetAccess(pool, &d, 1));
		OK(hipMemPoolGetAccess(&flags, pool, &d.location));
		CHECK(flags == hipMemAccessFlagsProtReadWrite);
		/* The peer's own stream reads what was there before. */
		OK(hipSetDevice(1));
		peer = stream_new();
		check_borders(p[0], size, 10, peer);
		check_borders(p[2], size, 12, peer);
		OK(hipStreamDestroy(peer));
		OK(hipSetDevice(0));
	}
	OK(hipMallocAsync((void **)&q, 40 * MIB, s));
	stamp_borders(q, 40 * MIB, 99, s);
	check_borders(q, 40 * MIB, 99, s);
	check_borders(p[0], size, 10, s);
	check_borders(p[2], size, 12, s);
	OK(hipFreeAsync(p[0], s));
	OK(hipFreeAsync(p[2], s));
	OK(hipFreeAsync(q, s));
	OK(hipStreamSynchronize(s));
}

/* ---- back and forth ---------------------------------------------------------- */

static bool playing(const char *quirk)
{
	const char *q = getenv("SOMASIM_QUIRKS");

	return q && strstr(q, quirk);
}

/* More in turn than the device has, beside a block that lives: where the runtime
 * does not give back what it is given (V6, V7), it must not be given it. */
static void cycles(hipStream_t s)
{
	uint64_t before = device_free(0);
	char *keep, *p;

	OK(hipMallocAsync((void **)&keep, MIB, s));
	stamp_borders(keep, MIB, 42, s);
	for (int i = 0; i < 40; i++) {
		OK(hipMallocAsync((void **)&p, 256 * MIB, s));
		OK(hipMemsetAsync(p, i, 4096, s));
		OK(hipFreeAsync(p, s));
		OK(hipStreamSynchronize(s));
		OK(hipMemPoolTrimTo(pool, 0));
		OK(hipDeviceSynchronize());
	}
	/* Parts come back while the pool, and with it the addresses, is in use. */
	if (!playing("phys-bound") && !playing("release-leaks"))
		CHECK(device_free(0) + 16 * MIB >= before);
	check_borders(keep, MIB, 42, s);
	OK(hipFreeAsync(keep, s));
	OK(hipStreamSynchronize(s));
}

int main(void)
{
	hipStream_t s;
	uint64_t before;

	CHECK(preloaded());
	alarm(300);
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP;
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	s = stream_new();
	OK(hipDeviceSynchronize());
	before = device_free(0);
	cycles(s);
	if (playing("release-leaks"))
		return 0; /* nothing ever comes back */
	if (!playing("phys-bound")) {
		beside("hipMemMap", 1);
		beside("hipMemSetAccess", 0);
		beside("hipMemSetAccess", 1);
		many();
		gaps(s);
	}
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
	CHECK(device_free(0) + 8 * MIB >= before);
	OK(hipStreamDestroy(s));
	return 0;
}

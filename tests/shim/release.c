/* SPDX-License-Identifier: MIT */
/*
 * When idle memory is given back: thresholds of the environment and of the program, decay,
 * and memory that is reserved from the start. No call waits for a stream that it does not
 * name.
 *
 *   release CASE     each in the environment that it needs
 */
#include <time.h>
#include <unistd.h>

#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipMemPool_t pool;
static hipStream_t s, t;

static uint64_t reserved(void)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

static void set_threshold(uint64_t v)
{
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &v));
}

/* Three segments, all of them idle. */
static void idle_96(void)
{
	void *p[3];

	for (int i = 0; i < 3; i++)
		OK(hipMallocAsync(&p[i], 32 * MIB, s));
	for (int i = 0; i < 3; i++)
		OK(hipFreeAsync(p[i], s));
	CHECK(reserved() == 96 * MIB);
}

static void nap(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* SOMASHIM_RELEASE_THRESHOLD=48M: of every pool, until the program sets another. */
static void by_environment(void)
{
	hipMemPool_t mine = make_pool(0, hipMemHandleTypeNone);

	CHECK(figure(pool, hipMemPoolAttrReleaseThreshold) == 48 * MIB);
	CHECK(figure(mine, hipMemPoolAttrReleaseThreshold) == 48 * MIB);
	idle_96();
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 64 * MIB); /* exact: one more would leave 32 */
	nap(1200);
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 64 * MIB); /* it does not decay */
	set_threshold(0);
	CHECK(figure(pool, hipMemPoolAttrReleaseThreshold) == 0);
	CHECK(figure(mine, hipMemPoolAttrReleaseThreshold) == 48 * MIB);
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
	OK(hipMemPoolDestroy(mine));
}

/* SOMASHIM_RELEASE_THRESHOLD=0:64M,1:10% on two devices of 1 GiB. */
static void by_device(void)
{
	hipMemPool_t other = make_pool(1, hipMemHandleTypeNone), def;

	CHECK(figure(pool, hipMemPoolAttrReleaseThreshold) == 64 * MIB);
	CHECK(figure(other, hipMemPoolAttrReleaseThreshold) == 1024 * MIB / 10);
	OK(hipDeviceGetDefaultMemPool(&def, 1));
	CHECK(figure(def, hipMemPoolAttrReleaseThreshold) == 1024 * MIB / 10);
	OK(hipMemPoolDestroy(other));
}

/* Nothing set, SOMASHIM_DECAY_MS=200: what is idle stays for as long, and no longer. */
static void decays(void)
{
	CHECK(figure(pool, hipMemPoolAttrReleaseThreshold) == 0);
	idle_96();
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 96 * MIB);
	nap(300);
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
	/* Where the program has said how much stays, no clock says otherwise. */
	set_threshold(UINT64_MAX);
	idle_96();
	OK(hipDeviceSynchronize());
	nap(300);
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 96 * MIB);
}

/* SOMASHIM_DECAY_MS=0: at the next synchronization, as HIP documents a threshold of 0. */
static void at_once(void)
{
	idle_96();
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 0);
}

/* SOMASHIM_INITIAL=100M: there before the first block, and blocks come out of it. */
static void from_the_start(void)
{
	uint64_t segments;
	void *p;

	set_threshold(UINT64_MAX);
	OK(hipMallocAsync(&p, 4096, s));
	CHECK(reserved() >= 100 * MIB);
	segments = reserved();
	OK(hipFreeAsync(p, s));
	OK(hipMallocAsync(&p, 90 * MIB, s));
	CHECK(reserved() == segments);
	OK(hipFreeAsync(p, s));
}

/* A synchronization of s, or a trim, does not wait for t, which stands. Where giving
 * back need not wait for the device, what s has freed goes at once. */
static void nobody_waits(void)
{
	const char *backing = getenv("SOMASHIM_BACKING");
	bool free_waits = !backing || !strcmp(backing, "hip");
	hipEvent_t e;
	void *p, *q;

	set_threshold(0);
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	for (int how = 0; how < 3; how++) {
		OK(hipMallocAsync(&p, 64 * MIB, s));
		OK(hipMallocAsync(&q, 64 * MIB, t));
		stall(t);
		OK(hipMemsetAsync(q, 1, 64 * MIB, t));
		OK(hipFreeAsync(q, t));
		OK(hipFreeAsync(p, s));
		OK(hipEventRecord(e, s));
		if (how == 0) {
			OK(hipStreamSynchronize(s));
		} else if (how == 1) {
			OK(hipEventSynchronize(e));
		} else {
			while (hipEventQuery(e) != hipSuccess)
				;
			OK(hipMemPoolTrimTo(pool, 0));
		}
		CHECK(reserved() == (free_waits ? 128 : 64) * MIB);
		release(t);
		OK(hipDeviceSynchronize());
		CHECK(reserved() == 0);
	}
	OK(hipEventDestroy(e));
}

/* A trim means what is idle when it is asked for, whenever that goes: what a stream still
 * works with stays for the threshold to keep. And what is idle goes at once if all is. */
static void trim_beside(unsigned flags)
{
	hipStream_t done, busy;
	const char *backing = getenv("SOMASHIM_BACKING");
	bool free_waits = !backing || !strcmp(backing, "hip");
	void *p, *q;

	set_threshold(UINT64_MAX);
	OK(hipStreamCreateWithFlags(&done, flags));
	OK(hipStreamCreateWithFlags(&busy, flags));
	OK(hipMallocAsync(&p, 64 * MIB, done));
	OK(hipMallocAsync(&q, 64 * MIB, busy));
	stall(busy);
	OK(hipMemsetAsync(q, 1, 64 * MIB, busy));
	OK(hipFreeAsync(q, busy));
	OK(hipFreeAsync(p, done));
	OK(hipStreamSynchronize(done));
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(reserved() == (free_waits ? 128 : 64) * MIB);
	release(busy);
	OK(hipStreamSynchronize(busy));
	CHECK(reserved() == 64 * MIB);
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(reserved() == 0);
	OK(hipStreamDestroy(done));
	OK(hipStreamDestroy(busy));
}

/* A trim finds out by itself that the device is idle. */
static void trim_unasked(hipStream_t on)
{
	void *p;

	OK(hipMallocAsync(&p, 64 * MIB, on));
	OK(hipMemsetAsync(p, 1, MIB, on));
	OK(hipFreeAsync(p, on));
	while (RUNTIME(hipStreamQuery)(on) != hipSuccess) /* the shim does not know of it */
		;
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(reserved() == 0);
}

static void trim_of_the_idle(void)
{
	hipStream_t blocking;

	OK(hipStreamCreate(&blocking));
	for (int i = 0; i < 2; i++) {
		set_threshold(i ? UINT64_MAX : 0);
		trim_unasked(s);
		trim_unasked(blocking);
		trim_unasked(NULL);
	}
	OK(hipStreamDestroy(blocking));
	trim_beside(hipStreamNonBlocking);
	trim_beside(hipStreamDefault);
}

/* With memory short of what is asked for, but not of what is free, what a threshold
 * keeps is kept: sizes that do not fit bring more, they do not push out. */
static void under_pressure(void)
{
	void *p[10], *q;

	set_threshold(UINT64_MAX);
	for (int i = 0; i < 10; i++)
		OK(hipMallocAsync(&p[i], 20 * MIB, s));
	for (int i = 0; i < 10; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipDeviceSynchronize());
	CHECK(reserved() == 200 * MIB);
	for (int i = 30; i < 60; i += 7) {
		OK(hipMallocAsync(&q, (uint64_t)i * MIB, s));
		CHECK(reserved() >= 200 * MIB);
		OK(hipFreeAsync(q, s));
		OK(hipDeviceSynchronize());
		CHECK(reserved() >= 200 * MIB);
	}
	/* Out of memory is another matter: then all of it is there to be had. */
	OK(hipMallocAsync(&q, 1000 * MIB, s));
	OK(hipFreeAsync(q, s));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"by_environment", by_environment},
	{"by_device", by_device},
	{"decays", decays},
	{"at_once", at_once},
	{"from_the_start", from_the_start},
	{"nobody_waits", nobody_waits},
	{"under_pressure", under_pressure},
	{"trim_of_the_idle", trim_of_the_idle},
};

int main(int argc, char **argv)
{
	CHECK(preloaded());
	alarm(60);
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	fprintf(stderr, "usage: release CASE\n");
	return 2;
}

/* SPDX-License-Identifier: MIT */
/*
 * Idle memory is given back in programs that synchronize streams and events but never the
 * device: after its decay time, or at once where that is set. No call waits for a stream
 * that it does not name, and a loop keeps the memory that it needs.
 *
 *   stream_sync_release CASE       each in the environment that it needs
 */
#include <time.h>
#include <unistd.h>

#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipMemPool_t pool;
static hipStream_t s, t;
static hipEvent_t e;
static void *keep;

static uint64_t reserved(void)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

static void set_threshold(uint64_t v)
{
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &v));
}

static void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Three segments, used and freed. */
static void use_96(hipStream_t on)
{
	void *p[3];

	for (int i = 0; i < 3; i++)
		OK(hipMallocAsync(&p[i], 32 * MIB, on));
	for (int i = 0; i < 3; i++) {
		OK(hipMemsetAsync(p[i], i, 4096, on));
		OK(hipFreeAsync(p[i], on));
	}
	CHECK(reserved() >= 96 * MIB);
}

static void sync_with(hipStream_t on, bool by_event)
{
	if (!by_event) {
		OK(hipStreamSynchronize(on));
		return;
	}
	OK(hipEventRecord(e, on));
	OK(hipEventSynchronize(e));
}

/* SOMASHIM_DECAY_MS=200, and nothing else is set. */
static void decays(bool by_event)
{
	/* A synchronization here and there is enough. */
	use_96(s);
	sync_with(s, by_event);
	CHECK(reserved() >= 96 * MIB);
	nap(400);
	/* (An event may not speak for the last free.) */
	for (int i = 0; i < 1 + by_event; i++) {
		sync_with(s, by_event);
		nap(by_event ? 400 : 0);
	}
	CHECK(reserved() < 4 * MIB);
	/* One that goes on with less than it had. (On a machine that is slow enough the
	 * memory has come of age at once.) */
	double from = now_ms();
	use_96(s);
	for (int i = 0; i < 40; i++) {
		OK(hipMemsetAsync(keep, 1, 4096, s));
		sync_with(s, by_event);
		bool there = reserved() >= 96 * MIB;
		CHECK(i > 2 || there || now_ms() - from > 150);
		nap(20);
	}
	CHECK(reserved() < 4 * MIB);
}

/* A threshold holds at each of them, SOMASHIM_DECAY_MS=0 too. */
static void exact(bool by_event)
{
	for (int i = 0; i < 3; i++) {
		if (!getenv("SOMASHIM_DECAY_MS"))
			set_threshold(i == 1 ? 32 * MIB : 0);
		use_96(s);
		sync_with(s, by_event);
		/* A command of ours on a blocking stream may have to be waited for once. */
		sync_with(s, by_event);
		CHECK(reserved() == (!getenv("SOMASHIM_DECAY_MS") && i == 1 ? 32 * MIB : 0));
	}
}

/* Nor does t, which stands, hold up s; when it has ended, a synchronization with it is
 * enough. */
static void others(void)
{
	bool waits = !backed_by("hsa");
	double t0;

	set_threshold(0);
	stall(t);
	OK(hipMemsetAsync(keep, 1, 4096, t));
	use_96(s);
	t0 = now_ms();
	for (int i = 0; i < 100; i++)
		OK(hipStreamSynchronize(s));
	CHECK(now_ms() - t0 < 2000);
	/* On vmm a pool that goes on growing has a little more than it needed. */
	CHECK(waits ? reserved() >= 96 * MIB && reserved() <= 100 * MIB : reserved() == 0);
	release(t);
	OK(hipStreamSynchronize(t));
	CHECK(reserved() == 0);
}

static uint64_t changes(void)
{
	return sim_count("hipExtMallocWithFlags") + sim_count("hipFree") +
	       sim_count("hipMemCreate") + sim_count("hipMemMap") + sim_count("hipMemUnmap") +
	       sim_count("hsa_amd_memory_pool_allocate") + sim_count("hsa_amd_memory_pool_free");
}

/* Everything by default: a loop gets the same memory each time round, for longer than the
 * time of decay. */
static void loop(void)
{
	double end = now_ms() + 3700;
	uint64_t before = 0;
	void *p[4];

	while (now_ms() < end) {
		/* What was grown ahead and not used may have gone by then. */
		if (!before && now_ms() > end - 1200)
			before = changes();
		for (int k = 0; k < 4; k++)
			OK(hipMallocAsync(&p[k], (uint64_t)(k + 1) * 8 * MIB, s));
		OK(hipMemsetAsync(p[0], 1, 4096, s));
		OK(hipStreamSynchronize(s));
		for (int k = 0; k < 4; k++)
			OK(hipFreeAsync(p[k], s));
		OK(hipStreamSynchronize(s));
		nap(1);
	}
	CHECK(before && changes() == before);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	void *p;

	CHECK(preloaded());
	alarm(100);
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	/* With the null stream in use and without, joined and not. */
	for (int how = 0; how < 4; how++) {
		OK(hipStreamCreateWithFlags(&s, how & 1 ? hipStreamNonBlocking : 0));
		OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
		if (!how)
			OK(hipMalloc(&keep, 4096));
		if (how & 2) {
			OK(hipMalloc(&p, 1000));
			OK(hipMemset(p, 0, 1000));
			OK(hipStreamSynchronize(NULL));
		}
		if (!strcmp(what, "decays"))
			decays(false);
		else if (!strcmp(what, "decays_events"))
			decays(true);
		else if (!strcmp(what, "exact"))
			exact(false);
		else if (!strcmp(what, "exact_events"))
			exact(true);
		else if (!strcmp(what, "others"))
			others();
		else if (!strcmp(what, "loop"))
			loop();
		else
			return 2;
		OK(hipStreamDestroy(s));
		OK(hipStreamDestroy(t));
		OK(hipDeviceSynchronize());
	}
	return 0;
}

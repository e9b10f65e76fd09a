/* SPDX-License-Identifier: MIT */
/*
 * A request that cannot fit takes nothing on its way, whether it is more than the device has, than
 * is left of it, or than a limit allows; and it costs the pool no idle memory.
 *
 *   cannot_fit        each backing, a device of 64 GiB
 *   cannot_fit limit  with SOMASHIM_LIMIT=1G
 */
#include "test.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define BLOCKS 8

static hipStream_t s;
static hipMemPool_t pool;

static uint64_t reserved(void)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

static uint64_t given(void)
{
	return sim_count("hipMemRelease") + sim_count("hipFree") +
	       sim_count("hsa_amd_memory_pool_free");
}

static void nap(long ms)
{
	struct timespec ts = {0, ms * 1000000};

	nanosleep(&ts, NULL);
}

/* As often as one likes. `most`: calls that create a chunk. Where the device is asked at all it is
 * asked for everything at once, which takes nothing. (A segment is one call anyway.) */
static void refused(uint64_t size, uint64_t most)
{
	uint64_t before = reserved(), creates, gives;
	void *p;

	for (int i = 0; i < 3; i++) {
		creates = sim_count("hipMemCreate");
		gives = given();
		GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, size, s));
		CHECK(sim_count("hipMemCreate") - creates <= most);
		CHECK(given() == gives && reserved() == before);
	}
}

/* Idle memory of the pool, and an idle device. */
static void make_idle(void)
{
	void *p[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		OK(hipMallocAsync(&p[i], 32 * MIB, s));
	for (int i = 0; i < BLOCKS; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	CHECK(reserved() >= BLOCKS * 32 * MIB);
}

/* The free figure costs a call, and growing asked for it once before. */
static void asks_once(void)
{
	uint64_t asked = sim_count("hipMemGetInfo");
	void *p[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		OK(hipMallocAsync(&p[i], 512 * MIB, s));
	CHECK(sim_count("hipMemGetInfo") - asked <= BLOCKS);
	for (int i = 0; i < BLOCKS; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(pool, 0));
}

int main(int argc, char **argv)
{
	hipError_t (*other)(void **, size_t) = RUNTIME(hipMalloc);
	bool limit = argc > 1 && !strcmp(argv[1], "limit");
	void *p, *others;

	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	if (!limit)
		asks_once();
	make_idle();
	refused(70 * GIB, limit ? 0 : 1);
	if (limit) {
		refused(2 * GIB, 0);
		OK(hipMallocAsync(&p, 700 * MIB, s));
		return 0;
	}
	/* Another process has most of it. */
	OK(other(&others, 60 * GIB));
	nap(20); /* its figure may be 10 ms old */
	refused(5 * GIB, 1);
	/* So much is there, with what is idle. */
	OK(hipMallocAsync(&p, 64 * GIB - 60 * GIB - 128 * MIB, s));
	OK(hipFreeAsync(p, s));
	return 0;
}

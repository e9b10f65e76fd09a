/* SPDX-License-Identifier: MIT */
/*
 * One stream allocates, many streams free what it hands on, and the host never
 * synchronizes. The device is idle after each round, so the pool must not grow beyond one
 * or two rounds.
 */
#include <unistd.h>

#include "test.h"

#define CONSUMERS 48
#define ROUNDS 300
#define BLOCK (1u << 20)

/* The runtime's own, from which the shim learns nothing. */
static hipError_t (*query)(hipStream_t);

int main(void)
{
	hipStream_t from, to[CONSUMERS];
	void *sim = sim_call("somasim_stall_stream");
	uint64_t all = UINT64_MAX, reserved;
	hipMemPool_t pool;
	hipEvent_t event;
	void *p[CONSUMERS];

	if (!sim)
		return SKIP;
	query = RUNTIME(hipStreamQuery);
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &all));
	OK(hipStreamCreateWithFlags(&from, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	for (int i = 0; i < CONSUMERS; i++)
		OK(hipStreamCreateWithFlags(&to[i], hipStreamNonBlocking));
	for (int round = 0; round < ROUNDS; round++) {
		/* All of them first: whoever has work of this round can't be known to be done
		 * with the last. */
		for (int i = 0; i < CONSUMERS; i++)
			OK(hipMallocAsync(&p[i], BLOCK, from));
		OK(hipEventRecord(event, from));
		for (int i = 0; i < CONSUMERS; i++) {
			OK(hipStreamWaitEvent(to[i], event, 0));
			OK(hipMemsetAsync(p[i], i, 4096, to[i]));
			OK(hipFreeAsync(p[i], to[i]));
		}
		for (int i = 0; i < CONSUMERS; i++)
			while (query(to[i]) == hipErrorNotReady)
				usleep(50);
	}
	reserved = figure(pool, hipMemPoolAttrReservedMemCurrent);
	if (reserved > 3ull * CONSUMERS * BLOCK) {
		fprintf(stderr, "%llu MiB reserved, a round needs %u\n",
			(unsigned long long)reserved >> 20, CONSUMERS * BLOCK >> 20);
		return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A producer allocates, a consumer on another stream frees, at most 8 rounds
 * behind: cross events|plain. Prints what is reserved after 1,000 and after 100,000
 * rounds, and how often the host waited. (Fences: SOMASHIM_STATS at exit.)
 */
#include <stdbool.h>
#include <string.h>

#include "bench/bench.h"

#define BEHIND 8
#define BLOCK (1 << 20)

static uint64_t waits(void)
{
	uint64_t (*count)(const char *) = symbol("somasim_call_count");

	return count ? count("hipStreamSynchronize") + count("hipEventSynchronize") +
			       count("hipDeviceSynchronize") :
		       0;
}

int main(int argc, char **argv)
{
	bool events = argc == 2 && !strcmp(argv[1], "events");
	uint64_t reserved = 0, own = 0, before;
	hipEvent_t made[BEHIND], done[BEHIND];
	hipStream_t producer, consumer;
	void *block[BEHIND];
	hipMemPool_t pool;

	if (argc != 2)
		die("usage: cross events|plain");
	CHECK(hipStreamCreateWithFlags(&producer, hipStreamNonBlocking));
	CHECK(hipStreamCreateWithFlags(&consumer, hipStreamNonBlocking));
	CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < BEHIND; i++) {
		CHECK(hipEventCreateWithFlags(&made[i], hipEventDisableTiming));
		CHECK(hipEventCreateWithFlags(&done[i], hipEventDisableTiming));
	}
	before = waits();
	for (int r = 0; r < 100000; r++) {
		int i = r % BEHIND;

		/* The program's own wait: for the consumer's last use of this place. */
		if (r >= BEHIND) {
			CHECK(hipEventSynchronize(done[i]));
			own++;
			if (events)
				CHECK(hipStreamWaitEvent(producer, done[i], 0));
		}
		CHECK(hipMallocAsync(&block[i], BLOCK, producer));
		CHECK(hipMemsetAsync(block[i], 1, 64, producer));
		CHECK(hipEventRecord(made[i], producer));
		CHECK(hipStreamWaitEvent(consumer, made[i], 0));
		CHECK(hipMemsetAsync(block[i], 2, 64, consumer));
		CHECK(hipFreeAsync(block[i], consumer));
		CHECK(hipEventRecord(done[i], consumer));
		if (r == 999 || r == 99999) {
			CHECK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent,
						     &reserved));
			printf("reserved %lu\n", (unsigned long)reserved);
		}
	}
	printf("waits %ld\n", (long)(waits() - before - own));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A runtime that never takes exported memory back (hip#3886). An exported block costs its
 * own size, not the whole segment.
 */
#include "test.h"

#define ROUNDS 200
#define MB (1ll << 20)

/* What the device has lost, where the same without us loses ROUNDS * size. It is less than nothing
 * if memory of earlier rounds went back meanwhile. */
static int64_t lost(size_t size, bool async)
{
	uint64_t before = device_free(0);
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);
	void *p;

	for (int i = 0; i < ROUNDS; i++) {
		if (async)
			OK(hipMallocFromPoolAsync(&p, size, pool, NULL));
		else
			OK(hipMalloc(&p, size));
		if (async)
			OK(hipMemPoolExportPointer(&data, p));
		else
			OK(hipIpcGetMemHandle(&handle, p));
		if (async)
			OK(hipFreeAsync(p, NULL));
		else
			OK(hipFree(p));
		OK(hipStreamSynchronize(NULL));
	}
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(pool));
	return (int64_t)(before - device_free(0));
}

int main(void)
{
	CHECK(preloaded());
	(void)lost(1000, false); /* what a real device takes for itself at the first calls */
	(void)lost(1000, true);
	for (int async = 0; async < 2; async++) {
		/* Two segments to find out, one to use up. */
		CHECK(lost(1000, async) <= 24 * MB);
		CHECK(lost(100000, async) <= 3 * ROUNDS * 100000ll + 24 * MB);
	}
	return 0;
}

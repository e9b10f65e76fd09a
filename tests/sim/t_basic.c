/* SPDX-License-Identifier: MIT */
/* Allocation, copies, memsets, free memory and the last error, on one stream. */
#include "test.h"

int main(void)
{
	size_t avail0, avail, total;
	char *d, *e, *p = (char *)0x1234, host[4096], back[4096];
	hipPointerAttribute_t attr;
	hipDeviceProp_t prop;
	int n, v;

	OK(hipGetDeviceCount(&n));
	CHECK(n == 1);
	OK(hipRuntimeGetVersion(&v));
	CHECK(v == 50731921);
	OK(hipGetDeviceProperties(&prop, 0));
	CHECK(prop.warpSize == 64);
	OK(hipMemGetInfo(&avail0, &total));
	CHECK(avail0 == total);

	OK(hipMalloc((void **)&d, 3 << 20));
	OK(hipMalloc((void **)&e, 100));
	CHECK((uintptr_t)d % (2 << 20) == 0 && (uintptr_t)e % 4096 == 0);
	OK(hipMemGetInfo(&avail, &total));
	CHECK(avail == avail0 - (3 << 20) - 4096);
	memset(host, 7, sizeof host);
	OK(hipMemcpy(d, host, sizeof host, hipMemcpyHostToDevice));
	OK(hipMemset(d + 4096, 9, 4096));
	OK(hipMemcpy(back, d, 4096, hipMemcpyDeviceToHost));
	CHECK(!memcmp(host, back, 4096));
	OK(hipMemcpy(back, d + 4096, 4096, hipMemcpyDeviceToHost));
	CHECK(back[0] == 9 && back[4095] == 9);
	OK(hipMemsetD32((hipDeviceptr_t)d, 0x01020304, 10));
	OK(hipMemcpy(back, d, 44, hipMemcpyDeviceToHost));
	CHECK(back[0] == 4 && back[39] == 1 && back[40] == 7);

	OK(hipPointerGetAttributes(&attr, d + 5));
	CHECK((int)attr.memoryType == 1 && attr.device == 0 && attr.devicePointer == d + 5);
	hipDeviceptr_t base;
	size_t size;
	OK(hipMemGetAddressRange(&base, &size, e + 3));
	CHECK(base == e && size == 100);
	EXPECT(hipMemset(e, 0, 101), hipErrorInvalidValue);

	/* A failed call does not write the pointer and sets the last error. */
	EXPECT(hipMalloc((void **)&p, (size_t)1 << 60), hipErrorOutOfMemory);
	CHECK(p == (char *)0x1234);
	EXPECT(hipPeekAtLastError(), hipErrorOutOfMemory);
	EXPECT(hipGetLastError(), hipErrorOutOfMemory);
	EXPECT(hipGetLastError(), hipSuccess);
	EXPECT(hipMalloc((void **)&p, (size_t)1 << 60), hipErrorOutOfMemory);
	OK(hipGetDevice(&n));
	EXPECT(hipGetLastError(), hipSuccess); /* before 7.0 success overwrites it */

	OK(hipFree(NULL));
	OK(hipFree(d));
	EXPECT(hipFree(d), hipErrorInvalidValue);
	OK(hipFree(e));
	EXPECT(hipFree(host), hipErrorInvalidValue);
	OK(hipMemGetInfo(&avail, &total));
	CHECK(avail == avail0);

	/* Memory that was freed reads as zeros when it is allocated again. */
	OK(hipMalloc((void **)&d, 3 << 20));
	OK(hipMemcpy(back, d, 4096, hipMemcpyDeviceToHost));
	for (int i = 0; i < 4096; i++)
		CHECK(back[i] == 0);
	OK(hipFree(d));

	/* A host that waits for each command is never ahead; of 1,000 commands in a row half are,
	 * in the mean. */
	uint64_t (*behind)(void) = control("somasim_mean_behind");
	hipStream_t s;
	CHECK(behind() == 0);
	OK(hipStreamCreate(&s));
	OK(hipMalloc((void **)&d, 4096));
	stall(s);
	for (int i = 0; i < 1000; i++)
		OK(hipMemsetAsync(d, 1, 4096, s));
	CHECK(behind() > 400 && behind() < 500);
	release(s);
	OK(hipStreamSynchronize(s));
	OK(hipFree(d));
	OK(hipStreamDestroy(s));

	uint64_t (*count)(const char *) = control("somasim_call_count");
	CHECK(count("hipFree") == 7);
	CHECK(count("hsa_amd_memory_pool_allocate") == 0);
	return 0;
}

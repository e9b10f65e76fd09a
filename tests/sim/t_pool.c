/* SPDX-License-Identifier: MIT */
/* Native pools: reuse in stream order, release thresholds, attributes, and errors. */
#include "test.h"

static uint64_t attr(hipMemPool_t p, hipMemPoolAttr a)
{
	uint64_t v = 0;

	OK(hipMemPoolGetAttribute(p, a, &v));
	return v;
}

int main(void)
{
	hipMemPool_t def, cur, mine;
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipStream_t a, b;
	uint64_t keep = UINT64_MAX, v;
	char *p, *q, *r;
	int off = 0, version;

	OK(hipRuntimeGetVersion(&version));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipDeviceGetMemPool(&cur, 0));
	CHECK(def == cur);
	CHECK(attr(def, hipMemPoolAttrReleaseThreshold) == 0);
	OK(hipMemPoolSetAttribute(def, hipMemPoolAttrReleaseThreshold, &keep));

	/* The stream that freed a block gets it back at once, with work pending. Another stream
	 * gets new memory until the free has been reached. */
	stall(a);
	OK(hipMallocAsync((void **)&p, 1 << 20, a));
	OK(hipMemsetAsync(p, 1, 1 << 20, a));
	OK(hipFreeAsync(p, a));
	OK(hipMallocAsync((void **)&q, 1 << 20, b));
	CHECK(q != p);
	OK(hipMallocAsync((void **)&r, 1 << 20, a));
	CHECK(r == p);
	OK(hipFreeAsync(r, a));
	CHECK(attr(def, hipMemPoolAttrReservedMemCurrent) == 2 << 20);
	CHECK(attr(def, hipMemPoolAttrUsedMemCurrent) == 1 << 20);
	CHECK(attr(def, hipMemPoolAttrUsedMemHigh) == 2 << 20);
	/* A trim neither waits for a free that has not been reached nor releases its block. */
	OK(hipMemPoolTrimTo(def, 0));
	CHECK(attr(def, hipMemPoolAttrReservedMemCurrent) == 2 << 20);
	release(a);
	OK(hipStreamSynchronize(a));
	/* Opportunistic reuse can be switched off. */
	OK(hipMemPoolSetAttribute(def, hipMemPoolReuseAllowOpportunistic, &off));
	OK(hipMallocAsync((void **)&r, 1 << 20, b));
	CHECK(r != p);
	OK(hipFreeAsync(r, b));
	off = 1;
	OK(hipMemPoolSetAttribute(def, hipMemPoolReuseAllowOpportunistic, &off));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(q, b));
	OK(hipStreamSynchronize(b));
	CHECK(attr(def, hipMemPoolAttrUsedMemCurrent) == 0);
	keep = 0;
	OK(hipMemPoolSetAttribute(def, hipMemPoolAttrReleaseThreshold, &keep));
	OK(hipStreamSynchronize(a));
	CHECK(attr(def, hipMemPoolAttrReservedMemCurrent) == 0);

	/* Arguments that are refused. */
	v = 5;
	EXPECT(hipMemPoolSetAttribute(def, hipMemPoolAttrUsedMemHigh, &v), hipErrorInvalidValue);
	EXPECT(hipMemPoolSetAttribute(def, hipMemPoolAttrUsedMemCurrent, &v), hipErrorInvalidValue);
	EXPECT(hipFreeAsync(NULL, a), version < 70000000 ? hipErrorInvalidValue : hipSuccess);
	EXPECT(hipFreeAsync(&v, a), hipErrorInvalidValue);
	EXPECT(hipMallocAsync((void **)&p, 64, (hipStream_t)-1),
	       version < 50300000 ? hipErrorInvalidValue : hipErrorInvalidHandle);
	EXPECT(hipMallocAsync((void **)&p, 0, a),
	       version < 50300000 ? hipErrorInvalidValue : hipSuccess);
	CHECK(version < 50300000 || p == NULL);
	p = (char *)1;
	EXPECT(hipMallocAsync((void **)&p, (size_t)1 << 60, a),
	       version < 50300000 ? hipSuccess : hipErrorOutOfMemory);
	CHECK(p == NULL);
	EXPECT(hipMemPoolDestroy(def), hipErrorInvalidValue);

	/* A destroyed pool lives until its last block is freed. */
	OK(hipMemPoolCreate(&mine, &props));
	OK(hipDeviceSetMemPool(0, mine));
	OK(hipMallocAsync((void **)&p, 4096, a));
	CHECK(attr(mine, hipMemPoolAttrUsedMemCurrent) == 4096);
	OK(hipMemPoolDestroy(mine));
	OK(hipDeviceGetMemPool(&cur, 0));
	CHECK(cur == def);
	OK(hipMemsetAsync(p, 3, 4096, a));
	OK(hipFreeAsync(p, a));
	EXPECT(hipMemPoolDestroy(mine), hipErrorInvalidValue);

	/* hipFree takes blocks of pools, hipFreeAsync takes memory of hipMalloc, and a double free
	 * is refused. */
	OK(hipMallocAsync((void **)&p, 4096, a));
	OK(hipFree(p));
	EXPECT(hipFreeAsync(p, a), hipErrorInvalidValue);
	OK(hipMalloc((void **)&p, 4096));
	OK(hipFreeAsync(p, a));

	/* Before 7.0 hipFree of a block waits; since then it does not. */
	OK(hipMallocAsync((void **)&p, 4096, a));
	if (version >= 70000000) {
		stall(b);
		OK(hipMemsetAsync(p, 1, 16, b));
		OK(hipFree(p));
		release(b);
	} else {
		OK(hipMemsetAsync(p, 1, 16, b));
		OK(hipFree(p));
		OK(hipStreamQuery(b));
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Several devices: the current device, peer access and reset. */
#include "test.h"

static uint64_t grants(void)
{
	return sim_count("hsa_amd_agents_allow_access");
}

/* What is allocated already, and what comes later. The device has one address space,
 * so what tells is that the runtime is asked. */
static void reach(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPool_t pool;
	void *old, *later;
	uint64_t n;

	OK(hipSetDevice(0));
	OK(hipMalloc(&old, 4096));
	OK(hipSetDevice(1));
	n = grants();
	OK(hipDeviceEnablePeerAccess(0, 0));
	CHECK(grants() > n);
	OK(hipSetDevice(0));
	n = grants();
	OK(hipMalloc(&later, 256 << 20));
	CHECK(grants() > n);
	OK(hipFree(later));
	OK(hipFree(old));
	OK(hipSetDevice(1));
	OK(hipDeviceDisablePeerAccess(0));
	GIVES(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(0));
	OK(hipSetDevice(0));

	pool = make_pool(0, hipMemHandleTypeNone);
	OK(hipMallocFromPoolAsync(&old, 4096, pool, NULL));
	n = grants();
	OK(hipMemPoolSetAccess(pool, &access, 1));
	CHECK(grants() > n);
	n = grants();
	OK(hipMallocFromPoolAsync(&later, 256 << 20, pool, NULL));
	CHECK(grants() > n);
	OK(hipFreeAsync(later, NULL));
	OK(hipFreeAsync(old, NULL));
	OK(hipMemPoolDestroy(pool));
}

static void gives(hipMemPool_t pool, hipMemAccessFlags flags)
{
	hipMemAccessDesc d = {{hipMemLocationTypeDevice, 1}, flags};
	hipMemAccessFlags got = (hipMemAccessFlags)7;

	OK(hipMemPoolSetAccess(pool, &d, 1));
	OK(hipMemPoolGetAccess(&got, pool, &d.location));
	CHECK(got == flags);
}

/* A peer that is to read only, which no release enforces: reported as it was set. */
static void readers(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	uint64_t n;
	void *p;

	OK(hipMallocFromPoolAsync(&p, 4096, pool, NULL));
	n = grants();
	gives(pool, hipMemAccessFlagsProtRead);
	CHECK(grants() > n);
	gives(pool, hipMemAccessFlagsProtReadWrite);
	gives(pool, hipMemAccessFlagsProtRead);
	gives(pool, hipMemAccessFlagsProtNone);
	gives(pool, hipMemAccessFlagsProtReadWrite);
	OK(hipFreeAsync(p, NULL));
	OK(hipMemPoolDestroy(pool));
}

int main(void)
{
	hipMemPool_t pool0, pool1;
	hipStream_t s0, s1;
	int n = 0, dev = -1;
	hipError_t err;
	void *p0, *p1;
	char back[64];

	CHECK(preloaded());
	OK(hipGetDeviceCount(&n));
	if (n < 2) {
		fprintf(stderr, "needs two devices\n");
		return SKIP;
	}
	OK(hipDeviceGetDefaultMemPool(&pool0, 0));
	OK(hipDeviceGetDefaultMemPool(&pool1, 1));
	CHECK(pool0 != pool1);
	reach();
	readers();
	OK(hipStreamCreate(&s0));
	OK(hipSetDevice(1));
	OK(hipStreamCreate(&s1));
	OK(hipDeviceEnablePeerAccess(0, 0));
	GIVES(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(0, 0));
	/* The stream says which device, not the thread. */
	OK(hipMallocAsync(&p0, 1 << 20, s0));
	OK(hipMallocAsync(&p1, 1 << 20, s1));
	OK(hipMemsetAsync(p0, 5, 1 << 20, s0));
	OK(hipStreamSynchronize(s0));
	OK(hipMemcpyAsync(p1, p0, 1 << 20, hipMemcpyDeviceToDevice, s1));
	OK(hipMemcpyAsync(back, p1, sizeof(back), hipMemcpyDeviceToHost, s1));
	OK(hipStreamSynchronize(s1));
	CHECK(back[0] == 5 && back[63] == 5);
	OK(hipFreeAsync(p0, s0));
	OK(hipFreeAsync(p1, s1));

	/* hipFree goes by the block's device and leaves the current one alone. */
	OK(hipMalloc(&p1, 4096));
	OK(hipSetDevice(0));
	OK(hipMalloc(&p0, 4096));
	OK(hipFree(p1));
	OK(hipGetDevice(&dev));
	CHECK(dev == 0);
	OK(hipSetDevice(1));
	OK(hipFree(p0));
	OK(hipGetDevice(&dev));
	CHECK(dev == 1);

	/* A reset takes what is on the device, and nothing else. */
	OK(hipMalloc(&p1, 4096));
	OK(hipSetDevice(0));
	OK(hipMalloc(&p0, 4096));
	OK(hipSetDevice(1));
	OK(hipDeviceReset());
	GIVES(hipErrorInvalidValue, hipFree(p1));
	OK(hipMemset(p0, 1, 4096));
	OK(hipFree(p0));
	err = hipMemPoolTrimTo(pool1, 0);
	CHECK(err == hipErrorInvalidValue);
	OK(hipDeviceGetDefaultMemPool(&pool1, 1));
	OK(hipMalloc(&p1, 4096));
	OK(hipFree(p1));
	OK(hipMallocAsync(&p1, 4096, NULL));
	OK(hipFreeAsync(p1, NULL));
	return 0;
}

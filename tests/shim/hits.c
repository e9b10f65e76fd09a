/* SPDX-License-Identifier: MIT */
/* A hit makes no HIP or HSA call. On the null stream it may call hipGetDevice. */
#include "test.h"

static void round_of(hipStream_t s, uint64_t allowed)
{
	uint64_t before, device;
	void *p;

	for (int i = 0; i < 10; i++) {
		OK(hipMallocAsync(&p, 100000, s));
		OK(hipFreeAsync(p, s));
	}
	before = sim_calls();
	device = sim_count("hipGetDevice");
	for (int i = 0; i < 1000; i++) {
		OK(hipMallocAsync(&p, 100000, s));
		OK(hipFreeAsync(p, s));
	}
	device = sim_count("hipGetDevice") - device;
	CHECK(sim_calls() - before == device);
	CHECK(device <= allowed);
}

/* What a hit remembers of an address ends with the segment: the address may be another
 * pool's by then, and its free is that pool's. */
static void address_of_another(hipStream_t s)
{
	hipMemPool_t def, other = make_pool(0, hipMemHandleTypeNone);
	size_t size = 64 << 20;
	void *p, *first;
	int met = 0;

	OK(hipDeviceGetDefaultMemPool(&def, 0));
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 4; i++) {
			OK(hipMallocAsync(&first, size, s));
			OK(hipFreeAsync(first, s));
		}
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(def, 0));
		OK(hipMallocFromPoolAsync(&p, size, other, s));
		met += p == first;
		OK(hipFreeAsync(p, s));
		CHECK(figure(other, hipMemPoolAttrUsedMemCurrent) == 0);
		CHECK(figure(def, hipMemPoolAttrUsedMemCurrent) == 0);
		OK(hipMallocAsync(&first, size, s));
		CHECK(figure(def, hipMemPoolAttrUsedMemCurrent) == size);
		OK(hipFreeAsync(first, s));
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(other, 0));
		OK(hipMemPoolTrimTo(def, 0));
	}
	if (backed_by("hsa"))
		CHECK(met > 0); /* or it would say nothing */
	OK(hipMemPoolDestroy(other));
}

int main(void)
{
	hipStream_t s, n;
	uint64_t before, wait, device;
	void *p;

	CHECK(preloaded());
	/* Beside blocking streams a hit on the null stream joins them, as the
	 * runtime's own does: that is a call. */
	round_of(NULL, 2000);
	OK(hipStreamCreate(&s));
	OK(hipStreamCreateWithFlags(&n, hipStreamNonBlocking));
	round_of(s, 0);
	round_of(n, 0);
	round_of(hipStreamPerThread, 2000);

	/* hipMalloc asks which device; hipFree waits and does nothing else. */
	for (int i = 0; i < 10; i++) {
		OK(hipMalloc(&p, 100000));
		OK(hipFree(p));
	}
	before = sim_calls();
	wait = sim_count("hipStreamSynchronize");
	device = sim_count("hipGetDevice");
	for (int i = 0; i < 100; i++) {
		OK(hipMalloc(&p, 100000));
		OK(hipFree(p));
	}
	wait = sim_count("hipStreamSynchronize") - wait;
	device = sim_count("hipGetDevice") - device;
	CHECK(sim_calls() - before == wait + device);
	CHECK(wait == 200); /* the null stream and the one that does not block */
	CHECK(sim_count("hipDeviceSynchronize") == 0);
	CHECK(sim_count("hipMalloc") == 0 && sim_count("hipMallocAsync") == 0);
	OK(hipStreamDestroy(s));
	OK(hipStreamDestroy(n));
	OK(hipStreamCreateWithFlags(&n, hipStreamNonBlocking));
	address_of_another(n);
	return 0;
}

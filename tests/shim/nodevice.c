/* SPDX-License-Identifier: MIT */
/* Without a device every call returns the runtime's own error. */
#include "test.h"

int main(void)
{
	hipError_t want = hipErrorNoDevice;
	void *p = (void *)7;
	hipStream_t s;
	hipEvent_t e;
	size_t f, t;
	int n = -1;

	CHECK(preloaded());
	if (hipGetDeviceCount(&n) == hipSuccess) {
		fprintf(stderr, "there is a device\n");
		return SKIP;
	}
	GIVES(hipErrorNoDevice, hipGetDeviceCount(&n));
	want = hipMalloc(&p, 100); /* 5.2.3 says InvalidDevice here, with and without us */
	CHECK(want == hipErrorNoDevice || want == hipErrorInvalidDevice);
	CHECK(p == (void *)7);
	GIVES(want, hipGetLastError());
	GIVES(want, hipMallocAsync(&p, 100, NULL));
	GIVES(want, hipMemGetInfo(&f, &t));
	GIVES(want, hipStreamCreate(&s));
	GIVES(want, hipEventCreate(&e));
	GIVES(want, hipDeviceSynchronize());
	GIVES(want, hipFree(NULL));
	return 0;
}

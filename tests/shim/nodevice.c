/* SPDX-License-Identifier: MIT */
/*
 * Without a device every call returns the runtime's own error, and `somashim sleep' says why the
 * process cannot sleep.
 *
 *   shim_nodevice [SOMASHIM]
 */
#include "sleep.h"

int main(int argc, char **argv)
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
	if (argc > 1) {
		somashim = argv[1];
		COMMAND(1, "sleep", own_pid());
		SAID("found no device");
		COMMAND(1, "sleep", "--hold", own_pid());
		COMMAND(1, "wake", own_pid());
		SAID("found no device");
	}
	return 0;
}

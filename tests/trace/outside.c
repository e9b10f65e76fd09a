/* SPDX-License-Identifier: MIT */
/*
 * A program that takes memory outside of the pools: `trace_outside [FILE [PAIRS]]`. With FILE it
 * tells that it is there by making FILE, and waits until FILE is gone; "-": it does not. PAIRS: so
 * many blocks come and go before it frees what it took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <hip/hip_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define OK(call) do { \
	hipError_t err_ = (call); \
	if (err_ != hipSuccess) { \
		fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, (int)err_); \
		exit(1); \
	} \
} while (0)

int main(int argc, char **argv)
{
	hipChannelFormatDesc format = {8, 8, 8, 8, hipChannelFormatKindUnsigned};
	void *block, *managed, *host[2], *fine, *too_large;
	hipArray_t array;

	OK(hipMalloc(&block, MIB));
	OK(hipMallocManaged(&managed, 3 * MIB, hipMemAttachGlobal));
	OK(hipHostMalloc(&host[0], 5 * MIB, 0));
	OK(hipHostMalloc(&host[1], 2 * MIB, 0));
	OK(hipHostFree(host[1]));
	OK(hipExtMallocWithFlags(&fine, 2 * MIB, hipDeviceMallocFinegrained));
	OK(hipMallocArray(&array, &format, 512, 512, 0)); /* 1 MiB */
	if (hipMalloc(&too_large, (size_t)1 << 40) == hipSuccess)
		return 1;
	(void)hipGetLastError();
	for (int n = argc > 2 ? atoi(argv[2]) : 0; n > 0; n--) {
		void *p;
		OK(hipMallocAsync(&p, MIB, NULL));
		OK(hipFreeAsync(p, NULL));
	}
	if (argc > 1 && argv[1][0] != '-') {
		FILE *f = fopen(argv[1], "w");
		if (!f || fclose(f) != 0)
			return 1;
		for (int i = 0; i < 60000 && access(argv[1], F_OK) == 0; i++) {
			int device;
			OK(hipGetDevice(&device));
			usleep(1000);
		}
	}
	OK(hipFree(managed));
	OK(hipFreeArray(array));
	OK(hipFree(fine));
	OK(hipFree(block));
	return 0; /* host[0] stays */
}

/* SPDX-License-Identifier: MIT */
/*
 * The loop of every HIP course: allocate, work, copy back, free, again. Exits
 * with 1 if a byte is wrong. `alloc_loop [ROUNDS [BYTES]]`
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#define HIP(call) do { \
	hipError_t err_ = (call); \
	if (err_ != hipSuccess) { \
		fprintf(stderr, "alloc_loop: %s: %s\n", #call, hipGetErrorString(err_)); \
		return 2; \
	} \
} while (0)

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	size_t size = argc > 2 ? strtoul(argv[2], NULL, 0) : 1 << 20;
	unsigned char *host = malloc(size);
	int wrong = 0;

	if (!host || size == 0)
		return 2;
	for (int i = 0; i < rounds; i++) {
		void *a, *b;
		HIP(hipMalloc(&a, size));
		HIP(hipMalloc(&b, size));
		HIP(hipMemset(a, i & 255, size));
		HIP(hipMemcpy(b, a, size, hipMemcpyDeviceToDevice));
		HIP(hipMemcpy(host, b, size, hipMemcpyDeviceToHost));
		for (size_t k = 0; k < size; k++)
			wrong += host[k] != (i & 255);
		HIP(hipFree(a));
		HIP(hipFree(b));
	}
	printf("rounds=%d bytes=%zu wrong=%d\n", rounds, size, wrong);
	free(host);
	return wrong ? 1 : 0;
}

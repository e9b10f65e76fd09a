/* SPDX-License-Identifier: MIT */
/*
 * The three shapes of PyTorch's devlog of 1 June 2026 ("memory fragmentation"), by hipMallocAsync:
 * MiB that the pool has reserved at the end. It is a plain HIP program; without the preload it
 * measures the runtime's own pool.
 *   devlog
 */
#include <stdio.h>
#include <stdlib.h>

#include <hip/hip_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define MOST 8

#define CHECK(call)                                                                             \
	do {                                                                                    \
		hipError_t error = (call);                                                      \
		if (error != hipSuccess) {                                                      \
			fprintf(stderr, "devlog: %s: %s\n", #call, hipGetErrorString(error));   \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

/* `first` blocks are allocated, those with a bit in `freed` are freed, and `then` others follow. */
static const struct shape {
	const char *name;
	int first, first_mib;
	unsigned freed;
	int then, then_mib;
} shapes[] = {
	{"8 x 16 MiB freed, then 4 x 32", 8, 16, 0xff, 4, 32},
	{"4 x 32 MiB freed, then 8 x 16", 4, 32, 0xf, 8, 16},
	{"4 x 16 MiB, two apart freed, then 32", 4, 16, 0x5, 1, 32},
};

static void allocate(hipMemPool_t pool, hipStream_t stream, void **block, int count, int mib)
{
	for (int i = 0; i < count; i++) {
		CHECK(hipMallocFromPoolAsync(&block[i], (size_t)mib * MIB, pool, stream));
		CHECK(hipMemsetAsync(block[i], i, 4096, stream));
	}
}

static uint64_t reserved_after(const struct shape *s)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	uint64_t keep = UINT64_MAX, reserved = 0;
	void *first[MOST], *then[MOST];
	hipStream_t stream;
	hipMemPool_t pool;

	CHECK(hipStreamCreate(&stream));
	CHECK(hipMemPoolCreate(&pool, &props));
	CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	allocate(pool, stream, first, s->first, s->first_mib);
	for (int i = 0; i < s->first; i++)
		if (s->freed >> i & 1)
			CHECK(hipFreeAsync(first[i], stream));
	CHECK(hipStreamSynchronize(stream));
	allocate(pool, stream, then, s->then, s->then_mib);
	CHECK(hipStreamSynchronize(stream));
	CHECK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &reserved));
	CHECK(hipMemPoolDestroy(pool));
	CHECK(hipStreamDestroy(stream));
	return reserved;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		printf("%-38s %6.0f MiB\n", shapes[i].name,
		       (double)reserved_after(&shapes[i]) / (double)MIB);
	return 0;
}

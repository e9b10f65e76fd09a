/* SPDX-License-Identifier: MIT */
/* Programs about what lies around blocks: bytes in front of them, and pages that are not mapped. */
#include <dlfcn.h>

#include "corpus.h"

#define LARGE ((3 << 20) - 512)

/* ---- wrong ones ------------------------------------------------------------------ */

static void before_start(void)
{
	void *p = block(a);

	write_hidden((char *)p - 8, 3, a);
	OK(hipFreeAsync(p, a));
}

static void before_start_and_past_end(void)
{
	char *p;

	OK(hipMalloc((void **)&p, 1000));
	write_hidden(p - 1, 1002, a);
	OK(hipFree(p));
}

static void before_start_of_leak(void)
{
	write_hidden((char *)block(a) - 100, 1, a);
}

static void fill_from_before_start(void)
{
	char *p = block(a);

	(void)hipMemsetAsync(p - 8, 1, 16, a);
	OK(hipFreeAsync(p, a));
}

static void large_past_end(void)
{
	char *p;

	OK(hipMallocAsync((void **)&p, LARGE, a));
	write_hidden(p + LARGE, 1, a);
	OK(hipStreamSynchronize(a));
}

static void large_past_end_of_hip_malloc(void)
{
	char *p;

	OK(hipMalloc((void **)&p, 4 << 20));
	write_hidden(p + (4 << 20) + 5000, 1, a);
	OK(hipDeviceSynchronize());
}

static void large_after_hip_free(void)
{
	char *p;

	OK(hipMalloc((void **)&p, LARGE));
	OK(hipFree(p));
	write_hidden(p, 1, a);
	OK(hipDeviceSynchronize());
}

/* ---- right ones ------------------------------------------------------------------- */

/* All that a program is told of a block is the block's own. */
static void what_pointers_are(void)
{
	hipDeviceptr_t base;
	hipPointerAttribute_t at;
	uint64_t used;
	hipMemPool_t pool;
	size_t size;
	char *p;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 4; i++) {
		size_t want = i % 2 ? LARGE - 1 : 1001;

		OK(i < 2 ? hipMalloc((void **)&p, want) : hipMallocAsync((void **)&p, want, a));
		OK(hipMemGetAddressRange(&base, &size, p + want - 1));
		OK(hipPointerGetAttributes(&at, p + 5));
		if (base != p || size != want || at.devicePointer != p + 5)
			exit(2);
		OK(hipMemsetAsync(p, 7, want, a));
		OK(hipStreamSynchronize(a));
		OK(i < 2 ? hipFree(p) : hipFreeAsync(p, a));
	}
	OK(hipStreamSynchronize(a));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	if (used)
		exit(2);
}

/* Blocks are used up to the last byte until the stream that frees them has come there. */
static void large_until_freed(void)
{
	char *p;

	for (int i = 0; i < 30; i++) {
		OK(hipMallocAsync((void **)&p, (size_t)LARGE + (size_t)i * 100, a));
		write_hidden(p, (size_t)LARGE + (size_t)i * 100, a);
		order(a, b);
		write_hidden(p, 100, b);
		OK(hipFreeAsync(p, b));
		if (i % 7 == 0)
			OK(hipStreamSynchronize(a));
		if (i % 10 == 0)
			OK(hipDeviceSynchronize());
	}
}

/* What device 1 may do at both ends of a block, as far as the runtime says it of such memory. */
static void reaches(char *p, size_t size)
{
	hipError_t (*ask)(unsigned long long *, const hipMemLocation *,
			  void *) = (hipError_t(*)(unsigned long long *, const hipMemLocation *,
						   void *))dlsym(RTLD_DEFAULT, "hipMemGetAccess");
	hipMemLocation at = {.type = hipMemLocationTypeDevice, .id = 1};
	unsigned long long may;

	for (int end = 0; ask && end < 2; end++)
		if (ask(&may, &at, p + (end ? size - 1 : 0)) == hipSuccess &&
		    may != hipMemAccessFlagsProtReadWrite) {
			fprintf(stderr, "device 1 may do %llu\n", may);
			exit(2);
		}
}

/* Uses a block of device 0 from device 1, up to its last byte. */
static void use_from_1(char *p, size_t size)
{
	static char there[2];
	hipStream_t s;

	reaches(p, size);
	OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	write_hidden(p, size, s);
	OK(hipMemcpyAsync(there, p + size - 2, 2, hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	OK(hipSetDevice(0));
	if (there[1] != 0x11)
		exit(2);
}

/* Devices get at what is allocated before they may, and after it. */
static void peers(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	char *old, *later, *small;
	hipMemPool_t pool;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync((void **)&old, LARGE, pool, a));
	OK(hipMemPoolSetAccess(pool, &access, 1));
	OK(hipMallocFromPoolAsync((void **)&later, LARGE, pool, a));
	OK(hipMallocFromPoolAsync((void **)&small, 1000, pool, a));
	OK(hipStreamSynchronize(a));
	use_from_1(old, LARGE);
	use_from_1(later, LARGE);
	use_from_1(small, 1000);
	OK(hipFreeAsync(old, a));
	OK(hipFreeAsync(later, a));
	OK(hipFreeAsync(small, a));
	OK(hipMemPoolDestroy(pool));

	OK(hipMalloc((void **)&old, LARGE));
	OK(hipSetDevice(1));
	OK(hipDeviceEnablePeerAccess(0, 0));
	OK(hipSetDevice(0));
	OK(hipMalloc((void **)&later, LARGE));
	OK(hipMalloc((void **)&small, 1000));
	use_from_1(old, LARGE);
	use_from_1(later, LARGE);
	use_from_1(small, 1000);
	OK(hipFree(old));
	OK(hipFree(later));
	OK(hipFree(small));
	OK(hipSetDevice(1));
	OK(hipDeviceDisablePeerAccess(0));
	OK(hipSetDevice(0));
}

/* A block has a handle for other processes, unless it is guarded. */
static void handles(void)
{
	hipIpcMemHandle_t handle;
	char *p;

	OK(hipMalloc((void **)&p, LARGE));
	for (int i = 0; i < 2; i++)
		if (hipIpcGetMemHandle(&handle, p) == hipErrorInvalidValue)
			fprintf(stderr, "no handle\n");
	OK(hipFree(p));
}

const struct program wrong_guarded[] = {
	{"before-start", before_start, "-|overwritten-padding hipMallocAsync before 8 3"},
	{"before-start-and-past-end", before_start_and_past_end,
	 "-|overwritten-padding hipMalloc before 1 "
	 "1;overwritten-padding hipMalloc 0 1"},
	{"before-start-of-leak", before_start_of_leak,
	 "-|overwritten-padding hipMallocAsync before 100 1;leak "
	 "hipMallocAsync 4096 1"},
	{"fill-from-before-start", fill_from_before_start, "-|out-of-bounds hipMemsetAsync 1 1"},
	{"large-past-end", large_past_end, "memory-fault hipMallocAsync past 0"},
	{"large-past-end-of-hip-malloc", large_past_end_of_hip_malloc,
	 "memory-fault hipMalloc past 4096"},
	{"large-after-hip-free", large_after_hip_free, "memory-fault hipMalloc hipFree inside"},
	{NULL, NULL, NULL},
};

const struct program right_guarded[] = {
#define P(name) {"right-" #name, name, NULL}
	P(what_pointers_are), P(large_until_freed), P(peers), P(handles), {NULL, NULL, NULL},
};

/* SPDX-License-Identifier: MIT */
/*
 * Host memory is short for a moment, in any call of the library. A call that needs some
 * fails or does without it, and the next call works as if nothing had happened.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define MOST 64 /* calls for host memory inside one of HIP's */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uintptr_t low, high; /* where the library lies */
static atomic_long left;    /* calls of the library's until one fails; 0: none does */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!strstr(info->dlpi_name, "libsomashim.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		low = low && low < from ? low : from;
		if (from + info->dlpi_phdr[i].p_memsz > high)
			high = from + info->dlpi_phdr[i].p_memsz;
	}
	return 1;
}

static bool fails(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (at < low || at >= high || !atomic_load(&left) || atomic_fetch_sub(&left, 1) != 1)
		return false;
	errno = ENOMEM;
	return true;
}

/* In the place of libc's. */
#pragma GCC visibility push(default)
#define FAILS() fails(__builtin_return_address(0))

void *malloc(size_t n)
{
	return FAILS() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return FAILS() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return FAILS() ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = FAILS() ? NULL : __libc_memalign(align, n);

	if (got)
		*p = got;
	return got ? 0 : ENOMEM;
}
#pragma GCC visibility pop

/* The call with its first request for host memory refused, then with its second, and so on,
 * until it comes through. */
#define THROUGH(call) do { \
	hipError_t e_; \
	for (int i_ = 1;; i_++) { \
		atomic_store(&left, i_); \
		e_ = (call); \
		atomic_store(&left, 0); \
		if (e_ == hipSuccess) \
			break; \
		CHECK(e_ == hipErrorOutOfMemory && i_ < MOST); \
	} \
} while (0)

/* The first use of a device, by two calls, */
static int first(int nth)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipMemPool_t pool = NULL;
	void *p = NULL;
	hipError_t err;

	if (nth % 2) {
		atomic_store(&left, nth / 2);
		err = hipMemPoolCreate(&pool, &props);
		atomic_store(&left, 0);
		CHECK(err == hipSuccess || err == hipErrorOutOfMemory);
		return 0;
	}
	nth /= 2;
	atomic_store(&left, nth);
	err = hipMallocAsync(&p, 1 << 20, NULL);
	atomic_store(&left, 0);
	CHECK(err == hipSuccess || err == hipErrorOutOfMemory);
	OK(hipMallocAsync(&p, 1 << 20, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipMalloc(&p, 1 << 20));
	OK(hipFree(p));
	OK(hipDeviceSynchronize());
	return 0;
}

/* in a process of its own. */
static void first_elsewhere(int nth)
{
	char number[16];
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		alarm(20);
		snprintf(number, sizeof(number), "%d", nth);
		execl("/proc/self/exe", "hostless", number, (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Tables that grow. */
static void many(void)
{
	static hipMemPool_t pool[500];
	static hipStream_t stream[400];
	static void *p[500];
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	unsigned long long number;
	hipGraph_t graph;

	for (int i = 0; i < 500; i++)
		THROUGH(hipMemPoolCreate(&pool[i], &props));
	for (int i = 0; i < 500; i++)
		OK(hipMemPoolDestroy(pool[i]));
	for (int i = 0; i < 500; i++) {
		OK(hipMalloc(&p[i], 512));
		for (int n = 1; n < 4; n++) {
			atomic_store(&left, n);
			(void)hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_BUFFER_ID,
						     p[i]);
		}
		atomic_store(&left, 0);
		OK(hipPointerGetAttribute(&number, HIP_POINTER_ATTRIBUTE_BUFFER_ID, p[i]));
	}
	for (int i = 0; i < 500; i++)
		OK(hipFree(p[i]));
	for (int i = 0; i < 400; i++) {
		OK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
		THROUGH(hipStreamBeginCapture(stream[i], hipStreamCaptureModeRelaxed));
	}
	for (int i = 0; i < 400; i++) {
		OK(hipStreamEndCapture(stream[i], &graph));
		OK(hipGraphDestroy(graph));
		OK(hipStreamDestroy(stream[i]));
	}
}

/* hipFree that does not wait, and hipFreeAsync on a stream that is new to the pool: at worst
 * the free has to be made once more. */
static void frees(void)
{
	uint64_t before = device_free(0);
	hipStream_t stream[3];
	void *p[8];

	for (int i = 0; i < 3; i++)
		OK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 8; i++) {
			OK(hipMalloc(&p[i], 32 << 20));
			OK(hipMemsetAsync(p[i], 1, 4096, stream[i % 3]));
		}
		for (int i = 0; i < 8; i++) {
			atomic_store(&left, round);
			OK(hipFree(p[i]));
			atomic_store(&left, 0);
			if (i < 7) /* the next needs marks of its own */
				OK(hipMemsetAsync(p[7], 1, 4096, stream[i % 3]));
		}
		OK(hipDeviceSynchronize());
	}
	OK(hipMallocAsync(&p[0], 512, stream[0]));
	THROUGH(hipFreeAsync(p[0], stream[1]));
	OK(hipDeviceSynchronize());
	OK(hipDeviceSynchronize());
	CHECK(device_free(0) == before);
}

/* Blocks that the checker holds leave while host memory is out, on streams that are new to their
 * pool. None is lost: no more is in use than the checker may hold
 * (SOMASHIM_CHECK_QUARANTINE=1M). */
static void held(void)
{
	const size_t size = 512 << 10;
	hipStream_t stream[40];
	hipMemPool_t pool;
	uint64_t used;
	void *p;

	for (int i = 0; i < 40; i++) {
		OK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
		OK(hipMallocAsync(&p, size, stream[0]));
		for (hipError_t e = hipErrorOutOfMemory; e != hipSuccess;) {
			atomic_store(&left, i % 20);
			e = hipFreeAsync(p, stream[i]);
			atomic_store(&left, 0);
			CHECK(e == hipSuccess || e == hipErrorOutOfMemory);
		}
	}
	for (int i = 20; i < 40; i++) { /* what is held leaves with the stream */
		atomic_store(&left, 1);
		OK(hipStreamDestroy(stream[i]));
		atomic_store(&left, 0);
	}
	OK(hipDeviceSynchronize());
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	CHECK(used <= 2 * size);
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	dl_iterate_phdr(find_library, NULL);
	CHECK(low < high);
	if (argc > 1 && !strcmp(argv[1], "held")) {
		held();
		return 0;
	}
	if (argc > 1)
		return first(atoi(argv[1]));
	for (int i = 1; i < MOST; i++)
		first_elsewhere(i);
	alarm(60);
	frees();
	many();
	return 0;
}

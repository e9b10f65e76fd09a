/* SPDX-License-Identifier: MIT */
/*
 * Programs under which one call of libc fails inside the library (host_faults.c). A call of HIP may
 * say that memory is out, and succeeds when it is made again; nothing else changes.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shim/test.h"

#define BLOCKS 12
#define BYTES_MOST (1u << 20)

/* The reason is gone the second time. */
#define TRY(call) do { \
	hipError_t e_ = (call); \
	if (e_ == hipErrorOutOfMemory) \
		e_ = (call); \
	GIVES(hipSuccess, e_); \
} while (0)

static size_t size_of(int i)
{
	return (size_t)(i % 3 == 0 ? 700 : i % 3 == 1 ? 100000 : BYTES_MOST) + (size_t)i * 512;
}

static void stamp(void *p, int i, hipStream_t s)
{
	TRY(hipMemsetAsync(p, 1 + i, size_of(i), s));
}

static void check(const void *p, int i)
{
	unsigned char *host = malloc(size_of(i));

	CHECK(host);
	TRY(hipMemcpy(host, p, size_of(i), hipMemcpyDeviceToHost));
	for (size_t at = 0; at < size_of(i); at++)
		CHECK(host[at] == 1 + i);
	free(host);
}

/* ---- memory in the order of streams, events, pools, a capture, two threads ----------------- */

static void in_order(hipMemPool_t pool)
{
	hipStream_t s[2];
	hipEvent_t e;
	void *p[BLOCKS];

	for (int i = 0; i < 2; i++)
		TRY(hipStreamCreateWithFlags(&s[i], hipStreamNonBlocking));
	TRY(hipEventCreate(&e));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			if (pool && i % 2)
				TRY(hipMallocFromPoolAsync(&p[i], size_of(i), pool, s[0]));
			else
				TRY(hipMallocAsync(&p[i], size_of(i), s[0]));
			stamp(p[i], i, s[0]);
		}
		TRY(hipEventRecord(e, s[0]));
		TRY(hipStreamWaitEvent(s[1], e, 0));
		TRY(hipStreamSynchronize(s[1]));
		for (int i = 0; i < BLOCKS; i++) {
			check(p[i], i);
			TRY(hipFreeAsync(p[i], s[i & 1]));
		}
	}
	for (int i = 0; i < 2; i++)
		TRY(hipStreamDestroy(s[i]));
	TRY(hipEventDestroy(e));
}

static void *thread(void *arg)
{
	in_order(NULL);
	return arg;
}

static int streams(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	pthread_t other;
	hipMemPool_t pool;
	hipGraph_t graph;
	hipStream_t s;
	void *p;

	TRY(hipMemPoolCreate(&pool, &props));
	in_order(pool);
	CHECK(pthread_create(&other, NULL, thread, NULL) == 0 && pthread_join(other, NULL) == 0);
	TRY(hipStreamCreate(&s));
	TRY(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	TRY(hipMallocAsync(&p, 4096, s));
	TRY(hipFreeAsync(p, s));
	TRY(hipStreamEndCapture(s, &graph));
	TRY(hipGraphDestroy(graph));
	TRY(hipMemPoolTrimTo(pool, 0));
	TRY(hipMemPoolDestroy(pool));
	TRY(hipDeviceSynchronize());
	return 0;
}

/* ---- hipMalloc and hipFree, what is asked of pointers, a reset, a child ---------------------- */

static int classic(void)
{
	hipPointerAttribute_t a;
	void *p[BLOCKS], *base;
	size_t size;
	pid_t pid;
	int status;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			TRY(hipMalloc(&p[i], size_of(i)));
			stamp(p[i], i, NULL);
		}
		for (int i = 0; i < BLOCKS; i++) {
			TRY(hipPointerGetAttributes(&a, p[i]));
			TRY(hipMemGetAddressRange(&base, &size, p[i]));
			CHECK(base == p[i] && size == size_of(i));
			check(p[i], i);
		}
		for (int i = 0; i < BLOCKS; i++)
			TRY(hipFree(p[i]));
		if (round == 1)
			TRY(hipDeviceReset());
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return 0;
}

/* ---- memory for other processes
 * ---------------------------------------------------------------- */

#define POSIX_FD hipMemHandleTypePosixFileDescriptor

static hipError_t import_from(int fd, hipMemPool_t *pool)
{
	return hipMemPoolImportFromShareableHandle(pool, (void *)(intptr_t)fd, POSIX_FD, 0);
}

static int shared(void)
{
	hipMemPoolPtrExportData data;
	hipMemPool_t pool, other;
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .handleTypes = POSIX_FD,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipIpcMemHandle_t handle;
	hipError_t err;
	void *p, *q;
	int fd = -1;

	TRY(hipMemPoolCreate(&pool, &props));
	for (int i = 0; i < 4; i++) {
		TRY(hipMallocFromPoolAsync(&p, size_of(i), pool, NULL));
		stamp(p, i, NULL);
		TRY(hipMemPoolExportToShareableHandle(&fd, pool, POSIX_FD, 0));
		TRY(hipMemPoolExportPointer(&data, p));
		err = import_from(fd, &other);
		/* It says the first if the descriptor could not be read. */
		if (err == hipErrorInvalidValue || err == hipErrorOutOfMemory)
			err = import_from(fd, &other);
		OK(err);
		TRY(hipMemPoolImportPointer(&q, other, &data));
		check(q, i);
		TRY(hipFree(q));
		TRY(hipMemPoolDestroy(other));
		close(fd);
		TRY(hipFreeAsync(p, NULL));
		TRY(hipMalloc(&p, size_of(i)));
		TRY(hipIpcGetMemHandle(&handle, p));
		TRY(hipFree(p));
	}
	TRY(hipMemPoolDestroy(pool));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} programs[] = {{"streams", streams}, {"classic", classic}, {"shared", shared}};

	alarm(60); /* a hang is a fault */
	CHECK(preloaded());
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run();
	return 2;
}

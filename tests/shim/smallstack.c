/* SPDX-License-Identifier: MIT */
/*
 * Threads with a small stack. None of our calls may need much of it. (The software device
 * takes 21 KiB of each stack for its thread-local data.) The first call of the process
 * (`first`) also asks the loader, which alone needs some.
 */
#include <pthread.h>
#include <unistd.h>

#include "test.h"

#define STACK (32 << 10)
#define STACK_FIRST (40 << 10)

static void blocks(hipStream_t s)
{
	void *p, *q;

	for (int i = 0; i < 20; i++) {
		OK(hipMalloc(&p, 1000u << i % 10));
		OK(hipMemset(p, 1, 1000));
		OK(hipMallocAsync(&q, 1000u << i % 10, s));
		OK(hipFreeAsync(q, s));
		OK(hipFree(p));
	}
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, (size_t)1 << 50, s));
}

/* Each way to give memory back, and what is said to another process. */
static void pools(hipStream_t s)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor), twin, def;
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	void *p;
	int fd;

	OK(hipMallocFromPoolAsync(&p, 100 << 20, pool, s));
	OK(hipMemPoolExportToShareableHandle(&fd, pool, hipMemHandleTypePosixFileDescriptor, 0));
	OK(hipMemPoolImportFromShareableHandle(&twin, (void *)(intptr_t)fd,
					       hipMemHandleTypePosixFileDescriptor, 0));
	close(fd);
	OK(hipMemPoolExportPointer(&data, p));
	OK(hipMemPoolDestroy(twin));
	OK(hipFreeAsync(p, s));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolDestroy(pool));
	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipMallocAsync(&p, 64 << 20, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(def, 0));
	OK(hipMalloc(&p, 4096));
	OK(hipIpcGetMemHandle(&handle, p));
	OK(hipFree(p));
}

static void *all(void *arg)
{
	hipStream_t s;

	(void)arg;
	OK(hipStreamCreate(&s));
	blocks(s);
	blocks(hipStreamPerThread);
	pools(s);
	OK(hipStreamDestroy(s));
	OK(hipDeviceSynchronize());
	return NULL;
}

int main(int argc, char **argv)
{
	bool first = argc > 1 && !strcmp(argv[1], "first");
	pthread_attr_t attr;
	pthread_t thread;
	void *p;

	CHECK(preloaded());
	if (!first) {
		OK(hipMalloc(&p, 16));
		OK(hipFree(p));
	}
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, first ? STACK_FIRST : STACK));
	/* More than any frame, so that none lies beyond it. */
	CHECK(!pthread_attr_setguardsize(&attr, 1 << 20));
	for (int i = 0; i < 2; i++) {
		CHECK(!pthread_create(&thread, &attr, all, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
	return 0;
}

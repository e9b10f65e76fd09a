/* SPDX-License-Identifier: MIT */
/*
 * Memory that is freed, and pools that are used, after exit() has begun: in atexit handlers
 * and in destructors. A handler that is registered before the shim starts runs when nothing
 * is served any more, like the destructor of a static object in C++.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define BYTES (4 << 20)
#include "test.h"

static void *blocks[6], *result;
static unsigned char *pinned;
static hipMemPool_t pool;
static hipStream_t stream, other;
static hipEvent_t event;
static int card; /* what the pool has been exported to */

/* hipFree is what this program waits with. */
static void waits(void)
{
	const char *mode = getenv("SOMASHIM_FREE_SYNC");

	OK(hipMemsetAsync(result, 5, BYTES, stream));
	OK(hipMemcpyAsync(pinned, result, BYTES, hipMemcpyDeviceToHost, stream));
	/* Whoever waits must not ask one that is gone. */
	OK(hipStreamDestroy(other));
	OK(hipFree(result));
	if (mode && !strcmp(mode, "never"))
		return;
	for (size_t i = 0; i < BYTES; i++)
		CHECK(pinned[i] == 5);
}

static void uses_pool(void)
{
	hipMemLocation where = {hipMemLocationTypeDevice, 0};
	hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
	hipMemAccessDesc access = {where, hipMemAccessFlagsProtReadWrite};
	uint64_t keep = 1 << 20;
	void *p;

	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == 4096);
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	CHECK(figure(pool, hipMemPoolAttrReleaseThreshold) == keep);
	OK(hipMemPoolGetAccess(&flags, pool, &where));
	CHECK(flags == hipMemAccessFlagsProtReadWrite);
	OK(hipMemPoolSetAccess(pool, &access, 1));
	OK(hipDeviceSetMemPool(0, pool));
	OK(hipMallocFromPoolAsync(&p, 4096, pool, stream));
	OK(hipMemsetAsync(p, 1, 4096, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipStreamSynchronize(stream));
	OK(hipFreeAsync(blocks[5], stream));
	OK(hipMemPoolTrimTo(pool, 0));
}

/* What lies around the block must not go to anybody. */
static void shares_nothing(void)
{
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	hipMemPool_t other_pool;
	void *p;
	int fd;

	memset(&data, 0, sizeof(data));
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, blocks[2]));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, blocks[5]));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&p, pool, &data));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&other_pool, (void *)(intptr_t)card,
						  hipMemHandleTypePosixFileDescriptor, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolExportToShareableHandle(&fd, pool, hipMemHandleTypePosixFileDescriptor, 0));
}

/* CUDA's driver ends before handlers that were registered before it was loaded. */
static void skip_if_driver_ended(void)
{
	if (RUNTIME(hipDeviceSynchronize)() != hipErrorDeinitialized)
		return;
	fprintf(stderr, "the driver ends before a handler that was registered before it\n");
	_exit(SKIP);
}

static void early_handler(void)
{
	skip_if_driver_ended();
	OK(hipFree(blocks[0]));
	OK(hipFreeAsync(blocks[1], NULL));
	shares_nothing();
	uses_pool();
	waits();
}

static void late_handler(void)
{
	OK(hipFree(blocks[2]));
	OK(hipFreeAsync(blocks[3], stream));
}

/* As the destructor of a static object: after main's handlers. */
__attribute__((destructor)) static void last(void)
{
	if (!blocks[4])
		return;
	OK(hipFree(blocks[4]));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolDestroy(pool));
}

/* A wait that was skipped, because there was nobody to notice, is made good before somebody
 * could. */
static void asks(void)
{
	OK(hipEventQuery(event));
}

static int owes(void)
{
	atexit(asks);
	OK(hipEventCreate(&event));
	OK(hipMalloc(&result, BYTES));
	OK(hipMemsetAsync(result, 1, BYTES, NULL));
	OK(hipEventRecord(event, NULL));
	OK(hipFree(result));
	return 0;
}

/* A thread that goes on until there is no process any more. */
static void *works(void *ready)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreate(&s));
	for (;;) {
		OK(hipMallocFromPoolAsync(&p, 1000, pool, s));
		OK(hipFreeAsync(p, s));
		atomic_store((atomic_bool *)ready, true);
	}
	return NULL;
}

static void slowly(void)
{
	usleep(50000);
}

static int worker(void)
{
	static atomic_bool ready;
	pthread_t thread;

	atexit(slowly);
	pool = make_pool(0, hipMemHandleTypeNone);
	CHECK(!pthread_create(&thread, NULL, works, &ready));
	CHECK(!pthread_detach(thread));
	while (!atomic_load(&ready))
		usleep(100);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	if (argc > 1 && !strcmp(argv[1], "worker"))
		return worker();
	if (argc > 1 && !strcmp(argv[1], "owes"))
		return owes();
	atexit(early_handler); /* before the shim starts, so it runs after */
	OK(hipStreamCreate(&stream));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipMalloc(&result, BYTES));
	OK(hipHostMalloc((void **)&pinned, BYTES, 0));
	memset(pinned, 0, BYTES);
	pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);
	OK(hipMemPoolExportToShareableHandle(&card, pool, hipMemHandleTypePosixFileDescriptor, 0));
	for (int i = 0; i < 6; i++)
		if (i == 5)
			OK(hipMallocFromPoolAsync(&blocks[i], 4096, pool, stream));
		else if (i & 1)
			OK(hipMallocAsync(&blocks[i], 4096, stream));
		else
			OK(hipMalloc(&blocks[i], 4096));
	atexit(late_handler);
	return 0;
}

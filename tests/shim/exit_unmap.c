/* SPDX-License-Identifier: MIT */
/*
 * What is at work on virtual memory when the process ends: a stream of a peer, threads that still
 * submit, a stream that never ends. Where the runtime needs the memory to be unmapped before its
 * end (6.4), nothing may be unmapped under work of a device.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define BYTES (8 << 20)
#include "test.h"

static void *block;
static hipStream_t stream;
static const char *how;

static void peer(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPool_t pool;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolSetAccess(pool, &access, 1));
	OK(hipMallocAsync(&block, BYTES, NULL));
	OK(hipStreamSynchronize(NULL));
	OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int i = 0; i < 40; i++)
		OK(hipMemsetAsync(block, i, BYTES, stream));
	OK(hipSetDevice(0));
}

static hipError_t submit(void *p, hipStream_t s)
{
	static char host[4096];

	if (!strcmp(how, "copy"))
		return hipMemcpyAsync(p, (char *)p + BYTES / 2, BYTES / 2, hipMemcpyDeviceToDevice,
				      s);
	if (!strcmp(how, "rows"))
		return hipMemset2DAsync(p, 4096, 1, 2048, 1024, s);
	if (!strcmp(how, "wait"))
		return hipMemcpy(host, p, sizeof(host), hipMemcpyDeviceToHost);
	if (!strcmp(how, "set"))
		return hipMemset(p, 1, BYTES);
	return hipMemsetAsync(p, 1, BYTES, s);
}

#define THREADS 3

static void *blocks[THREADS];
static atomic_int rounds[THREADS];

/* Goes on until there is no process any more, or a call is refused. */
static void *works(void *number)
{
	int i = (int)(intptr_t)number;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	/* A few commands are in flight at a time. */
	while (submit(blocks[i], s) == hipSuccess)
		if (atomic_fetch_add(&rounds[i], 1) % 8 == 7)
			OK(hipStreamSynchronize(strcmp(how, "set") ? s : NULL));
	return NULL;
}

static void threads(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		OK(hipMallocAsync(&blocks[i], BYTES, NULL));
	OK(hipStreamSynchronize(NULL));
	for (int i = 0; i < THREADS; i++) {
		must(!pthread_create(&thread, NULL, works, (void *)(intptr_t)i), "pthread_create");
		must(!pthread_detach(thread), "pthread_detach");
	}
	for (int i = 0; i < THREADS; i++)
		while (atomic_load(&rounds[i]) < 3)
			usleep(100);
}

/* The runtime's end waits for no stream. */
static void stuck(void)
{
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipMallocAsync(&block, BYTES, stream));
	OK(hipStreamSynchronize(stream));
	stall(stream);
	OK(hipMemsetAsync(block, 1, BYTES, stream));
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	CHECK(argc > 1);
	how = argv[1];
	if (!strcmp(how, "peer"))
		peer();
	else if (!strcmp(how, "stuck"))
		stuck();
	else
		threads();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads that are cancelled in a HIP call. The first call of the process opens the journal, which
 * is a cancellation point. Other threads must be able to use the shim afterwards.
 */
#include <pthread.h>
#include <unistd.h>

#include "test.h"

static hipStream_t stream;

static void *first_call(void *arg)
{
	void *p;

	(void)arg;
	pthread_cancel(pthread_self());
	(void)hipMalloc(&p, 4096);
	pthread_testcancel();
	return NULL;
}

/* hipFree waits for `stream` on the thread's account, which pins it. */
static void *frees(void *block)
{
	pthread_cancel(pthread_self());
	(void)hipFree(block);
	pthread_testcancel();
	return NULL;
}

static void run(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	void *end;

	CHECK(!pthread_create(&thread, NULL, fn, arg));
	CHECK(!pthread_join(thread, &end));
	CHECK(end == PTHREAD_CANCELED);
}

int main(void)
{
	void *p;

	CHECK(preloaded());
	alarm(60); /* a lock that is left behind hangs */
	run(first_call, NULL);
	OK(hipMalloc(&p, 4096));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipMemsetAsync(p, 1, 4096, stream));
	run(frees, p);
	OK(hipStreamDestroy(stream));
	OK(hipMalloc(&p, 4096));
	OK(hipFree(p));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A child passes everything through, also while other threads hold our locks. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static atomic_bool stop;

static void *busy(void *arg)
{
	hipStream_t s;
	void *p;

	(void)arg;
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	while (!atomic_load(&stop)) {
		OK(hipMallocAsync(&p, 4096, s));
		OK(hipFreeAsync(p, s));
		OK(hipMalloc(&p, 70000));
		OK(hipFree(p));
	}
	OK(hipStreamDestroy(s));
	return NULL;
}

int main(void)
{
	pthread_t threads[3];
	void *p;

	CHECK(preloaded());
	OK(hipMalloc(&p, 1000));
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, busy, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0) {
			/* What HIP says in a child is its own affair. */
			(void)hipGetLastError();
			(void)hipPeekAtLastError();
			_exit(0);
		}
		alarm(30); /* a lock left behind would hang here */
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	OK(hipFree(p));
	return 0;
}

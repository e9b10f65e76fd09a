/* SPDX-License-Identifier: MIT */
/*
 * A forked child passes every call on, even if other threads of the parent held our locks
 * at the fork. So does one that is forked while another thread is in the first call.
 */
#include <fcntl.h>
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

/* What is the parent's does not reach the child's runtime. */
static void in_child(hipMemPool_t pool, void *p)
{
	hipIpcMemHandle_t handle;
	uint64_t v;
	void *q;

	GIVES(hipErrorNotInitialized, hipMallocFromPoolAsync(&q, 4096, pool, NULL));
	GIVES(hipErrorNotInitialized,
	      hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &v));
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, p));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolDestroy(pool));
}

static void *first_call(void *arg)
{
	void *p;

	(void)arg;
	OK(hipMalloc(&p, 1000));
	OK(hipFree(p));
	return NULL;
}

/* The shim warns of an unknown option while it starts, and standard error is a full pipe. */
static int fork_in_start(void)
{
	static char page[4096];
	pthread_t thread;
	int status, fds[2];
	void *p;
	pid_t pid;

	CHECK(getenv("SOMASHIM_UNKNOWN"));
	CHECK(!pipe2(fds, O_NONBLOCK));
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	CHECK(!fcntl(fds[1], F_SETFL, 0) && dup2(fds[1], 2) == 2);
	CHECK(!pthread_create(&thread, NULL, first_call, NULL));
	usleep(300000);
	pid = fork();
	if (!pid) {
		(void)close(2);
		(void)hipMalloc(&p, 1000);
		_exit(0);
	}
	alarm(30); /* a lock left behind would hang here */
	CHECK(waitpid(pid, &status, 0) == pid);
	while (read(fds[0], page, sizeof(page)) > 0)
		;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(!pthread_join(thread, NULL));
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[3];
	hipMemPool_t pool;
	void *p;

	CHECK(preloaded());
	if (argc > 1 && !strcmp(argv[1], "start"))
		return fork_in_start();
	pool = make_pool(0, hipMemHandleTypeNone);
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
			in_child(pool, p);
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

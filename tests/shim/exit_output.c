/* SPDX-License-Identifier: MIT */
/* Ends in the way that the argument names; exit_output.sh looks at what the shim wrote. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define THREADS 16

static void once(hipStream_t stream)
{
	void *p;

	OK(hipMallocAsync(&p, 4096, stream));
	OK(hipFreeAsync(p, stream));
}

static void *own_stream(void *barrier)
{
	for (int i = 0; i < 4; i++)
		once(hipStreamPerThread);
	/* The number of a thread that has ended may be another's. */
	pthread_barrier_wait(barrier);
	return NULL;
}

static void threads(void)
{
	pthread_barrier_t barrier;
	pthread_t thread[THREADS];

	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, own_stream, &barrier));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

#define STREAMS 4
#define OPERATIONS 600

/* hipFree that does not wait, on several streams. Prints how many packets were enqueued beside the
 * program's own commands. */
static void packets(unsigned flags)
{
	hipStream_t s[STREAMS];
	void *p;

	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&s[i], flags));
	for (int i = 0; i < OPERATIONS; i++) {
		OK(hipMalloc(&p, (size_t)(1 + i % 3) << 16));
		OK(hipMemsetAsync(p, 1, 1 << 16, s[i % STREAMS]));
		OK(hipFree(p));
	}
	printf("%lu\n",
	       (unsigned long)(sim_count("hipEventRecord") + sim_count("hipStreamWriteValue64")));
}

/* A pool that is destroyed before the program ends. */
static void own_pool(void)
{
	const hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				       .location = {hipMemLocationTypeDevice, 0}};
	hipMemPool_t pool;
	void *p;

	OK(hipMemPoolCreate(&pool, &props));
	for (int i = 0; i < 3; i++) {
		OK(hipMallocFromPoolAsync(&p, 4096, pool, NULL));
		OK(hipFreeAsync(p, NULL));
	}
	OK(hipStreamSynchronize(NULL));
	OK(hipMemPoolDestroy(pool));
}

static void on_signal(int sig)
{
	(void)sig;
	_exit(0);
}

/* Interrupts a thread that is mostly in the heap. */
static void signalled(void)
{
	CHECK(signal(SIGALRM, on_signal) != SIG_ERR);
	ualarm(20000, 0);
	for (;;)
		free(malloc(100000));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int status;
	pid_t pid;
	void *p;

	if (!strcmp(how, "worker") && (pid = fork())) {
		/* The child is the first to use HIP. */
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		return WEXITSTATUS(status);
	}
	once(NULL);
	if (!strcmp(how, "pool"))
		own_pool();
	if (!strcmp(how, "blocking"))
		packets(hipStreamDefault);
	if (!strcmp(how, "nonblocking"))
		packets(hipStreamNonBlocking);
	if (!strcmp(how, "threads"))
		threads();
	if (!strcmp(how, "signal"))
		signalled();
	/* The page shows the block by the second call at the latest */
	if (!strcmp(how, "killed")) {
		OK(hipMalloc(&p, 16 << 20));
		for (int i = 0; i < 2; i++) {
			CHECK(!usleep(300000));
			OK(hipDeviceSynchronize());
		}
		CHECK(!raise(SIGKILL));
	}
	if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (!pid)
			_exit(0);
		CHECK(waitpid(pid, &status, 0) == pid);
	}
	if (!strcmp(how, "_exit") || !strcmp(how, "worker"))
		_exit(0);
	if (!strcmp(how, "_Exit"))
		_Exit(0);
	return 0;
}

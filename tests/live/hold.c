/* SPDX-License-Identifier: MIT */
/*
 * Allocates from several threads, prints the attributes of its pools, holds what is left and then
 * does what lines on stdin say: poll (call HIP all the time), idle (call nothing), burst (allocate
 * and free from several threads until the next line), fork, leave (a child), exec, quit.
 *   hold [THREADS [FILE]]    with FILE: calls HIP until there is that file, and ends
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shim/test.h"

#define THREADS_MOST 32
#define ROUNDS 400
#define KEPT 7 /* blocks that each thread leaves allocated */

static hipMemPool_t pool;
static atomic_bool stop;

static size_t size_of(unsigned thread, unsigned i)
{
	return 512 * (1 + (thread * 7919 + i * 104729) % 2000) - (i & 1) * 100;
}

static void allocate(void **p, unsigned thread, unsigned i, hipStream_t s)
{
	if (i % 3 == 0)
		OK(hipMalloc(p, size_of(thread, i)));
	else if (i % 3 == 1)
		OK(hipMallocAsync(p, size_of(thread, i), s));
	else
		OK(hipMallocFromPoolAsync(p, size_of(thread, i), pool, s));
}

static void *work(void *arg)
{
	unsigned thread = (unsigned)(uintptr_t)arg;
	void *p[16] = {0};
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (unsigned i = 0; i < ROUNDS; i++) {
		void **at = &p[i * 31 % 16];

		if (*at)
			OK(i % 5 ? hipFreeAsync(*at, s) : hipFree(*at));
		allocate(at, thread, i, s);
	}
	for (unsigned i = KEPT; i < 16; i++)
		if (p[i])
			OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	return NULL;
}

static void *hit(void *arg)
{
	hipStream_t s;
	void *p;

	(void)arg;
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	while (!atomic_load(&stop)) {
		OK(hipMallocAsync(&p, 4096, s));
		OK(hipFreeAsync(p, s));
	}
	OK(hipStreamDestroy(s));
	return NULL;
}

static void print_pool(const char *name, hipMemPool_t of)
{
	printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", name,
	       figure(of, hipMemPoolAttrUsedMemCurrent), figure(of, hipMemPoolAttrUsedMemHigh),
	       figure(of, hipMemPoolAttrReservedMemCurrent),
	       figure(of, hipMemPoolAttrReservedMemHigh));
}

/* A child of a served process is not served. */
static void fork_child(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		void *p;

		for (int i = 0; i < 1000; i++)
			if (hipMalloc(&p, 1000) == hipSuccess)
				(void)hipFree(p);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("forked\n");
}

static void leave_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		alarm(60);
		pause();
	}
	printf("left\n");
}

static bool input(int ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&fd, 1, ms) != 0;
}

static void run(void *(*fn)(void *), unsigned threads)
{
	pthread_t id[THREADS_MOST];

	for (unsigned i = 0; i < threads; i++)
		CHECK(!pthread_create(&id[i], NULL, fn, (void *)(uintptr_t)i));
	if (fn == hit) {
		while (!input(1))
			;
		atomic_store(&stop, true);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	atomic_store(&stop, false);
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	hipMemPool_t def;
	char line[64];

	CHECK(threads <= THREADS_MOST && preloaded());
	pool = make_pool(0, hipMemHandleTypeNone);
	OK(hipDeviceGetDefaultMemPool(&def, 0));
	run(work, threads);
	OK(hipDeviceSynchronize());
	usleep(150000); /* more than the longest time between two updates of the page */
	(void)hipStreamQuery(NULL);
	print_pool("default", def);
	print_pool("pool 3", pool);
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (argc > 2 && access(argv[2], F_OK))
		(void)hipStreamQuery(NULL);
	setvbuf(stdin, NULL, _IONBF, 0);
	while (argc <= 2 && fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "poll\n"))
			while (!input(1))
				(void)hipStreamQuery(NULL);
		else if (!strcmp(line, "burst\n"))
			run(hit, threads);
		else if (!strcmp(line, "fork\n"))
			fork_child();
		else if (!strcmp(line, "leave\n")) /* a child that outlives us */
			leave_child();
		else if (!strcmp(line, "exec\n"))
			execlp("sleep", "sleep", "30", (char *)NULL);
		else if (!strcmp(line, "quit\n"))
			break;
		fflush(stdout);
	}
	return 0;
}

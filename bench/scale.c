/* SPDX-License-Identifier: MIT */
/*
 * Throughput of threads that have a stream each. `scale TRACE` prints the medians of 2 threads over
 * 2 processes, of 2 threads with a device each over 2 processes, and of 32 threads over 2 threads.
 * Two devices share nothing in the pools, so what these lack is the machine's. All of them exist at
 * the same time, are warm, and take turns of a tenth of a second, because a processor of a shared
 * machine may be twice as fast a second later. This is done five times: how the memory of one
 * process came to be divided makes it faster or slower than the next by a sixth, for its whole
 * life. `scale TRACE THREADS` is one process that has every turn, for a profiler; it prints pairs
 * per second.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

#define TIMES 5
#define ROUNDS 11 /* each time */
#define TURN_US 100000
#define ALONE_US 2000000
#define WARM 1500000 /* pairs of each thread */

enum { NOBODY, THREADS, PROCESSES, APART, MANY, GROUPS };
static const struct {
	int processes, threads, devices;
} group[GROUPS] = {
	[THREADS] = {1, 2, 1},
	[PROCESSES] = {2, 1, 1},
	[APART] = {1, 2, 2},
	[MANY] = {1, 32, 1},
};

/* What all processes share. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	atomic_int turn;
	int warm, running;
	uint64_t pairs; /* of this turn */
} * shared;

static const struct trace *trace;
static int mine;

static void pass(void **ptr, hipStream_t stream)
{
	for (const struct op *o = trace->op; o < trace->op + trace->count; o++)
		if (o->size)
			CHECK(hipMallocAsync(&ptr[o->slot], o->size, stream));
		else
			CHECK(hipFreeAsync(ptr[o->slot], stream));
}

static void *worker(void *arg)
{
	void **ptr = calloc(trace->slots, sizeof(*ptr));
	hipStream_t stream;

	CHECK(hipSetDevice((int)(intptr_t)arg));
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (size_t pairs = 0; pairs < WARM; pairs += trace->pairs)
		pass(ptr, stream);
	pthread_mutex_lock(&shared->lock);
	shared->warm++;
	for (;;) {
		uint64_t pairs = 0;

		pthread_cond_broadcast(&shared->changed);
		while (shared->turn != mine)
			pthread_cond_wait(&shared->changed, &shared->lock);
		shared->running++;
		pthread_mutex_unlock(&shared->lock);
		for (; shared->turn == mine; pairs += trace->pairs)
			pass(ptr, stream);
		pthread_mutex_lock(&shared->lock);
		shared->running--;
		shared->pairs += pairs;
	}
	return arg;
}

static void start(int threads, int devices)
{
	pthread_t thread;

	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, worker, (void *)(intptr_t)(i % devices)))
			die("no thread");
}

static void set_turn(int turn)
{
	pthread_mutex_lock(&shared->lock);
	shared->turn = turn;
	if (turn)
		shared->pairs = 0;
	pthread_cond_broadcast(&shared->changed);
	while (!turn && shared->running)
		pthread_cond_wait(&shared->changed, &shared->lock);
	pthread_mutex_unlock(&shared->lock);
}

/* Pairs per second in one turn. */
static double take_turn(int g, useconds_t us)
{
	double from = now_ns();

	set_turn(g);
	usleep(us);
	set_turn(NOBODY);
	return (double)shared->pairs / (now_ns() - from) * 1e9;
}

static void wait_warm(int threads)
{
	pthread_mutex_lock(&shared->lock);
	while (shared->warm < threads)
		pthread_cond_wait(&shared->changed, &shared->lock);
	pthread_mutex_unlock(&shared->lock);
}

static void map(int fd)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("no memory");
}

static void renew(void)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &ma);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->changed, &ca);
}

static int share(void)
{
	int fd = memfd_create("bench", 0);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		die("no memory");
	map(fd);
	renew();
	return fd;
}

/* Starts a process before HIP is used, because HIP does not survive a fork. */
static pid_t member(const char *self, const char *path, int fd, int g)
{
	char fd_arg[16], g_arg[16];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(fd_arg, sizeof(fd_arg), "%d", fd);
	snprintf(g_arg, sizeof(g_arg), "%d", g);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (group[g].devices > 1)
		setenv("SOMASIM_DEVICES", "2", 1);
	execl(self, self, path, fd_arg, g_arg, (char *)NULL);
	_exit(127);
}

/* A run that fails must not be waited for. */
static void on_child(int sig)
{
	(void)sig;
	_exit(1);
}

static void compare(const char *self, const char *path, int fd, double *two, double *apart,
		    double *many)
{
	pid_t pid[8];
	int processes = 0, threads = 0;

	shared->warm = 0;
	signal(SIGCHLD, on_child);
	for (int g = 1; g < GROUPS; g++)
		for (int p = 0; p < group[g].processes; p++) {
			pid[processes++] = member(self, path, fd, g);
			threads += group[g].threads;
		}
	wait_warm(threads);
	for (int r = 0; r < ROUNDS; r++) {
		double t = take_turn(THREADS, TURN_US), p = take_turn(PROCESSES, TURN_US);

		two[r] = t / p;
		apart[r] = take_turn(APART, TURN_US) / p;
		many[r] = take_turn(MANY, TURN_US) / t;
	}
	/* The killed processes wait for a turn, so the next ones get a new condition variable. */
	signal(SIGCHLD, SIG_DFL);
	while (processes--) {
		kill(pid[processes], SIGKILL);
		waitpid(pid[processes], NULL, 0);
	}
	renew();
}

int main(int argc, char **argv)
{
	double two[TIMES * ROUNDS], apart[TIMES * ROUNDS], many[TIMES * ROUNDS];
	int fd;

	if (argc < 2 || argc > 4)
		die("usage: scale TRACE [THREADS]");
	trace = trace_open(argv[1]);
	if (argc == 4) {
		map(atoi(argv[2]));
		mine = atoi(argv[3]);
		start(group[mine].threads, group[mine].devices);
		for (;;)
			pause();
	}
	fd = share();
	if (argc == 3) {
		mine = THREADS;
		start(atoi(argv[2]), 1);
		wait_warm(atoi(argv[2]));
		printf("%.0f\n", take_turn(mine, ALONE_US));
		return 0;
	}
	for (int time = 0; time < TIMES; time++)
		compare(argv[0], argv[1], fd, two + time * ROUNDS, apart + time * ROUNDS,
			many + time * ROUNDS);
	printf("two %.3f\napart %.3f\nmany %.3f\n", median(two, TIMES * ROUNDS),
	       median(apart, TIMES * ROUNDS), median(many, TIMES * ROUNDS));
	return 0;
}

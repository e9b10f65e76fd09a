/* SPDX-License-Identifier: MIT */
/*
 * A program frees its memory and then makes no HIP call: the memory is released by itself, by a
 * thread that exists only as long as something is idle, and sleeps until it is due. And what a
 * program may do meanwhile that such a thread must not disturb: fork, exec, every way to exit,
 * signals, captures, resets, streams that wait for the host. Needs a short SOMASHIM_DECAY_MS.
 *
 * While the program is silent it looks at the device past the runtime (device_free of the software
 * device).
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)
#define COUNT 16
#define EACH (16 * MIB)
#define ALL (COUNT * EACH)
/* May stay: what the runtime itself takes, and a segment that something small is in */
#define SLACK (40 * MIB)
#define PATIENCE 30000 /* ms until something that must happen has not happened */

static hipStream_t stream;
static void *p[COUNT];
static uint64_t before;

/* ---- the thread, from outside ------------------------------------------------- */

/* Its number, or 0. */
static int decay_thread(void)
{
	char path[300], name[32];
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int found = 0;

	CHECK(d);
	while ((e = readdir(d)) && !found) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, name, sizeof(name));
		if (fd >= 0)
			close(fd);
		if (n > 0 && !strncmp(name, "somashim-decay\n", (size_t)n))
			found = atoi(e->d_name);
	}
	closedir(d);
	return found;
}

#define SOON(cond) do { \
	double end_ = now_ms() + PATIENCE; \
	while (!(cond)) { \
		if (now_ms() > end_) { \
			fprintf(stderr, "%s:%d: not in time: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
		usleep(1000); \
	} \
} while (0)

static bool is_back(void)
{
	return device_free(0) + SLACK >= before;
}

/* ---- memory that becomes idle ----------------------------------------------------- */

static void take(bool async)
{
	for (int i = 0; i < COUNT; i++)
		if (async)
			OK(hipMallocAsync(&p[i], EACH, stream));
		else
			OK(hipMalloc(&p[i], EACH));
	CHECK(device_free(0) + ALL / 2 <= before);
}

static void give(bool async)
{
	for (int i = 0; i < COUNT; i++)
		if (async)
			OK(hipFreeAsync(p[i], stream));
		else
			OK(hipFree(p[i]));
}

/* Hits, so that the last frees take the shortest way there is. */
static void warm(bool async)
{
	void *q;

	for (int i = 0; i < 300; i++) {
		if (async) {
			OK(hipMallocAsync(&q, 4096, stream));
			OK(hipFreeAsync(q, stream));
		} else {
			OK(hipMalloc(&q, 4096));
			OK(hipFree(q));
		}
	}
}

static void begin(void)
{
	void *q;

	OK(hipStreamCreate(&stream));
	OK(hipMallocAsync(&q, 4096, stream));
	OK(hipMemsetAsync(q, 0, 4096, stream));
	OK(hipFreeAsync(q, stream));
	OK(hipStreamSynchronize(stream));
	before = device_free(0);
}

/* ---- what is freed goes back --------------------------------------------------------- */

static void silence(bool async)
{
	for (int round = 0; round < 3; round++) {
		take(async);
		warm(async);
		for (int i = 0; i < COUNT && async; i++)
			OK(hipMemsetAsync(p[i], i, 4096, stream));
		give(async);
		SOON(is_back());
		SOON(!decay_thread()); /* nothing idle is left */
	}
}

static void frees(void)
{
	silence(false);
}

static void frees_async(void)
{
	silence(true);
}

/* What was freed while its pool was destroyed, trimmed, or above its threshold. */
static void pools(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	uint64_t keep = 0;

	for (int how = 0; how < 3; how++) {
		for (int i = 0; i < COUNT; i++)
			OK(hipMallocFromPoolAsync(&p[i], EACH, pool, stream));
		stall(stream);
		OK(hipMemsetAsync(p[0], 1, 4096, stream));
		if (how == 1)
			OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
		give(true);
		if (how == 0)
			OK(hipMemPoolTrimTo(pool, 0));
		if (how == 2)
			OK(hipMemPoolDestroy(pool));
		release(stream);
		SOON(is_back());
	}
}

static void devices(void)
{
	uint64_t first = device_free(1);
	void *q;

	take(false);
	OK(hipSetDevice(1));
	OK(hipMalloc(&q, ALL));
	CHECK(device_free(1) + ALL <= first);
	OK(hipFree(q));
	OK(hipSetDevice(0));
	give(false);
	SOON(is_back() && device_free(1) + SLACK >= first);
}

/* A segment that is larger than what the thread releases at once. */
static void large(void)
{
	OK(hipMalloc(&p[0], 5 * 512 * MIB));
	CHECK(device_free(0) + 4 * 512 * MIB <= before);
	OK(hipFree(p[0]));
	SOON(is_back());
}

/* A thread only while something is idle, and none for a program that holds all it has. */
static void none(void)
{
	uint64_t left;

	take(false);
	SOON(!decay_thread());
	usleep(300000);
	CHECK(!decay_thread());
	warm(false);           /* a free calls the thread, */
	SOON(!decay_thread()); /* which finds nothing that could go */
	left = device_free(0);
	for (int i = 0; i < COUNT / 2; i++)
		OK(hipFree(p[i]));
	SOON(device_free(0) >= left + ALL / 2 - SLACK);
}

/* Synchronizations do the work of a thread that is not there. */
static void off(void)
{
	for (int async = 0; async < 2; async++) {
		take(async);
		give(async);
		SOON(hipStreamSynchronize(stream) == hipSuccess && is_back());
		CHECK(!decay_thread());
	}
}

/* A stream that waits for the host: nothing goes, nothing hangs, and what is freed goes when it
 * can. */
static void stuck(void)
{
	void *q;

	take(true);
	OK(hipMalloc(&q, EACH));
	stall(stream);
	OK(hipMemsetAsync(p[0], 1, 4096, stream));
	give(true);
	usleep(500000);
	CHECK(device_free(0) + ALL / 2 <= before);
	CHECK(decay_thread());
	release(stream);
	SOON(is_back());
	OK(hipFree(q));
	take(true);
	stall(stream);
	OK(hipMemsetAsync(p[0], 1, 4096, stream));
	give(true);
	usleep(200000); /* and it ends while it is stuck */
	_exit(0);
}

/* How often the thread was woken. */
static unsigned wakes(void)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", decay_thread());
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %u", &n);
	fclose(f);
	return n;
}

/* Idle memory that is not due wakes nobody, though the process has a live page. SOMASHIM_DECAY_MS
 * is far more than the test takes. */
static void sleeps(void)
{
	unsigned before_nap;

	take(true);
	give(true);
	OK(hipStreamSynchronize(stream));
	SOON(decay_thread());
	usleep(500000); /* the page has told of the frees */
	before_nap = wakes();
	usleep(700000);
	CHECK(wakes() <= before_nap + 1);
	CHECK(device_free(0) + ALL / 2 <= before);
}

/* ---- what must not be disturbed ----------------------------------------------------------- */

static void *sends(void *arg)
{
	for (int i = 0; i < 200; i++) {
		kill(getpid(), SIGUSR1);
		usleep(500);
	}
	return arg;
}

/* Signals arrive at the program's own threads. */
static void signals(void)
{
	unsigned long long blocked = 0;
	sigset_t set, now;
	char path[64], line[256];
	pthread_t thread;
	FILE *f;
	int got, tid;

	take(true);
	stall(stream); /* so that the thread stays */
	OK(hipMemsetAsync(p[0], 0, 4096, stream));
	give(true);
	SOON((tid = decay_thread()) != 0);
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now) && !sigismember(&now, SIGUSR2));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(f);
	for (int s = 1; s < 32; s++)
		CHECK(s == SIGKILL || s == SIGSTOP || (blocked >> (s - 1) & 1));
	CHECK(!pthread_create(&thread, NULL, sends, NULL));
	CHECK(!sigwait(&set, &got) && got == SIGUSR1);
	CHECK(!pthread_join(thread, NULL));
	release(stream);
	SOON(is_back());
}

/* Children of a program whose thread is at work just then. */
static void *works(void *arg)
{
	for (int i = 0; i < 10; i++) {
		void *q;

		OK(hipMalloc(&q, EACH));
		OK(hipFree(q));
		usleep(20000);
	}
	return arg;
}

static void forks(void)
{
	pthread_t other;

	take(false);
	give(false);
	CHECK(!pthread_create(&other, NULL, works, NULL));
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid) {
			void *q;

			CHECK(!decay_thread());
			(void)hipFree(p[0]); /* it starts none either */
			(void)hipMalloc(&q, 4096);
			CHECK(!decay_thread());
			if (i % 3 == 0)
				exit(0);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		usleep(5000);
	}
	CHECK(!pthread_join(other, NULL));
	SOON(is_back());
}

/* In a child process: it ends in such a way while its thread is at work. */
static void ends(const char *way)
{
	take(false);
	give(false);
	SOON(decay_thread());
	usleep(60000);
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "quick_exit"))
		quick_exit(0);
	if (!strcmp(way, "_exit"))
		_exit(0);
	execl("/bin/true", "true", NULL);
	_exit(9);
}

/* Captures of the strictest kind while memory goes back: none is spoilt. */
static void captures(void)
{
	hipStream_t other;
	hipGraph_t graph;

	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	for (int i = 0; i < 40; i++) {
		void *q;

		OK(hipMalloc(&q, EACH + (size_t)i * 2 * MIB));
		OK(hipFree(q));
		OK(hipMalloc(&q, 4096));
		usleep(1000 * (unsigned)(i % 8));
		OK(hipStreamBeginCapture(other, hipStreamCaptureModeGlobal));
		OK(hipMemsetAsync(q, 1, 4096, other));
		usleep(1000 * (unsigned)(i % 16));
		OK(hipMemsetAsync(q, 2, 4096, other));
		OK(hipStreamEndCapture(other, &graph));
		CHECK(graph);
		OK(hipGraphDestroy(graph));
		OK(hipFree(q));
	}
	/* Nothing goes during a capture, and what is idle goes after it. */
	take(false);
	OK(hipStreamBeginCapture(other, hipStreamCaptureModeRelaxed));
	give(false);
	usleep(300000);
	OK(hipStreamEndCapture(other, &graph));
	OK(hipGraphDestroy(graph));
	SOON(is_back());
}

static void resets(void)
{
	for (int i = 0; i < 30; i++) {
		take(false);
		give(false);
		usleep(1000 * (unsigned)i);
		OK(hipDeviceReset());
	}
	SOON(is_back());
	take(false);
	give(false);
	SOON(is_back());
}

/* Threads that come and go, and memory with them, while the thread starts and ends. */
static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	hipStream_t s;
	void *q[4];

	for (int round = 0; round < 12; round++) {
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
		for (int i = 0; i < 4; i++) {
			seed = seed * 1103515245 + 12345;
			OK(hipMallocAsync(&q[i], (seed >> 16) % 8 * MIB + 4096, s));
			OK(hipMemsetAsync(q[i], i, 4096, s));
		}
		for (int i = 0; i < 4; i++)
			OK(hipFreeAsync(q[i], s));
		OK(hipStreamSynchronize(s));
		OK(hipStreamDestroy(s));
		usleep((seed >> 16) % 60000);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, churn, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	SOON(is_back());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"frees", frees},   {"frees_async", frees_async},
		{"pools", pools},   {"devices", devices},
		{"none", none},     {"off", off},
		{"stuck", stuck},   {"signals", signals},
		{"forks", forks},   {"captures", captures},
		{"resets", resets}, {"threads", threads},
		{"sleeps", sleeps}, {"large", large},
	};

	CHECK(preloaded());
	CHECK(argc > 1);
	if (!sim_call("somasim_device_free_bytes"))
		/* A real device is asked by a call of HIP, so the program is never silent */
		return SKIP;
	alarm(300);
	if (!strcmp(argv[1], "signals")) { /* before the runtime makes threads of its own */
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	}
	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	ends(argv[1]);
	return 1;
}

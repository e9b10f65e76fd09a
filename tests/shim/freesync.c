/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=auto: hipFree waits as the real one does unless nobody can notice, and
 * whoever could notice later sees what the real call would have left. A null stream that is
 * held back shows whether a call waits; a helper thread releases it after a while.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define SIZE (1u << 20)
#define HOLD_MS 150
#define AT_ONCE 8 /* processes */

static pthread_t releaser;

static void *let_go(void *stream)
{
	struct timespec ts = {0, HOLD_MS * 1000000L};

	nanosleep(&ts, NULL);
	release((hipStream_t)stream);
	return NULL;
}

/* Work that does not end before HOLD_MS have passed. */
static void busy(hipStream_t stream, void *block)
{
	stall(stream);
	OK(hipMemsetAsync(block, 1, SIZE, stream));
	CHECK(pthread_create(&releaser, NULL, let_go, stream) == 0);
}

static void joined(void)
{
	pthread_join(releaser, NULL);
}

/* Frees `p` while `stream` is busy with it; how long did that take? */
static double timed_free(hipStream_t stream, void *p)
{
	double t0 = now_ms();

	busy(stream, p);
	OK(hipFree(p));
	return now_ms() - t0;
}

static void *block(void)
{
	void *p;

	OK(hipMalloc(&p, SIZE));
	OK(hipMemset(p, 0, SIZE));
	OK(hipDeviceSynchronize());
	return p;
}

/* How long did the call after a skipped wait take, and was it as good as paid? */
static double then(hipError_t err, double t0)
{
	CHECK(err == hipSuccess);
	return now_ms() - t0;
}

static void callback(hipStream_t stream, hipError_t status, void *arg)
{
	*(volatile int *)arg = 1;
}

static char page[8192];

/* Calls after which somebody can look for good. */
static hipError_t opens(const char *what, void *block)
{
	static int called;
	hipIpcMemHandle_t handle;
	hipIpcEventHandle_t event_handle;
	hipEvent_t event;
	hipStream_t s;
	void *p;

	if (!strcmp(what, "create"))
		return hipStreamCreateWithFlags(&s, hipStreamNonBlocking);
	if (!strcmp(what, "create-blocking"))
		return hipStreamCreate(&s);
	if (!strcmp(what, "pinned"))
		return hipHostMalloc(&p, 4096, 0);
	if (!strcmp(what, "register"))
		return hipHostRegister(page, sizeof(page), 0);
	if (!strcmp(what, "managed"))
		return hipMallocManaged(&p, 4096, hipMemAttachGlobal);
	if (!strcmp(what, "fine"))
		return hipExtMallocWithFlags(&p, 4096, hipDeviceMallocFinegrained);
	if (!strcmp(what, "hostfunc"))
		return hipStreamAddCallback(NULL, callback, &called, 0);
	if (!strcmp(what, "per-thread"))
		return hipMemsetAsync(block, 0, 256, hipStreamPerThread);
	if (!strcmp(what, "export"))
		return hipIpcGetMemHandle(&handle, block);
	CHECK(!strcmp(what, "export-event"));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess));
	return hipIpcGetEventHandle(&event_handle, event);
}

static void skips(const char *what)
{
	bool never_waits = !strcmp(what, "skip");
	hipEvent_t start, stop;
	void *p, *q;
	float ms;
	double t0;

	OK(hipEventCreate(&start));
	OK(hipEventCreate(&stop));
	p = block();
	OK(hipEventRecord(start, NULL));
	stall(NULL);
	OK(hipMemsetAsync(p, 1, SIZE, NULL));
	OK(hipEventRecord(stop, NULL));
	/* One stream, nobody looks: no wait (it would be for ever), and the bytes come back at
	 * once. */
	OK(hipFree(p));
	OK(hipMalloc(&q, SIZE));
	CHECK(q == p);
	t0 = now_ms();
	CHECK(pthread_create(&releaser, NULL, let_go, NULL) == 0);
	if (!strcmp(what, "event"))
		CHECK(then(hipEventQuery(stop), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "elapsed"))
		CHECK(then(hipEventElapsedTime(&ms, start, stop), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "query"))
		CHECK(then(hipStreamQuery(NULL), t0) > HOLD_MS / 4);
	else if (!never_waits)
		CHECK(then(opens(what, q), t0) > HOLD_MS / 4);
	joined();
	OK(hipFree(q));
}

/* After each of these, hipFree waits. `plain`: it always does. */
static void waits(const char *what)
{
	hipStream_t s = NULL;
	void *p;

	if (!strcmp(what, "second"))
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	else if (!strcmp(what, "blocking"))
		OK(hipStreamCreate(&s));
	else if (strcmp(what, "plain"))
		OK(opens(what, block()));
	p = block();
	CHECK(timed_free(s, p) > HOLD_MS / 4);
	joined();
}

/* Another stream is ordered after the first by hipFree alone. */
static void ordered(const char *what)
{
	bool later = !strcmp(what, "created-later");
	unsigned char got[2] = {0, 0};
	hipStream_t s = NULL;
	void *p = block(), *q = block();

	if (!later)
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	busy(NULL, q);
	OK(hipFree(p));
	if (later)
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMemcpyAsync(&got[0], q, 1, hipMemcpyDeviceToHost, s));
	OK(hipMemcpyAsync(&got[1], (char *)q + SIZE - 1, 1, hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	CHECK(got[0] == 1 && got[1] == 1);
	joined();
}

/* Another process that has a block open is told when hipFree has returned. */
static void imported(const char *self)
{
	hipIpcMemHandle_t handle;
	int to[2], status;
	void *p, *q;
	pid_t pid;

	CHECK(pipe(to) == 0);
	pid = fork();
	if (!pid) {
		dup2(to[0], 0);
		close(to[1]);
		execl(self, self, "importer", "", (char *)NULL);
		_exit(127);
	}
	p = block();
	q = block();
	OK(hipIpcGetMemHandle(&handle, q));
	CHECK(write(to[1], &handle, sizeof(handle)) == sizeof(handle));
	busy(NULL, q);
	OK(hipFree(p));
	CHECK(write(to[1], "", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
	joined();
}

static void importer(void)
{
	unsigned char got[2] = {0, 0};
	hipIpcMemHandle_t handle;
	hipStream_t s;
	char *p, told;

	CHECK(read(0, &handle, sizeof(handle)) == sizeof(handle));
	OK(hipIpcOpenMemHandle((void **)&p, handle, 1));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	CHECK(read(0, &told, 1) == 1);
	OK(hipMemcpyAsync(&got[0], p, 1, hipMemcpyDeviceToHost, s));
	OK(hipMemcpyAsync(&got[1], p + SIZE - 1, 1, hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	CHECK(got[0] == 1 && got[1] == 1);
}

/* With `never`, the bytes stay out of reach until the work is over. */
static void gated(void)
{
	void *p = block(), *q;

	stall(NULL);
	OK(hipMemsetAsync(p, 1, SIZE, NULL));
	OK(hipFree(p)); /* if it waited, it would be for ever */
	OK(hipMalloc(&q, SIZE));
	CHECK(q != p);
	release(NULL);
	OK(hipFree(q));
}

enum { AUTO = 1, ALWAYS = 2, NEVER = 4, FEW = 8 };

/* Each in a process of its own: most of them end the mode for good. `freesync few` runs one of a
 * kind, since a process of CUDA's needs nearly a second to start, one after the other. */
static const struct {
	const char *kind, *what;
	int modes;
} ways[] = {
	/* the wait is skipped, and made good by who could tell */
	{"skips", "skip", AUTO | FEW},
	{"skips", "event", AUTO},
	{"skips", "elapsed", AUTO},
	{"skips", "query", AUTO | FEW},
	{"skips", "create", AUTO | FEW},
	{"skips", "create-blocking", AUTO},
	{"skips", "pinned", AUTO},
	{"skips", "register", AUTO},
	{"skips", "managed", AUTO},
	{"skips", "fine", AUTO},
	{"skips", "hostfunc", AUTO},
	{"skips", "per-thread", AUTO},
	{"skips", "export", AUTO},
	{"skips", "export-event", AUTO},
	/* it is not skipped */
	{"waits", "plain", ALWAYS | FEW},
	{"waits", "second", AUTO | ALWAYS | FEW},
	{"waits", "blocking", AUTO | ALWAYS},
	{"waits", "pinned", AUTO | ALWAYS},
	{"waits", "register", AUTO | ALWAYS},
	{"waits", "managed", AUTO | ALWAYS},
	{"waits", "fine", AUTO | ALWAYS},
	{"waits", "hostfunc", AUTO | ALWAYS},
	{"waits", "per-thread", AUTO | ALWAYS},
	{"waits", "export", AUTO | ALWAYS | FEW},
	{"waits", "export-event", AUTO | ALWAYS},
	/* what a program gets from it */
	{"ordered", "second", AUTO | ALWAYS | FEW},
	{"ordered", "created-later", AUTO | ALWAYS},
	{"imported", "", AUTO | ALWAYS | FEW},
	{"gated", "", NEVER | FEW},
};

/* A real device needs most of a second to start in a process, so several start at once. */
static int all_ways(const char *self, int mode, bool few)
{
	const size_t count = sizeof(ways) / sizeof(ways[0]);
	pid_t pid[sizeof(ways) / sizeof(ways[0])] = {0};
	size_t started = 0, running = 0;
	int status, skipped = 0, failed = 0;

	while (started < count || running) {
		if (started < count && running < AT_ONCE) {
			size_t i = started++;

			if (!(ways[i].modes & mode) || (few && !(ways[i].modes & FEW)))
				continue;
			pid[i] = fork();
			CHECK(pid[i] >= 0);
			if (!pid[i]) {
				execl(self, self, ways[i].kind, ways[i].what, (char *)NULL);
				_exit(127);
			}
			running++;
			continue;
		}
		pid_t ended = wait(&status);
		size_t i = 0;

		CHECK(ended > 0);
		while (i < count && pid[i] != ended)
			i++;
		CHECK(i < count);
		running--;
		if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) {
			skipped++;
		} else if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "%s %s: failed\n", ways[i].kind, ways[i].what);
			failed++;
		}
	}
	return failed ? 1 : skipped ? SKIP : 0;
}

int main(int argc, char **argv)
{
	const char *set = getenv("SOMASHIM_FREE_SYNC");
	int mode = !set || !strcmp(set, "auto") ? AUTO : !strcmp(set, "always") ? ALWAYS : NEVER;

	CHECK(preloaded());
	if (argc == 3) {
		if (!strcmp(argv[1], "skips"))
			skips(argv[2]);
		else if (!strcmp(argv[1], "waits"))
			waits(argv[2]);
		else if (!strcmp(argv[1], "ordered"))
			ordered(argv[2]);
		else if (!strcmp(argv[1], "imported"))
			imported(argv[0]);
		else if (!strcmp(argv[1], "importer"))
			importer();
		else
			gated();
		return 0;
	}
	return all_ways(argv[0], mode, argc == 2 && !strcmp(argv[1], "few"));
}

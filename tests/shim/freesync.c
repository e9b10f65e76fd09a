/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=auto: hipFree waits as the real one unless nobody can tell,
 * and whoever could tell afterwards sees what the real call would have left. A
 * null stream that is held (not started) shows whether a call waits: a helper
 * thread lets it go after a while.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define SIZE (1u << 20)
#define HOLD_MS 150

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

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
	double t0;

	busy(stream, p);
	t0 = now_ms();
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

static void skips(const char *what)
{
	bool never_waits = !strcmp(what, "skip");
	hipEvent_t start, stop;
	hipStream_t s;
	void *p, *q, *host;
	float ms;
	double t0;

	OK(hipEventCreate(&start));
	OK(hipEventCreate(&stop));
	p = block();
	OK(hipEventRecord(start, NULL));
	stall(NULL);
	OK(hipMemsetAsync(p, 1, SIZE, NULL));
	OK(hipEventRecord(stop, NULL));
	CHECK(pthread_create(&releaser, NULL, let_go, NULL) == 0);
	t0 = now_ms();
	OK(hipFree(p));
	/* One stream, nobody looks: no wait, and the bytes come back at once. */
	CHECK(now_ms() - t0 < HOLD_MS / 2);
	OK(hipMalloc(&q, SIZE));
	CHECK(q == p && now_ms() - t0 < HOLD_MS / 2);
	t0 = now_ms();
	if (!strcmp(what, "event"))
		CHECK(then(hipEventQuery(stop), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "elapsed"))
		CHECK(then(hipEventElapsedTime(&ms, start, stop), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "query"))
		CHECK(then(hipStreamQuery(NULL), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "create"))
		CHECK(then(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), t0) > HOLD_MS / 4);
	else if (!strcmp(what, "pinned"))
		CHECK(then(hipHostMalloc(&host, 4096, 0), t0) > HOLD_MS / 4);
	else
		CHECK(never_waits);
	joined();
	OK(hipFree(q));
}

static void callback(hipStream_t stream, hipError_t status, void *arg)
{
	*(volatile int *)arg = 1;
}

/* After each of these, hipFree waits. */
static void waits(const char *what)
{
	hipStream_t s = NULL;
	void *p, *host;
	int called = 0;

	if (!strcmp(what, "second"))
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	else if (!strcmp(what, "blocking"))
		OK(hipStreamCreate(&s));
	else if (!strcmp(what, "has-pinned"))
		OK(hipHostMalloc(&host, 4096, 0));
	else if (!strcmp(what, "managed"))
		OK(hipMallocManaged(&host, 4096, hipMemAttachGlobal));
	else if (!strcmp(what, "hostfunc"))
		OK(hipStreamAddCallback(NULL, callback, &called, 0));
	else if (!strcmp(what, "per-thread")) {
		p = block();
		OK(hipMemsetAsync(p, 0, SIZE, hipStreamPerThread));
		OK(hipFree(p));
	} else if (!strcmp(what, "export")) {
		hipIpcMemHandle_t handle;

		p = block();
		(void)hipIpcGetMemHandle(&handle, p);
	}
	p = block();
	CHECK(timed_free(s, p) > HOLD_MS / 4);
	joined();
}

/* With `never`, the bytes stay out of reach until the work is over. */
static void gated(void)
{
	void *p = block(), *q;

	CHECK(timed_free(NULL, p) < HOLD_MS / 2);
	OK(hipMalloc(&q, SIZE));
	CHECK(q != p);
	joined();
	OK(hipFree(q));
}

int main(int argc, char **argv)
{
	static const char *const skipped[] = {"skip", "event", "elapsed", "query", "create",
					      "pinned"};
	static const char *const waited[] = {"second", "blocking", "has-pinned", "managed",
					     "hostfunc", "per-thread", "export"};
	const char *mode = getenv("SOMASHIM_FREE_SYNC");
	int status;

	if (argc == 3) {
		if (!strcmp(argv[1], "skips"))
			skips(argv[2]);
		else if (!strcmp(argv[1], "waits"))
			waits(argv[2]);
		else
			gated();
		return 0;
	}
	/* Each way in a process of its own: most of them end the mode for good. */
	for (unsigned i = 0; i < 6 + 7 + 1; i++) {
		const char *kind = i < 6 ? "skips" : i < 13 ? "waits" : "gated";
		const char *what = i < 6 ? skipped[i] : i < 13 ? waited[i - 6] : "";
		pid_t pid;

		if (mode && !strcmp(mode, "never") ? i < 13 : i == 13)
			continue;
		if (mode && !strcmp(mode, "always") && i < 6)
			continue;
		pid = fork();
		if (!pid) {
			execl(argv[0], argv[0], kind, what, (char *)NULL);
			_exit(127);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "%s %s: failed\n", kind, what);
			return 1;
		}
	}
	return 0;
}

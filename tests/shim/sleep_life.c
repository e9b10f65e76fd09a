/* SPDX-License-Identifier: MIT */
/*
 * The life of a process that sleeps: it is idle for long, forks, ends, or resets a device.
 *
 *   shim_sleep_life SOMASHIM CASE
 */
#include <inttypes.h>

#include "sleep.h"

#define KEPT (24 * MIB)
static void *kept;

/* ---- by itself (SOMASHIM_IDLE_SLEEP=20ms) ------------------------------------------------ */

static void idle(void)
{
	hipStream_t stalled;
	void *scratch;
	uint32_t naps;

	kept = block(KEPT, 1);
	wait_state(SS_LIVE_ASLEEP);
	CHECK(whole(kept, KEPT, 1) && state_now() != SS_LIVE_ASLEEP);
	wait_state(SS_LIVE_ASLEEP);
	CHECK(whole(kept, KEPT, 1));
	/* A device that works is not idle, though the program makes no call. */
	OK(hipStreamCreateWithFlags(&stalled, hipStreamNonBlocking));
	scratch = block(4096, 2);
	stall(stalled);
	OK(hipMemsetAsync(scratch, 0, 4096, stalled));
	naps = atomic_load(&page_of_ours()->sleep.naps);
	usleep(150000);
	CHECK(atomic_load(&page_of_ours()->sleep.naps) == naps);
	release(stalled);
	wait_state(SS_LIVE_ASLEEP);
	/* Asked for while it sleeps: it is a hold from now on, and a nap again after waking. */
	COMMAND(0, "sleep", "--hold", own_pid());
	COMMAND(0, "wake", own_pid());
	CHECK(whole(kept, KEPT, 1));
	wait_state(SS_LIVE_ASLEEP);
	CHECK(whole(kept, KEPT, 1));
}

/* The same without a page: the device's own figure shows it. */
static void idle_without_page(void)
{
	uint64_t before = device_free(0);

	kept = block(KEPT, 1);
	CHECK(!page_of_ours());
	while (device_free(0) + MIB < before)
		usleep(1000);
	CHECK(whole(kept, KEPT, 1) && device_free(0) + MIB < before);
}

/* ---- fork --------------------------------------------------------------------------------- */

static void forks(void)
{
	char byte;
	int status;
	pid_t pid;

	kept = block(KEPT, 1);
	COMMAND(0, "sleep", "--hold", own_pid());
	pid = fork();
	if (!pid) /* not held: HIP does not work there */
		_exit(hipMemcpy(&byte, kept, 1, hipMemcpyDeviceToHost) == hipErrorNotInitialized ?
			      0 :
			      1);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(state_now() == SS_LIVE_ASLEEP);
	COMMAND(0, "wake", own_pid());
	CHECK(whole(kept, KEPT, 1));
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, KEPT, 1));
}

/* ---- the end -------------------------------------------------------------------------------- */

static void copies_at_exit(void)
{
	if (!whole(kept, KEPT, 1)) {
		fprintf(stderr, "not whole at exit\n");
		_exit(1);
	}
}

/* A handler that was registered before the first call of HIP runs after the library's. */
static void exits(bool hold)
{
	kept = block(KEPT, 1);
	COMMAND(0, "sleep", hold ? "--hold" : "--timeout=30", own_pid());
	exit(0);
}

/* A handler of the end that needs no memory does not wait for any. */
static void destroys_at_exit(void)
{
	GIVES(hipSuccess, hipStreamDestroy(stream));
	(void)hipDeviceReset();
}

static void exits_without_memory(void)
{
	void *taken;

	kept = block(KEPT, 1);
	COMMAND(0, "sleep", own_pid());
	OK(RUNTIME(hipMalloc)(&taken, 244 * MIB));
	exit(0);
}

static void *copies_one(void *arg)
{
	char byte;

	(void)arg;
	(void)hipMemcpy(&byte, kept, 1, hipMemcpyDeviceToHost);
	return NULL;
}

/* A runtime that dies of mappings at its end finds none, though some memory stayed, and a thread
 * has just begun to wait (SOMASIM_QUIRKS=exit-mapped). */
static void exits_mapped(void)
{
	void *(*retain)(void *, void *) = (void *(*)(void *, void *))dlsym(
		RTLD_DEFAULT, "hipMemRetainAllocationHandle");
	void *handle, *stays = block(MIB, 2);
	pthread_t thread;

	kept = block(KEPT, 1);
	CHECK(retain && !retain(&handle, stays));
	COMMAND(0, "sleep", "--hold", own_pid());
	CHECK(!pthread_create(&thread, NULL, copies_one, NULL));
	pthread_detach(thread);
	usleep(10000);
	exit(0);
}

/* ---- reset ---------------------------------------------------------------------------------- */

static void *resets(void *arg)
{
	(void)arg;
	OK(hipDeviceReset());
	return NULL;
}

static void reset(void)
{
	pthread_t thread;

	kept = block(KEPT, 1);
	COMMAND(0, "sleep", own_pid());
	CHECK(!pthread_create(&thread, NULL, resets, NULL));
	pthread_join(thread, NULL);
	CHECK(state_now() == SS_LIVE_AWAKE);
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	kept = block(KEPT, 2);
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, KEPT, 2));
}

/* ---- sleeps leave nothing behind: host memory, descriptors, threads, mappings ---------------- */

static unsigned entries_of(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Lines, and the pages of the process that are in memory and of no file. */
static unsigned mappings(uint64_t *anonymous_kib)
{
	FILE *maps = fopen("/proc/self/maps", "r"), *status = fopen("/proc/self/status", "r");
	unsigned n = 0;
	char line[1024];

	CHECK(maps && status);
	while (fgets(line, sizeof(line), maps))
		n++;
	while (fgets(line, sizeof(line), status))
		(void)sscanf(line, "RssAnon: %" SCNu64, anonymous_kib);
	fclose(maps);
	fclose(status);
	return n;
}

static void leaks(void)
{
	unsigned files = 0, threads = 0, maps = 0;
	uint64_t before = 0, after = 0;

	kept = block(KEPT, 1);
	for (int i = 0; i < 6; i++) {
		if (i % 2)
			COMMAND(0, "sleep", "--hold", own_pid());
		else
			COMMAND(0, "sleep", "--hold", "--store", live, own_pid());
		COMMAND(0, "wake", own_pid());
		if (i == 3) {
			files = entries_of("/proc/self/fd");
			threads = entries_of("/proc/self/task");
			maps = mappings(&before);
		}
	}
	CHECK(entries_of("/proc/self/fd") == files);
	CHECK(entries_of("/proc/self/task") == threads);
	CHECK(mappings(&after) <= maps && after < before + (KEPT >> 10) / 2);
	CHECK(whole(kept, KEPT, 1));
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[2], "exits_without_memory"))
		atexit(destroys_at_exit);
	else if (argc > 2 && (!strcmp(argv[2], "exits") || !strcmp(argv[2], "exits_hold")))
		atexit(copies_at_exit);
	sleep_test_begin(argc, argv);
	if (!strcmp(argv[2], "idle"))
		idle();
	else if (!strcmp(argv[2], "idle_without_page"))
		idle_without_page();
	else if (!strcmp(argv[2], "forks"))
		forks();
	else if (!strcmp(argv[2], "exits"))
		exits(false);
	else if (!strcmp(argv[2], "exits_hold"))
		exits(true);
	else if (!strcmp(argv[2], "exits_without_memory"))
		exits_without_memory();
	else if (!strcmp(argv[2], "exits_mapped"))
		exits_mapped();
	else if (!strcmp(argv[2], "reset"))
		reset();
	else if (!strcmp(argv[2], "leaks"))
		leaks();
	else
		return 9;
	return 0;
}

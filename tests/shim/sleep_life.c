/* SPDX-License-Identifier: MIT */
/*
 * The life of a process that sleeps: it is idle for long, forks, ends, resets a device, or
 * finds no memory to wake with.
 *
 *   shim_sleep_life SOMASHIM CASE
 */
#include <inttypes.h>
#include <sched.h>
#include <sys/file.h>

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

/* ---- no memory to wake with (SOMASIM_VRAM=256M, SOMASHIM_WAKE_WAIT_MS=100)
 * ---------------------- */

static atomic_int got = -1;

static void *copies(void *arg)
{
	(void)arg;
	CHECK(whole(kept, KEPT, 1));
	atomic_store(&got, 0);
	return NULL;
}

/* Each attempt to wake that finds no room waits for the device, so that freed memory is seen. */
static uint64_t attempts(void)
{
	return sim_count("hipDeviceSynchronize");
}

static void no_memory(void)
{
	void *taken, *more;
	uint64_t before, once;
	char byte;
	pthread_t thread;
	size_t left, total;

	kept = block(KEPT, 1);
	COMMAND(0, "sleep", own_pid());
	/* Native memory, which the shim lets through: it is another's, as far as the pools know. */
	OK(RUNTIME(hipMalloc)(&taken, 244 * MIB));
	OK(hipMemGetInfo(&left, &total));
	CHECK(left == 0);
	before = attempts();
	GIVES(hipErrorOutOfMemory, hipMemcpy(&byte, kept, 1, hipMemcpyDeviceToHost));
	CHECK(hipGetLastError() == hipErrorOutOfMemory && state_now() == SS_LIVE_ASLEEP);
	once = attempts() - before;
	/* A request looks for memory at many places, and waits so long once only. */
	before = attempts();
	GIVES(hipErrorOutOfMemory, hipMalloc(&more, 4096));
	CHECK(once >= 5 && attempts() - before < 2 * once);
	GIVES(hipErrorOutOfMemory, hipMallocManaged(&more, 4096, hipMemAttachGlobal));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&more, 200 * MIB, stream));
	(void)hipGetLastError();
	CHECK(state_now() == SS_LIVE_ASLEEP && sim_count("hipMemCreate") > 0);
	COMMAND(1, "wake", "--timeout", "0", own_pid());
	SAID("has no room");
	/* Whoever waits gets it when it is there. */
	OK(RUNTIME(hipFree)(taken));
	CHECK(!pthread_create(&thread, NULL, copies, NULL));
	pthread_join(thread, NULL);
	CHECK(!atomic_load(&got) && state_now() == SS_LIVE_AWAKE);
}

/* ---- memory that was lent is not there for the process itself (SOMASIM_VRAM=64M) ------------- */

#define LENT (28 * MIB)
#define TOO_MUCH (48 * MIB) /* but less than is free while the process sleeps */

static atomic_bool mallocs_begun, mallocs_done;

static void *mallocs(void *arg)
{
	void *p;

	(void)arg;
	atomic_store(&mallocs_begun, true);
	OK(hipMalloc(&p, 2 * MIB));
	atomic_store(&mallocs_done, true);
	return p;
}

static void lent(void)
{
	hipChannelFormatDesc word = {32, 0, 0, 0, hipChannelFormatKindUnsigned};
	void *p, *taken;
	hipArray_t array;
	pthread_t thread;

	kept = block(LENT, 1);
	COMMAND(0, "sleep", own_pid());
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, TOO_MUCH));
	CHECK(state_now() == SS_LIVE_AWAKE && whole(kept, LENT, 1));
	COMMAND(0, "sleep", own_pid());
	GIVES(hipErrorOutOfMemory, hipExtMallocWithFlags(&p, TOO_MUCH, hipDeviceMallocFinegrained));
	CHECK(state_now() == SS_LIVE_AWAKE && whole(kept, LENT, 1));
	COMMAND(0, "sleep", own_pid());
	GIVES(hipErrorOutOfMemory, hipMallocArray(&array, &word, 8192, TOO_MUCH / 4 / 8192, 0));
	CHECK(state_now() == SS_LIVE_AWAKE && whole(kept, LENT, 1));
	(void)hipGetLastError();
	/* In a hold it waits. */
	COMMAND(0, "sleep", "--hold", own_pid());
	CHECK(!pthread_create(&thread, NULL, mallocs, NULL));
	while (!atomic_load(&mallocs_begun))
		sched_yield();
	usleep(30000);
	CHECK(!atomic_load(&mallocs_done) && state_now() == SS_LIVE_ASLEEP);
	COMMAND(0, "wake", own_pid());
	pthread_join(thread, &p);
	OK(hipFree(p));
	/* What is idle in pools that do not sleep is released for it. */
	OK(hipMalloc(&p, 24 * MIB));
	COMMAND(0, "sleep", own_pid());
	OK(RUNTIME(hipMalloc)(&taken, LENT));
	OK(hipFree(p));
	CHECK(whole(kept, LENT, 1));
	OK(RUNTIME(hipFree)(taken));
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

/* Another process has the turn to wake on the device, and does not go on: that costs time
 * only. */
static void turn(void)
{
	char path[256], pci[32];
	int fd;

	kept = block(KEPT, 1);
	OK(hipDeviceGetPCIBusId(pci, (int)sizeof(pci), 0));
	snprintf(path, sizeof(path), "%s/somashim-wake-%u-%s", live, (unsigned)geteuid(), pci);
	COMMAND(0, "sleep", "--hold", own_pid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB));
	COMMAND(0, "wake", own_pid());
	CHECK(whole(kept, KEPT, 1) && !access(path, F_OK));
	/* That process dies and leaves the file, which is nobody's turn then. */
	close(fd);
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, KEPT, 1) && access(path, F_OK));
}

/* The driver refuses calls now and then (SOMASIM_FAIL): bytes that it refused stay, and none is
 * lost. */
static void refused(void)
{
	kept = block(KEPT, 1);
	for (int i = 0; i < 6; i++) {
		COMMAND(0, "sleep", own_pid());
		CHECK(whole(kept, KEPT, 1));
	}
}

/* The driver unmaps, releases nothing and then maps nothing: the bytes are kept, and nobody waits
 * for ever (SOMASHIM_WAKE_WAIT_MS=60). */
static void unmapped(void)
{
	void (*fail)(const char *) = (void (*)(const char *))sim_must("somasim_fail");
	void (*works)(void) = (void (*)(void))sim_must("somasim_fail_clear");
	char byte;

	kept = block(KEPT, 1);
	fail("hipMemRelease:%1,hipMemMap:%1");
	COMMAND(1, "sleep", "--hold", own_pid());
	SAID("the runtime kept all memory, and refuses to map it again");
	CHECK(state_now() == SS_LIVE_ASLEEP);
	/* It is no hold, which the command did not promise. */
	GIVES(hipErrorOutOfMemory, hipMemcpy(&byte, kept, 1, hipMemcpyDeviceToHost));
	CHECK(hipGetLastError() == hipErrorOutOfMemory && state_now() == SS_LIVE_ASLEEP);
	COMMAND(1, "wake", "--timeout", "0", own_pid());
	SAID("the runtime refused memory");
	works();
	CHECK(whole(kept, KEPT, 1) && state_now() == SS_LIVE_AWAKE);
	COMMAND(0, "sleep", own_pid());
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
	else if (!strcmp(argv[2], "no_memory"))
		no_memory();
	else if (!strcmp(argv[2], "leaks"))
		leaks();
	else if (!strcmp(argv[2], "lent"))
		lent();
	else if (!strcmp(argv[2], "turn"))
		turn();
	else if (!strcmp(argv[2], "refused"))
		refused();
	else if (!strcmp(argv[2], "unmapped"))
		unmapped();
	else
		return 9;
	return 0;
}

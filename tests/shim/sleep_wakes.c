/* SPDX-License-Identifier: MIT */
/*
 * Waking: the device has no room, the driver refuses, or another process has the turn.
 *
 *   shim_sleep_wakes SOMASHIM CASE
 */
#include <errno.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "sleep.h"

#define KEPT (24 * MIB)
static void *kept;

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
	GIVES(hipErrorOutOfMemory, hipDeviceReset());
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

/* ---- turns ------------------------------------------------------------------------------- */

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

/* That process is stopped for good, and the device has no room either: the wait for the turn does
 * not make the limit of a call many times as long (SOMASHIM_WAKE_WAIT_MS=100). */
static atomic_uint turns_asked;
static atomic_bool turn_taken;

__attribute__((visibility("default"))) int flock(int fd, int operation)
{
	(void)operation;
	if (atomic_load(&turn_taken)) {
		atomic_fetch_add(&turns_asked, 1);
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void turn_for_good(void)
{
	void *taken;
	char byte;

	kept = block(KEPT, 1);
	COMMAND(0, "sleep", own_pid());
	OK(RUNTIME(hipMalloc)(&taken, 244 * MIB));
	atomic_store(&turn_taken, true);
	GIVES(hipErrorOutOfMemory, hipMemcpy(&byte, kept, 1, hipMemcpyDeviceToHost));
	CHECK(atomic_load(&turns_asked) > 50 && atomic_load(&turns_asked) < 100);
	OK(RUNTIME(hipFree)(taken));
	CHECK(whole(kept, KEPT, 1));
}

/* ---- the driver refuses --------------------------------------------------------------------- */

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
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"no_memory", no_memory}, {"lent", lent},
		     {"turn", turn},           {"turn_for_good", turn_for_good},
		     {"refused", refused},     {"unmapped", unmapped}};

	sleep_test_begin(argc, argv);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[2], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	return 9;
}

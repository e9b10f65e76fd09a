/* SPDX-License-Identifier: MIT */
/*
 * The devices are to become idle while threads are held: whoever a device waits for is let go, work
 * that does not end and captures are reasons to refuse, and a client that dies leaves nothing
 * behind but a hold.
 *
 *   shim_sleep_waits SOMASHIM CASE
 */
#include <sched.h>
#include <signal.h>

#include "sleep.h"

static void *kept, *scratch;
static hipStream_t stalled;

static void begin(void)
{
	kept = block(6 * MIB, 1);
	scratch = block(4096, 2);
	OK(hipStreamCreateWithFlags(&stalled, hipStreamNonBlocking));
	OK(hipDeviceSynchronize());
}

/* The stream has work that does not end. */
static void stall_busy(void)
{
	stall(stalled);
	OK(hipMemsetAsync(scratch, 0, 4096, stalled));
}

static void wait_settling(void)
{
	while (state_now() != SS_LIVE_SETTLING)
		sched_yield();
}

/* ---- a device waits for what a held thread does next ------------------------------------ */

static void *copies_then_releases(void *arg)
{
	char byte;

	(void)arg;
	wait_settling();
	/* Held, and let go although the stream has not come to its end. */
	OK(hipMemcpyAsync(&byte, kept, 1, hipMemcpyDeviceToHost, stream));
	OK(hipStreamSynchronize(stream));
	release(stalled);
	return NULL;
}

static void value(void)
{
	pthread_t thread;

	begin();
	stall_busy();
	CHECK(!pthread_create(&thread, NULL, copies_then_releases, NULL));
	COMMAND(0, "sleep", own_pid());
	pthread_join(thread, NULL);
	CHECK(state_now() == SS_LIVE_ASLEEP);
	CHECK(whole(kept, 6 * MIB, 1));
}

/* ---- a host function that needs the device itself, or a lock of whom is held -------------- */

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static atomic_int calls;
static atomic_bool locked;

static void copies(hipStream_t on, hipError_t error, void *arg)
{
	(void)on;
	(void)error;
	(void)arg;
	wait_settling();
	pthread_mutex_lock(&own);
	atomic_fetch_add(&calls, 1);
	pthread_mutex_unlock(&own);
}

static void *held_with_lock(void *arg)
{
	char byte;

	(void)arg;
	pthread_mutex_lock(&own);
	atomic_store(&locked, true);
	wait_settling();
	OK(hipMemcpyAsync(&byte, kept, 1, hipMemcpyDeviceToHost, stream));
	pthread_mutex_unlock(&own);
	return NULL;
}

static void host_function(void)
{
	pthread_t thread;

	begin();
	CHECK(!pthread_create(&thread, NULL, held_with_lock, NULL));
	while (!atomic_load(&locked))
		sched_yield();
	OK(hipStreamAddCallback(stalled, copies, NULL, 0));
	COMMAND(0, "sleep", own_pid());
	pthread_join(thread, NULL);
	CHECK(atomic_load(&calls) == 1 && state_now() == SS_LIVE_ASLEEP);
	CHECK(whole(kept, 6 * MIB, 1));
}

/* ---- reasons to refuse -------------------------------------------------------------------- */

static void busy(void)
{
	begin();
	stall_busy();
	COMMAND(1, "sleep", "--timeout", "1", own_pid());
	SAID("device 0 is at work all the time");
	CHECK(whole(kept, 6 * MIB, 1));
	release(stalled);
	OK(hipDeviceSynchronize());
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, 6 * MIB, 1));
}

static void captures(void)
{
	hipGraph_t graph;

	begin();
	OK(hipStreamBeginCapture(stalled, hipStreamCaptureModeGlobal));
	COMMAND(1, "sleep", "--timeout", "1", own_pid());
	SAID("a stream captures");
	OK(hipMemsetAsync(kept, 1, 4, stalled));
	OK(hipStreamEndCapture(stalled, &graph)); /* the capture is whole */
	OK(hipGraphDestroy(graph));
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, 6 * MIB, 1));
}

/* ---- clients that die ------------------------------------------------------------------------ */

static void kill_client(struct running r)
{
	int status;

	close(r.from);
	kill(r.pid, SIGKILL);
	CHECK(waitpid(r.pid, &status, 0) == r.pid);
}

static void client(void)
{
	const char *nap[] = {"sleep", own_pid(), NULL},
		   *hold[] = {"sleep", "--hold", own_pid(), NULL};

	begin();
	stall_busy();
	kill_client(command_start(nap)); /* whether it has asked or not */
	struct running r = command_start(nap);
	wait_settling();
	kill_client(r);
	release(stalled);
	wait_state(SS_LIVE_ASLEEP);
	CHECK(whole(kept, 6 * MIB, 1)); /* it wakes, as after any nap */
	stall_busy();
	r = command_start(hold);
	wait_settling();
	kill_client(r);
	release(stalled);
	wait_state(SS_LIVE_ASLEEP);
	COMMAND(0, "wake", own_pid());
	CHECK(whole(kept, 6 * MIB, 1));
	/* A client that gives up takes back what it asked for. */
	stall_busy();
	COMMAND(1, "sleep", "--hold", "--timeout", "1", own_pid());
	release(stalled);
	OK(hipDeviceSynchronize());
	CHECK(whole(kept, 6 * MIB, 1));
	/* A wake that comes while a sleep is tried ends it. */
	stall_busy();
	r = command_start(hold);
	wait_settling();
	COMMAND(0, "wake", own_pid());
	CHECK(command_end(r) == 1);
	SAID("another request has replaced this one");
	release(stalled);
	CHECK(whole(kept, 6 * MIB, 1));
}

/* ---- anybody may write the page ------------------------------------------------------------- */

static atomic_bool over;

/* Requests and nonsense, as fast as can be. */
static void *writes(void *arg)
{
	struct ss_live_sleep *page = &page_of_ours()->sleep;
	uint32_t x = 1;

	(void)arg;
	while (!atomic_load(&over)) {
		x = x * 1664525 + 1013904223;
		atomic_store(&page->wanted, x >> 3);
		atomic_fetch_add(&page->bell, 1);
		atomic_store(&page->done, x);
		atomic_store(&page->state, x >> 5);
		atomic_store(&page->held, x);
		usleep(200);
	}
	return NULL;
}

static void hostile(void)
{
	pthread_t thread;

	begin();
	CHECK(!pthread_create(&thread, NULL, writes, NULL));
	for (int i = 0; i < 100; i++) {
		char byte;

		/* (A hold ends by a later request.) */
		OK(hipMemcpyAsync(&byte, kept, 1, hipMemcpyDeviceToHost, stream));
		usleep(1000);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	COMMAND(0, "wake", own_pid());
	CHECK(whole(kept, 6 * MIB, 1));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"value", value},   {"host_function", host_function},
		     {"busy", busy},     {"captures", captures},
		     {"client", client}, {"hostile", hostile}};

	sleep_test_begin(argc, argv);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[2], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	return 9;
}

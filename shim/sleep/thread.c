/* SPDX-License-Identifier: MIT */
/*
 * The thread that puts the process to sleep and wakes it. It sleeps on a futex, the bell, which
 * clients change in the live page, and threads of the program when they begin to wait.
 *
 * Locks: none.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/deadline.h"
#include "core/base/thread.h"
#include "driver/rocm/rocm.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/process/sleep_state.h"
#include "shim/process/submit_gate.h"
#include "shim/sleep/answer.h"
#include "shim/sleep/attempt.h"

#define NEVER UINT64_MAX
#define HOLD_MS 50       /* of the first attempt; doubled for each further one, */
#define HOLD_MOST_MS 250 /* up to this */
/* Between two attempts the program runs this many times as long as it was held at most, so that it
 * loses a fifth of its time. */
#define PAUSE_TIMES 4
#define IDLE_PARTS 8    /* how often the thread looks while it waits for the program to be idle */
#define FORK_MS 1000    /* limit of the wait for this thread before a fork, and at the end */

static atomic_bool exiting, stopped, working;
static atomic_int paused;
static bool started;
static pthread_t thread;
static pid_t owner; /* the process that has the thread */

/* Of the thread alone. */
static struct ss_sleep_request request; /* that is not answered; `asked` */
static bool asked;                      /* to sleep */
static bool wake_asked;
static struct ss_deadline patience;
static unsigned hold_ms;
static uint64_t pause_ms; /* rest of the pause between two attempts */
static uint64_t quiet_ms; /* so long the program gave no device work */
static bool told_no_room;
static struct ss_live_slept slept; /* the last result */

static uint64_t now_ms(void)
{
	return ss_monotonic_ns() / 1000000;
}

static void fail(const struct ss_sleep_request *r, const char *why)
{
	struct ss_live_slept no = {.error = 1};

	snprintf(no.why, sizeof(no.why), "%s", why);
	ss_sleep_answer(r, &no);
}

static bool is_asleep(void)
{
	return atomic_load(&ss_sleep_state) == SS_LIVE_ASLEEP;
}

static void keep(bool keeps)
{
	ss_sleep_set_keep(keeps);
	ss_sleep_show_keep();
}

/* Between begin and end the thread may be in calls of HIP. */
static bool work_begin(void)
{
	static bool relaxed;
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;

	atomic_store(&working, true);
	if (atomic_load(&paused)) {
		atomic_store(&working, false);
		return false;
	}
	if (!relaxed)
		relaxed = REAL(hipThreadExchangeStreamCaptureMode, &mode) == hipSuccess;
	return true;
}

static void work_end(void)
{
	atomic_store(&working, false);
}

/* ---- to sleep -------------------------------------------------------------------- */

static enum ss_attempt attempt(const char *store)
{
	enum ss_attempt how = ss_attempt_sleep(hold_ms, store, &slept);

	quiet_ms = 0;
	told_no_room = false;
	return how;
}

/* Returns in how many ms to continue. */
static uint64_t try_to_sleep(void)
{
	enum ss_attempt how;

	if (pause_ms)
		return pause_ms;
	if (!work_begin())
		return SS_SLEEP_RETRY_MS;
	ss_sleep_set_keep(request.command == SS_LIVE_HOLD);
	how = attempt(request.store);
	if (how == SS_ATTEMPT_LATER) {
		ss_sleep_set_keep(false);
		ss_deadline_take(&patience, hold_ms);
		pause_ms = (uint64_t)hold_ms * PAUSE_TIMES;
		hold_ms = 2 * hold_ms < HOLD_MOST_MS ? 2 * hold_ms : HOLD_MOST_MS;
	}
	if (how != SS_ATTEMPT_LATER || ss_deadline_over(&patience, now_ms())) {
		asked = false;
		if (how != SS_ATTEMPT_DONE)
			ss_sleep_set_keep(false);
		ss_sleep_answer(&request, &slept);
	}
	work_end();
	return asked ? pause_ms : 0;
}

/* The program gives no device work. */
static uint64_t watch_idle(void)
{
	enum ss_attempt how = SS_ATTEMPT_LATER;

	if (atomic_exchange(&ss_sleep_used, false))
		quiet_ms = 0;
	if (quiet_ms >= ss_options.idle_sleep) {
		if (!work_begin())
			return SS_SLEEP_RETRY_MS;
		hold_ms = HOLD_MS;
		if (!ss_attempt_would_wait())
			how = attempt("");
		quiet_ms = 0;
		work_end();
		if (how == SS_ATTEMPT_DONE)
			return 0;
	}
	return ss_options.idle_sleep / IDLE_PARTS + 1;
}

/* ---- awake --------------------------------------------------------------------------- */

static bool must_wake(void)
{
	return wake_asked || (ss_sleep_waiters() && (!ss_sleep_keeps() || atomic_load(&exiting)));
}

static uint64_t wake(void)
{
	enum ss_attempt how;
	const char *why;

	if (!work_begin())
		return SS_SLEEP_RETRY_MS;
	how = ss_attempt_wake(&why);
	quiet_ms = 0;
	work_end();
	if (how == SS_ATTEMPT_DONE) {
		ss_sleep_set_keep(false);
		if (wake_asked)
			ss_sleep_answer(&request, &(struct ss_live_slept){0});
		wake_asked = false;
		return 0;
	}
	if (!told_no_room)
		ss_shim_log("cannot wake yet: %s; trying again", why);
	told_no_room = true;
	if (wake_asked && ss_deadline_over(&patience, now_ms())) {
		wake_asked = false;
		fail(&request, why);
	}
	return SS_SLEEP_RETRY_MS + (uint64_t)getpid() % 8;
}

/* ---- requests -------------------------------------------------------------------------- */

static void begin(const struct ss_sleep_request *r)
{
	request = *r;
	patience = ss_deadline_in(now_ms(), r->patience_ms, r->patience_ms);
}

/* A later request replaces one that is not answered. */
static void read_request(void)
{
	struct ss_sleep_request r;
	bool same;

	if (!ss_sleep_request_get(&r) || ((asked || wake_asked) && r.word == request.word))
		return;
	/* The client of a hold has given up, and may not have seen the answer. */
	same = r.word / SS_LIVE_COMMANDS == request.word / SS_LIVE_COMMANDS + 1;
	asked = wake_asked = false;
	switch (r.command) {
	case SS_LIVE_NAP:
	case SS_LIVE_HOLD:
		if (atomic_load(&exiting)) {
			fail(&r, "the process ends");
		} else if (is_asleep()) {
			keep(r.command == SS_LIVE_HOLD);
			ss_sleep_answer(&r, &slept);
		} else {
			begin(&r);
			asked = true;
			hold_ms = HOLD_MS;
			pause_ms = 0;
		}
		break;
	case SS_LIVE_WAKE:
		keep(false);
		begin(&r);
		wake_asked = is_asleep();
		if (!wake_asked)
			ss_sleep_answer(&r, &(struct ss_live_slept){0});
		break;
	case SS_LIVE_WITHDRAW:
		if (same && request.command == SS_LIVE_HOLD)
			keep(false);
		ss_sleep_answer(&r, &(struct ss_live_slept){0});
		break;
	}
}

/* ---- the thread -------------------------------------------------------------------------- */

/* Does what is to be done. Returns in how many ms to continue if nobody rings. */
static uint64_t step(void)
{
	read_request();
	if (is_asleep())
		return must_wake() ? wake() : NEVER;
	if (atomic_load(&exiting))
		asked = false;
	if (asked)
		return try_to_sleep();
	if (ss_options.idle_sleep && !atomic_load(&exiting))
		return watch_idle();
	return NEVER;
}

static void waited(uint64_t ms)
{
	quiet_ms += ms;
	pause_ms = pause_ms > ms ? pause_ms - ms : 0;
	ss_deadline_take(&patience, ms);
}

static void *run(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "somashim-sleep");
	while (!atomic_load(&stopped)) {
		_Atomic uint32_t *bell = ss_sleep_bell();
		uint32_t rung = atomic_load(bell);
		uint64_t ms = step();

		if (ms && !ss_sleep_futex_wait(bell, rung, ms))
			waited(ms);
	}
	return NULL;
}

/* ---- start, fork, exit ----------------------------------------------------------------------- */

static void wait_for_thread(unsigned ms)
{
	for (; ms && atomic_load(&working); ms--)
		usleep(1000);
}

/* The child must find no lock of the runtime taken by this thread. */
static void before_fork(void)
{
	atomic_fetch_add(&paused, 1);
	wait_for_thread(FORK_MS);
}

static void in_parent(void)
{
	atomic_fetch_sub(&paused, 1);
}

/* HIP does not work in the child, and the runtime says so. */
static void in_child(void)
{
	started = false;
	atomic_store(&paused, 0);
	ss_sleep_answers_forked();
	ss_gate_forked();
	ss_sleep_forked();
}

/* The program may need the device until its end, so the thread still wakes the process. */
static void at_exit(void)
{
	if (!started)
		return;
	atomic_store(&exiting, true);
	ss_sleep_ring();
}

/* False: it was stopped before, there is none, or it is in a call that does not end. */
static bool stop_thread(void)
{
	struct timespec end;

	/* (A child by a fork that libc does not know of has no thread.) */
	if (!started || owner != getpid() || atomic_exchange(&stopped, true))
		return false;
	ss_sleep_ring();
	clock_gettime(CLOCK_REALTIME, &end); /* the wait function takes this clock */
	end.tv_sec += FORK_MS / 1000;
	return !pthread_timedjoin_np(thread, NULL, &end);
}

static void finish(void)
{
	(void)stop_thread();
}

/* Nobody wakes the process any more, so nobody is to wait for that. (The gate is shut.) */
static void before_unmap(void)
{
	if (stop_thread())
		ss_sleep_set_state(SS_LIVE_AWAKE);
}

static bool start_thread(void)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static void start(void)
{
	bool shown;

	if (ss_options.sleep == SS_SLEEP_OFF) {
		(void)ss_sleep_answers_start("it was started without SOMASHIM_SLEEP=pools");
		return;
	}
	ss_gate_start();
	shown = ss_sleep_answers_start(NULL);
	if (!shown && !ss_options.idle_sleep)
		ss_shim_log("SOMASHIM_SLEEP: without SOMASHIM_LIVE nobody can ask for sleep");
	owner = getpid();
	started = start_thread();
	if (!started) {
		(void)ss_sleep_answers_start("it has no thread for sleep");
		return;
	}
	/* Handlers of fork() run in the reverse order. The handler of the records holds a lock that
	 * this thread may need, so that handler must be registered first. */
	(void)ss_thread_record();
	pthread_atfork(before_fork, in_parent, in_child);
}

/* Calls that are in progress when the shim starts must have been counted. */
__attribute__((constructor)) static void init(void)
{
	ss_set_hook(SS_HOOK_START, start);
	ss_set_hook(SS_HOOK_EXIT, at_exit);
	ss_set_hook(SS_HOOK_UNMAP, before_unmap);
	ss_set_hook(SS_HOOK_END, finish);
	if (getenv("SOMASHIM_SLEEP"))
		ss_gate_start();
}

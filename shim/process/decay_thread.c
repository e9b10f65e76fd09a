/* SPDX-License-Identifier: MIT */
/*
 * The decay thread: releases memory that was idle for SOMASHIM_DECAY_MS.
 *
 * The core calls wake() when memory becomes idle. The thread sleeps until the time of the next
 * look, which the core gives (ss_decay_next). After each look the thread asks the core to report
 * the next free. So idle memory that is not due wakes no thread. When no idle memory is left that
 * could be released, the thread looks once more a while later, because a free may have been a hit
 * meanwhile, and ends.
 *
 * Before a fork, at exit and around a reset of the device the thread is stopped at a point outside
 * of all calls. All waits for the thread are bounded, because the thread may be inside a call of
 * the runtime that waits for a kernel which the program has just started, and which never ends.
 *
 * Locks: `lock`, a leaf. It is not held across a call of the core or of HIP.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/deadline.h"
#include "core/base/thread.h"
#include "driver/rocm/rocm.h"
#include "shim/process/decay_thread.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

#define NEVER UINT64_MAX
#define FAR_MS (1ull << 40) /* longer than any sleep */
/* The last look comes this long after the last but one, at least */
#define LAST_LOOK_MS 100
#define LEAST_MS 10         /* length of a sleep if the clock does not tell */
/* Time between two tries while a stream captures, which forbids releases */
#define CAPTURE_MS 10
#define STACK (256 << 10)   /* bytes */
#define PATIENCE_MS 1000    /* limit of a wait of another thread for this thread's call */
/* The live page shows a free after this time, at most: a silent program may be killed */
#define SHOW_MS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* of what follows; its clock is CLOCK_MONOTONIC */
static bool running;           /* the thread exists */
static bool ending;            /* the thread ends after its next look, unless it is woken before */
static bool working;           /* the thread is in the core or in HIP */
static bool stopped;           /* the thread ends, and no other is started */
static unsigned paused;
/* When the thread has to look for idle memory, and to show its figures; ms of CLOCK_MONOTONIC */
static uint64_t look_at = NEVER, show_at = NEVER;
static pthread_t thread;
static pid_t owner; /* the process that has the thread */

static uint64_t now_ms(void)
{
	return ss_monotonic_ns() / 1000000;
}

static uint64_t in_ms(uint64_t ms)
{
	return now_ms() + (ms < FAR_MS ? ms : FAR_MS);
}

static struct timespec at_ms(uint64_t ms)
{
	return (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
}

static void advance(uint64_t *to, uint64_t ms)
{
	if (ms != NEVER && in_ms(ms) < *to)
		*to = in_ms(ms);
}

/* ---- the thread --------------------------------------------------------------- */

/* Releases what is due. Returns in how many ms to look again, or NEVER. No lock held. */
static uint64_t look(void)
{
	uint64_t next = NEVER, ms;

	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (ss_capture_live())
			return CAPTURE_MS;
		/* The thread stays on the device, because making another device current might wake
		 * that device. */
		if (!ss_idle_bytes(ss_core, dev) || REAL(hipSetDevice, dev) != hipSuccess)
			continue;
		ms = ss_decay_next(ss_core, dev);
		next = ms < next ? ms : next;
	}
	return next;
}

/* Sleeps until something is due, and as long as the thread is paused. Returns the time at which the
 * sleep was to end. The program's clock may stand still, but the kernel's goes on and would end
 * each sleep at once. Lock held. */
static uint64_t nap(void)
{
	struct timespec least = {.tv_nsec = LEAST_MS * 1000000}, end;
	bool over = false;
	uint64_t due = 0;

	while (!stopped && (paused || !over)) {
		if (over) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		due = look_at < show_at ? look_at : show_at;
		end = at_ms(due);
		over = pthread_cond_timedwait(&changed, &lock, &end) == ETIMEDOUT;
		if (!over || now_ms() >= due)
			continue;
		pthread_mutex_unlock(&lock);
		nanosleep(&least, NULL);
		pthread_mutex_lock(&lock);
	}
	return due;
}

/* Does what is due. `relaxed`: captures of other threads allow the calls of this one. No lock
 * held. */
static void work(bool looks, bool *relaxed)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	uint64_t ms = NEVER;

	ss_decay_notify(ss_core);
	if (!*relaxed)
		*relaxed = REAL(hipThreadExchangeStreamCaptureMode, &mode) == hipSuccess;
	if (*relaxed && looks)
		ms = look();
	if (*relaxed && !ss_capture_live())
		ss_live_tick();
	pthread_mutex_lock(&lock);
	advance(&look_at, ms);
	pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
	bool relaxed = false;

	(void)arg;
	prctl(PR_SET_NAME, "somashim-decay");
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t due = nap();
		bool looks = look_at <= due;

		if (stopped)
			break;
		if (looks)
			look_at = NEVER;
		if (show_at <= due)
			show_at = NEVER;
		working = true;
		pthread_mutex_unlock(&lock);
		work(looks, &relaxed);
		pthread_mutex_lock(&lock);
		working = false;
		pthread_cond_broadcast(&changed);
		if (look_at != NEVER || show_at != NEVER)
			continue;
		if (ending)
			break;
		/* From here on a free calls wake(). A free that has already begun may not call
		 * wake() yet. */
		ending = true;
		advance(&look_at,
			ss_options.decay_ms > LAST_LOOK_MS ? ss_options.decay_ms : LAST_LOOK_MS);
	}
	running = false;
	if (!stopped)
		pthread_detach(pthread_self());
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The thread blocks all signals of the program. Lock held. */
static bool start(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	if (pthread_attr_init(&attr))
		return false;
	(void)pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, run, NULL);
	if (error == EINVAL) /* the program's thread-local variables need more than STACK */
		error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	owner = getpid();
	return !error;
}

/* Memory has become idle: makes the thread look in `ms` milliseconds, unless its next look is
 * earlier. */
static void wake(void *arg, uint64_t ms)
{
	bool failed = false;

	(void)arg;
	pthread_mutex_lock(&lock);
	if (!stopped) {
		ending = false;
		advance(&look_at, ms);
		if (ss_live_is_shown())
			advance(&show_at, SHOW_MS);
		if (running)
			pthread_cond_broadcast(&changed);
		else if (look_at != NEVER || show_at != NEVER)
			failed = stopped = !(running = start());
	}
	pthread_mutex_unlock(&lock);
	if (!failed)
		return;
	ss_decay_watch(ss_core, NULL, NULL);
	if (ss_options.verbose)
		ss_shim_log("no thread for idle memory: only synchronizations release it");
}

/* ---- the ends ------------------------------------------------------------------- */

void ss_decay_thread_pause(void)
{
	struct timespec end = at_ms(in_ms(PATIENCE_MS));

	pthread_mutex_lock(&lock);
	paused++;
	while (working && pthread_cond_timedwait(&changed, &lock, &end) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
}

void ss_decay_thread_resume(void)
{
	pthread_mutex_lock(&lock);
	paused--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	SS_UNCANCELLED;
	ss_decay_thread_pause();
}

/* The child has no such thread, and HIP does not work in the child. */
static void in_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	running = working = false;
	stopped = true;
	paused = 0;
}

void ss_decay_thread_stop(void)
{
	struct timespec end;
	bool join;

	clock_gettime(CLOCK_REALTIME, &end); /* the wait function takes this clock */
	end.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&lock);
	/* A child by a fork that libc does not know of has no thread. */
	join = running && !stopped && owner == getpid();
	stopped = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (join)
		(void)pthread_timedjoin_np(thread, NULL, &end);
}

void ss_decay_thread_init(void)
{
	pthread_condattr_t attr;

	if (!ss_options.decay_thread || !ss_options.decay_ms || pthread_condattr_init(&attr))
		return;
	if (!pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) &&
	    !pthread_cond_init(&changed, &attr)) {
		/* Handlers of fork() run in the reverse order. The handler of the records holds a
		 * lock that this thread may need to end, so that handler must be registered
		 * first. */
		(void)ss_thread_record();
		pthread_atfork(before_fork, ss_decay_thread_resume, in_child);
		ss_decay_watch(ss_core, wake, NULL);
	}
	pthread_condattr_destroy(&attr);
}

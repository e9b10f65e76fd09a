/* SPDX-License-Identifier: MIT */
/*
 * The thread that gives idle memory back in a program that makes no call.
 *
 * The core calls begin() at the first free after which nobody watches (ss_decay_watch). The thread
 * sleeps until memory may be due, looks, and sleeps until the core says that more will be. When
 * nothing is idle it has the core call again at the next free, looks once more a while later, and
 * ends.
 *
 * Before a fork, at exit and around a reset of the device the thread is brought to where it makes
 * no call. All waits for it are bounded: it may be inside a call of the runtime that waits for a
 * kernel which the program started just then, and which never ends.
 *
 * Locks: `lock`, a leaf. It is not held across a call of the core or of HIP.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/thread.h"
#include "driver/rocm/rocm.h"
#include "shim/process/decay_thread.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

#define NEVER UINT64_MAX
#define LAST_LOOK_MS 100  /* it looks for the last time so long after the last but one, at least */
#define LEAST_MS 10       /* it sleeps so long where the clock does not tell */
#define CAPTURE_MS 10     /* while a stream captures nothing goes back: how often to ask */
#define STACK (256 << 10) /* bytes */
#define PATIENCE_MS 1000  /* how long others wait for a call of the thread */
/* The live page tells of frees that late, at most: a program that is silent may be killed */
#define SHOW_MS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* of what follows; its clock is CLOCK_MONOTONIC */
static bool running;           /* there is a thread */
static bool watching;          /* it need not be called: no free can go unnoticed */
static bool working;           /* it is in the core or in HIP */
static bool stopped;           /* it ends, and there will be no other */
static unsigned paused;
static pthread_t thread;
static pid_t owner; /* the process that has the thread */

static struct timespec in_ms(clockid_t clock, uint64_t ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	if (ms > INT32_MAX)
		ms = INT32_MAX;
	t.tv_sec += (time_t)(ms / 1000);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

/* ---- the thread --------------------------------------------------------------- */

/* Gives back what is due. Returns in how many ms to look again, or NEVER. No lock held. */
static uint64_t look(void)
{
	uint64_t next = NEVER, ms;

	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (ss_capture_live())
			return CAPTURE_MS;
		/* The thread stays on the device. To make another one current might wake that
		 * one. */
		if (!ss_idle_bytes(ss_core, dev) || REAL(hipSetDevice, dev) != hipSuccess)
			continue;
		ms = ss_decay_next(ss_core, dev);
		next = ms < next ? ms : next;
	}
	return next;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Sleeps for that time, and as long as the thread is paused. The program's clock may stand still.
 * The kernel's does not, and would end each sleep at once. Lock held. */
static void nap(uint64_t ms)
{
	struct timespec least = {.tv_nsec = LEAST_MS * 1000000}, end = in_ms(CLOCK_MONOTONIC, ms);
	bool over = false, slept = false;

	while (!stopped && (paused || !over)) {
		struct timespec now;

		if (over)
			pthread_cond_wait(&changed, &lock);
		else
			over = pthread_cond_timedwait(&changed, &lock, &end) == ETIMEDOUT;
		now = in_ms(CLOCK_MONOTONIC, 0);
		if (!over || slept || !is_before(&now, &end))
			continue;
		slept = true;
		pthread_mutex_unlock(&lock);
		nanosleep(&least, NULL);
		pthread_mutex_lock(&lock);
	}
}

static void *run(void *arg)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	uint64_t ms = ss_options.decay_ms; /* what was freed just now is not due before */
	bool relaxed = false;

	(void)arg;
	prctl(PR_SET_NAME, "somashim-decay");
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t part = ms > SHOW_MS && ss_live_is_shown() ? SHOW_MS : ms;
		nap(part);
		if (stopped)
			break;
		working = true;
		pthread_mutex_unlock(&lock);
		if (!relaxed) /* captures of other threads then allow its calls */
			relaxed = REAL(hipThreadExchangeStreamCaptureMode, &mode) == hipSuccess;
		if (part == ms || !relaxed)
			ms = relaxed ? look() : NEVER;
		else
			ms -= part;
		if (relaxed && !ss_capture_live())
			ss_live_tick();
		pthread_mutex_lock(&lock);
		working = false;
		pthread_cond_broadcast(&changed);
		if (ms != NEVER)
			continue;
		if (!watching)
			break;
		/* From here on a free calls begin(). One that is under way may not know that
		 * yet. */
		watching = false;
		ss_decay_unwatched(ss_core);
		ms = ss_options.decay_ms > LAST_LOOK_MS ? ss_options.decay_ms : LAST_LOOK_MS;
	}
	running = false;
	if (!stopped)
		pthread_detach(pthread_self());
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* No signal of the program's arrives in the thread. Lock held. */
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
	if (error == EINVAL) /* the program has more thread-local variables than that */
		error = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	owner = getpid();
	return !error;
}

/* Memory becomes idle, and nobody watches. */
static void begin(void)
{
	bool failed = false;

	pthread_mutex_lock(&lock);
	if (!stopped) {
		watching = true;
		if (!running)
			running = start();
		failed = stopped = !running;
	}
	pthread_mutex_unlock(&lock);
	if (failed && ss_options.verbose)
		ss_shim_log("no thread for idle memory: only calls of the program give it back");
}

/* ---- the ends ------------------------------------------------------------------- */

void ss_decay_thread_pause(void)
{
	struct timespec end = in_ms(CLOCK_MONOTONIC, PATIENCE_MS);

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

/* The child has no such thread, and HIP does not work in it. */
static void in_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	running = working = false;
	stopped = true;
	paused = 0;
}

void ss_decay_thread_stop(void)
{
	struct timespec end = in_ms(CLOCK_REALTIME, PATIENCE_MS);
	bool join;

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
		/* Handlers of fork() run in the reverse order. That of the records holds a lock
		 * that the thread may need to come to its end, so it must be there already. */
		(void)ss_thread_record();
		pthread_atfork(before_fork, ss_decay_thread_resume, in_child);
		ss_decay_watch(ss_core, begin);
	}
	pthread_condattr_destroy(&attr);
}

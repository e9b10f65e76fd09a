/* SPDX-License-Identifier: MIT */
/*
 * When the shim wakes up, and when it must not be in the way any more.
 *
 * Nothing happens before the first intercepted call: a process that never
 * touches HIP pays for loading one library, and for a look at what else is
 * loaded. From then on the state only moves forward: unknown -> on or off ->
 * exiting.
 *
 * Locks: start_lock, round the creation of the core, which calls no HIP; the
 * runtime is asked before, by every thread that comes first at once. (Waiting
 * for a thread that is inside the runtime's own start could deadlock with one
 * that holds the loader's lock.)
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm.h"
#include "shim/process/bypass.h"
#include "shim/process/report.h"
#include "shim/shim.h"

_Atomic int ss_state, ss_slow_reasons = 1;
struct ss_core *ss_core;
struct ss_core *_Atomic ss_hits_core;
struct ss_options ss_options;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

/* glibc's, for the destructors of thread-local objects. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

int ss_device_count(void)
{
	return ss_rocm.devices;
}

void ss_slow_reasons_add(int more)
{
	atomic_fetch_add(&ss_slow_reasons, more);
	if (more > 0 && ss_core)
		ss_hits_end(ss_core);
}

static void set_state(int from, int to)
{
	if (atomic_compare_exchange_strong(&ss_state, &from, to) &&
	    (from == SS_ON) != (to == SS_ON))
		ss_slow_reasons_add(from == SS_ON ? 1 : -1);
}

/* ---- the ways out ------------------------------------------------------- */

/* HIP in a forked child is undefined once the parent used it, and our locks may
 * be held by threads that do not exist here. */
static void in_child(void)
{
	int state = atomic_load(&ss_state);

	ss_tls.depth = 0;
	if (state != SS_UNKNOWN)
		set_state(state, SS_OFF);
}

/* Runs early in exit(), before the destructors of objects that were built before
 * main(): those may free device memory after the runtime has gone. */
static void at_exit(void)
{
	bool on = atomic_load(&ss_state) == SS_ON;

	set_state(SS_ON, SS_EXITING);
	/* Nobody pays from here on, and whoever looks at the device is not seen. The
	 * runtime was loaded before this was registered, so it goes later. */
	if (on && !ss_tls.depth)
		ss_debts_pay();
}

/* Those destructors may also read what a hipFree has waited for. While they run, the
 * runtime is there if it was loaded with the program: what is given to atexit() here,
 * before the program's own constructors, runs behind their counterparts and in front
 * of the runtime's. Of a runtime that came later nobody knows when it goes. */
static atomic_bool waits_late;

static void program_gone(void)
{
	struct ss_device_switch s;

	atomic_store(&waits_late, false);
	if (atomic_load(&ss_state) != SS_EXITING || ss_tls.depth)
		return;
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		if (!ss_must_unmap(ss_core, dev) || !ss_device_switch(&s, dev))
			continue;
		if (REAL(hipDeviceSynchronize) == hipSuccess)
			ss_unmap(ss_core, dev);
		ss_device_restore(&s);
	}
}

__attribute__((constructor)) static void init(void)
{
	if (ss_hip_loaded_after_us() && !atexit(program_gone))
		atomic_store(&waits_late, true);
}

bool ss_exit_waits(void)
{
	return atomic_load(&waits_late) && !ss_tls.depth;
}

/* Last of all, after the runtime's own destructors: no HIP from here. A thread that still
 * runs may bring blocks of ours until the process is gone. */
__attribute__((destructor)) static void fini(void)
{
	int state = atomic_load(&ss_state);

	set_state(state, state == SS_ON || state == SS_EXITING ? SS_EXITING : SS_OFF);
	if (state == SS_UNKNOWN && ss_hip_loaded())
		ss_report_add(&somashim_report.r.unused);
	if (state != SS_ON && state != SS_EXITING)
		return;
	if (ss_options.stats)
		ss_stats_print(ss_core, ss_shim_log_file());
	fflush(ss_shim_log_file());
}

/* The runtime takes a thread's stream down in a destructor of a thread-local object,
 * and while commands are in flight on it then, another thread's use of the null stream
 * may trip over it (7.2.4: WaitActiveStreams). A program that has waited for its
 * stream runs no such risk; nor may it because of a marker of ours. So ours is waited
 * for first. It costs no time: the runtime's destructor waits as well. */
static void thread_gone(void *arg)
{
	uint64_t streams = ss_tls.own_streams, drained = 0;

	ss_tls.own_streams = 0; /* a later destructor may need one again */
	if (atomic_load(&ss_state) != SS_ON)
		return;
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		if (streams >> dev & 1)
			drained |= (uint64_t)ss_thread_drain(dev) << dev;
	ss_thread_exit(ss_core, false, drained);
}

/* A key of pthreads ends after all thread-local objects: so it is only for those that
 * free in a key's destructor, after that, where nobody asks for thread-local ones any more.
 * To the runtime the stream is no more: a call for it makes a later thread's crash (7.2.4). */
static pthread_key_t gone_key;
static bool have_gone_key;

static void key_gone(void *arg)
{
	if (!ss_tls.own_streams || atomic_load(&ss_state) != SS_ON)
		return;
	ss_tls.own_streams = 0;
	ss_thread_exit(ss_core, true, 0);
}

static void gone_key_make(void)
{
	have_gone_key = !pthread_key_create(&gone_key, key_gone);
}

/* Destructors run last in, first out, so the runtime's must be entered before: any call of
 * it does that. */
void ss_thread_exit_register(int dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int current;

	if (!ss_tls.own_streams) {
		(void)REAL(hipGetDevice, &current);
		__cxa_thread_atexit_impl(thread_gone, NULL, &__dso_handle);
		pthread_once(&once, gone_key_make);
		if (have_gone_key)
			(void)pthread_setspecific(gone_key, &gone_key);
	}
	ss_tls.own_streams |= (uint64_t)1 << dev;
}

/* ---- the way in --------------------------------------------------------- */

static void create(int devices)
{
	enum ss_backing backing = (enum ss_backing)ss_options.backing;
	struct ss_driver driver = ss_rocm_driver();
	const char *why;

	ss_core = ss_core_create(&driver, &ss_options);
	if (!ss_core) {
		ss_shim_log("out of host memory: every call goes to the real runtime");
		set_state(SS_UNKNOWN, SS_OFF);
		return;
	}
	ss_core_set_log(ss_core, ss_shim_log_file());
	for (int i = 0; i < devices; i++)
		if (!ss_rocm_usable(i, backing, &why))
			ss_shim_log("device %d: SOMASHIM_BACKING=%s is not used, but hip: %s", i,
			       ss_backing_name(backing), why);
	if (ss_core_journal_error(ss_core))
		ss_shim_log("cannot open SOMASHIM_JOURNAL %s: %s", ss_options.journal,
		       strerror(ss_core_journal_error(ss_core)));
	ss_hits_gate(ss_core, &ss_slow_reasons);
	atomic_store_explicit(&ss_hits_core, ss_core, memory_order_release);
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	set_state(SS_UNKNOWN, devices ? SS_ON : SS_OFF);
}

/* By the first thread that comes; the others wait for what it finds. */
static void selftest(const struct ss_options *options, int devices)
{
	static atomic_int stage; /* 1: under way, 2: done */
	int none = 0;

	if (atomic_compare_exchange_strong(&stage, &none, 1)) {
		ss_options = *options;
		ss_shim_log_open();
		ss_selftest(options, devices);
		atomic_store(&stage, 2);
	}
	while (atomic_load(&stage) != 2)
		usleep(1000);
}

static bool start(void)
{
	/* Not on the stack: the thread may have little of it. */
	struct ss_options *options;
	bool first = false;
	int devices;

	if (!ss_real_resolve() || !(options = malloc(sizeof(*options))))
		return false;
	ss_options_read(options, environ, NULL);
	devices = options->disable ? 0 : ss_rocm_start(options);
	if (options->selftest && devices > 0 && atomic_load(&ss_state) == SS_UNKNOWN)
		selftest(options, devices);
	if (devices > 0 && options->free_sync == SS_FREE_SYNC_AUTO)
		ss_loads_start();
	pthread_mutex_lock(&start_lock);
	if (atomic_load(&ss_state) == SS_UNKNOWN) {
		first = true;
		ss_options = *options;
		ss_shim_log_open();
		ss_options_read(options, environ, ss_shim_log_file()); /* now with warnings */
		if (devices > 0)
			create(devices);
		else
			set_state(SS_UNKNOWN, SS_OFF);
	}
	pthread_mutex_unlock(&start_lock);
	free(options);
	if (first)
		ss_report_add(devices > 0 ? &somashim_report.r.used : &somashim_report.r.off);
	if (first && ss_options.verbose)
		ss_banner(devices);
	return true;
}

bool ss_pass_slow(enum ss_entry_kind kind)
{
	if (ss_tls.depth)
		return true;
	switch (atomic_load_explicit(&ss_state, memory_order_acquire)) {
	case SS_ON:
		return false;
	case SS_OFF:
		return true;
	case SS_EXITING:
		return kind != SS_LATE;
	default:
		break;
	}
	if (kind == SS_ERROR) {
		ss_real_resolve();
		return true;
	}
	/* Ours from here: the banner and the core's first questions. */
	ss_enter();
	start();
	ss_leave();
	return atomic_load_explicit(&ss_state, memory_order_acquire) != SS_ON;
}

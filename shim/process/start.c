/* SPDX-License-Identifier: MIT */
/*
 * The start of the shim, in the first intercepted HIP call of the process. Before that call a
 * process pays for loading one library and for a look at the other loaded objects. The shim never
 * starts the HIP runtime before the program does, and a disabled shim makes no call of the runtime.
 *
 * Locks: start_lock, while the core is created and the result is published; no HIP call is made
 * under it. If several threads make the first call at the same time, each asks the runtime before
 * it takes the lock: a thread that waits for another one inside the runtime's own start could
 * deadlock with one that holds the loader's lock.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/quirks.h"
#include "driver/rocm/rocm.h"
#include "shim/process/banner.h"
#include "shim/process/decay_thread.h"
#include "shim/process/exit.h"
#include "shim/process/loader.h"
#include "shim/process/log.h"
#include "shim/process/oom_report.h"
#include "shim/process/real.h"
#include "shim/process/recording.h"
#include "shim/process/report.h"
#include "shim/process/selftest.h"
#include "shim/process/service.h"
#include "shim/process/sleep_state.h"
#include "shim/process/stats.h"
#include "shim/process/submit_gate.h"
#include "shim/process/tester.h"
#include "trace/writer.h"
#include "core/statistics.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread that the child does not have may hold the lock. The child starts like any process: the
 * runtime says whether it can still serve the child. */
static void in_child(void)
{
	start_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

__attribute__((constructor)) static void init(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void create(int devices)
{
	enum ss_backing backing = (enum ss_backing)ss_options.backing;
	struct ss_driver driver = ss_rocm_driver();
	const char *why;

	ss_recording_start(&ss_options);
	ss_core = ss_core_create(&driver, &ss_options);
	if (!ss_core) {
		ss_shim_log("out of host memory: every call goes to the real runtime");
		ss_state_set(SS_UNKNOWN, SS_OFF);
		return;
	}
	for (int i = 0; i < devices; i++) {
		if (!ss_rocm_usable(i, backing, &why) && ss_options.backing_by_sleep)
			ss_shim_log("device %d: SOMASHIM_SLEEP: its pools cannot sleep: %s", i,
				    why);
		else if (!ss_rocm_usable(i, backing, &why))
			ss_shim_log("device %d: SOMASHIM_BACKING=%s is not used, but hip: %s", i,
				    ss_backing_name(backing), why);
		else if (backing == SS_BACKING_VMM && ss_rocm_host_loads_fail(i))
			ss_shim_log(
				"device %d: PyTorch loads from device memory on the host "
				"(.item()), "
				"and dies if it does so with SOMASHIM_BACKING=vmm on this release",
				i);
	}
	ss_core_watch(ss_core, &(struct ss_watch){
				       .log = ss_shim_log_file(),
				       .grew = ss_live_grew,
				       .out_of_memory = ss_shim_oom_report,
				       .block = ss_recording_journal(&ss_options),
				       .wake = ss_sleep_wait_in_call,
				       .quiet_begin = ss_gate_hold,
				       .quiet_end = ss_gate_unhold,
			       });
	if ((backing == SS_BACKING_VMM || ss_options.selftest ||
	     (ss_options.check & SS_CHECK_GUARD) ||
	     (backing == SS_BACKING_AUTO && ss_rocm_best(0, &why) == SS_BACKING_VMM)) &&
	    ss_quirk_flags(ss_runtime()->major, ss_runtime()->minor, NULL) & SS_Q_EXIT_MAPPED)
		ss_gate_start();
	ss_hits_gate(ss_core, &ss_slow_reasons);
	atomic_store_explicit(&ss_hits_core, ss_core, memory_order_release);
	ss_live_start();
	ss_shim_stats_start();
	if (devices)
		ss_decay_thread_init();
	if (devices)
		ss_run_hook(SS_HOOK_START);
	/* This call is last: another thread may be in exit() now, and the handlers of exit() end
	 * the things that were started above. */
	ss_exit_register();
	ss_state_set(SS_UNKNOWN, devices ? SS_ON : SS_OFF);
}

/* The first thread runs the test; the others wait for its verdicts. */
static void selftest(const struct ss_options *options, int devices)
{
	static atomic_int stage; /* 1: running, 2: done */
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

static void tell_copy(const char *serves, const char *version, const char *aside,
		      const char *aside_version)
{
	ss_shim_log("two copies of libsomashim are loaded: %s (%s) serves the program, and %s (%s) "
		    "stands aside",
		    serves, version, aside, aside_version);
}

/* Too large for some stacks. The first thread uses this static copy and needs no host memory: a
 * call that failed for lack of host memory would bypass us, and the objects that it made would stay
 * the runtime's. */
static struct ss_options first_options;
static atomic_flag first_taken = ATOMIC_FLAG_INIT;

static struct ss_options *options_room(void)
{
	return atomic_flag_test_and_set(&first_taken) ? malloc(sizeof(first_options)) :
							&first_options;
}

static void options_drop(struct ss_options *options)
{
	if (options == &first_options)
		atomic_flag_clear(&first_taken);
	else
		free(options);
}

/* Reads the options and finds the real functions. The query for the version comes first and starts
 * the runtime. So the functions are found after a runtime with an API table has handed out its
 * table (route/api_table.c): until then its exports would lead back to us. A shim that is disabled
 * or stands aside takes no table and asks nothing. False: no runtime yet, or no host memory for the
 * options; call again. */
static bool find_real(struct ss_options **options)
{
	*options = NULL;
	if (!ss_runtime_find())
		return false;
	*options = options_room();
	if (*options)
		ss_options_read(*options, environ, NULL);
	if (*options && ss_copy_aside())
		(*options)->disable = true;
	if (!*options || !(*options)->disable)
		ss_runtime_ask_version();
	return ss_real_resolve() && *options;
}

static void start(void)
{
	struct ss_options *options;
	bool first = false;
	int devices;

	if (!find_real(&options)) {
		options_drop(options);
		return;
	}
	devices = options->disable ? 0 : ss_rocm_start(options);
	if (options->selftest && devices > 0 && atomic_load(&ss_state) == SS_UNKNOWN)
		selftest(options, devices);
	else if (devices > 0 && atomic_load(&ss_state) == SS_UNKNOWN)
		ss_tester_ask(options, devices);
	if (devices > 0 && options->free_sync == SS_FREE_SYNC_AUTO)
		ss_loader_start();
	if (devices > 0 && options->trace[0])
		ss_trace_prepare();
	pthread_mutex_lock(&start_lock);
	if (atomic_load(&ss_state) == SS_UNKNOWN) {
		first = true;
		ss_options = *options;
		ss_shim_log_open();
		ss_options_read(options, environ, ss_shim_log_file()); /* now with warnings */
		if (devices > 0)
			create(devices);
		else
			ss_state_set(SS_UNKNOWN, SS_OFF);
	}
	pthread_mutex_unlock(&start_lock);
	options_drop(options);
	if (!first)
		return;
	ss_copies_tell(tell_copy);
	if (ss_copy_aside())
		return;
	ss_report_add(devices > 0        ? &somashim_report.r.used :
		      ss_options.disable ? &somashim_report.r.disabled :
					   &somashim_report.r.no_device);
	ss_recording_describe(devices);
	if (devices > 0)
		ss_tester_tell(devices);
	if (ss_options.verbose)
		ss_banner(devices);
}

bool ss_pass_slow(enum ss_entry_kind kind)
{
	struct ss_options *options;

	if (ss_tls.depth)
		return true;
	switch (atomic_load_explicit(&ss_state, memory_order_acquire)) {
	case SS_ON: return false;
	/* exit() may have ended service while the first thread was still at the start of it, so the
	 * state does not show that the real functions were found. */
	case SS_OFF: (void)ss_real_resolve(); return true;
	case SS_EXITING: (void)ss_real_resolve(); return kind != SS_ENTRY_ALWAYS;
	default: break;
	}
	SS_UNCANCELLED;
	ss_enter();
	if (kind != SS_ENTRY_ERROR) {
		start();
	} else if (!ss_real_resolved()) {
		(void)find_real(&options);
		options_drop(options);
	}
	ss_leave();
	return atomic_load_explicit(&ss_state, memory_order_acquire) != SS_ON;
}

/* SPDX-License-Identifier: MIT */
/*
 * The end of service in a process: exit() and fork().
 *
 * The order at exit is: at_exit (early, while everything works), the program's destructors of
 * static objects, program_gone and unloaded (the destructors of a preload come before those of
 * libraries that the program links or opens), the destructors of these libraries, which may free
 * blocks, and of the runtime, and last_of_all.
 *
 * A constructor registers last_of_all with exit(), and for no library. The loader runs the
 * constructors of the libraries that a program starts with before __libc_start_main(). That
 * function registers the loader's function that runs the destructors of all libraries. The function
 * registered first runs last, in every release of glibc. If somashim is loaded later, by dlopen(),
 * its destructor comes after last_of_all, and is the end.
 *
 * Locks: none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/rocm.h"
#include "shim/process/bypass.h"
#include "shim/process/current_device.h"
#include "shim/process/decay_thread.h"
#include "shim/process/exit.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/report.h"
#include "shim/process/service.h"
#include "shim/process/stats.h"
#include "shim/process/submit_gate.h"
#include "trace/writer.h"

static void (*_Atomic hook)(void);

void ss_exit_set_hook(void (*fn)(void))
{
	atomic_store(&hook, fn);
}

/* A forked child passes everything on: HIP is undefined in the child once the parent used HIP, and
 * threads that the child does not have may hold our locks. A child of a process that has not used
 * HIP yet starts like any process. */
static void in_child(void)
{
	int state = atomic_load(&ss_state);

	ss_tls.depth = 0;
	ss_live_forked(true);
	if (state != SS_UNKNOWN)
		ss_state_set(state, SS_OFF);
}

/* Runs early in exit(), because it is registered late. The hook may call HIP: the runtime was
 * loaded before this registration, so the runtime is torn down later. */
static void at_exit(void)
{
	void (*fn)(void) = atomic_load(&hook);
	bool on = atomic_load(&ss_state) == SS_ON;

	SS_UNCANCELLED;
	if (on && !ss_tls.depth)
		ss_run_hook(SS_HOOK_EXIT);
	ss_state_set(SS_ON, SS_EXITING);
	ss_decay_thread_stop();
	if (on && !ss_tls.depth && fn)
		fn();
}

void ss_exit_register(void)
{
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
}

/* Destructors of static objects may read memory whose commands a hipFree has waited for. While
 * these destructors run, a runtime that was loaded with the program still works: functions that our
 * constructor gives to atexit() run after these destructors and before the runtime's. The end of a
 * runtime that was loaded by dlopen() is not known, so in that case no wait is made. */
static atomic_bool exit_waits;

/* Limit of the wait for pending work and calls. Without us the process would end at once, so a
 * stream that never becomes idle must not hold up the process for long. */
#define IDLE_MS 5000

static atomic_bool streams_unknown;

void ss_exit_streams_unknown(void)
{
	atomic_store(&streams_unknown, true);
}

static bool any_must_unmap(void)
{
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		if (ss_must_unmap(ss_core, dev))
			return true;
	return false;
}

/* The wait for the device covers streams that cannot be queried, but has no time limit. So this
 * wait comes last. */
static bool device_idle(int dev, unsigned *ms)
{
	struct ss_device_switch s;
	bool idle;

	for (; !atomic_load(&streams_unknown) && ss_device_ask_busy(ss_core, dev); --*ms) {
		if (!*ms)
			return false;
		usleep(1000);
	}
	if (!ss_device_switch(&s, dev))
		return false;
	idle = REAL(hipDeviceSynchronize) == hipSuccess;
	ss_device_restore(&s);
	return idle;
}

/* The memory of a device may be used by its peers, so all must be idle. */
static bool all_idle(void)
{
	unsigned ms = IDLE_MS;

	for (int dev = 0; dev < ss_rocm_devices; dev++)
		if (!device_idle(dev, &ms))
			return false;
	return true;
}

/* Unmaps all memory if the runtime would crash at its end over remaining mappings (ROCm 6.x). No
 * memory is unmapped while pending work may touch it, or while a thread may submit such work: by a
 * way that we do not see (ss_distrusted), or in a call that does not end. */
static void unmap_all(void)
{
	struct ss_device_switch s;

	if (!any_must_unmap() || ss_distrusted(ss_core) || !ss_gate_shut(IDLE_MS))
		return;
	if (!all_idle()) {
		ss_gate_open();
		return;
	}
	ss_run_hook(SS_HOOK_UNMAP);
	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (!ss_must_unmap(ss_core, dev) || !ss_device_switch(&s, dev))
			continue;
		ss_unmap(ss_core, dev);
		ss_device_restore(&s);
	}
}

static void program_gone(void)
{
	SS_UNCANCELLED;
	atomic_store(&exit_waits, false);
	if (atomic_load(&ss_state) == SS_EXITING && !ss_tls.depth)
		unmap_all();
}

__attribute__((constructor)) static void init(void)
{
	if (ss_hip_loaded_after_us() && !atexit(program_gone))
		atomic_store(&exit_waits, true);
}

bool ss_exit_waits(void)
{
	return atomic_load(&exit_waits) && !ss_tls.depth;
}

/* A user who set SOMASHIM_VERBOSE wants to know whether the shim is active. `somashim run` says
 * more at its own end. */
static void report_unused(void)
{
	struct ss_options *options = malloc(sizeof(*options));
	bool run = somashim_report.r.magic == SS_REPORT_MAGIC, says = false;

	if (options) {
		ss_options_read(options, environ, NULL);
		says = options->verbose && !options->disable && !run;
	}
	if ((run || says) && ss_hip_loaded()) {
		ss_report_add(&somashim_report.r.unused);
		if (says) {
			ss_options = *options;
			ss_shim_log_open();
			ss_shim_log(
				"HIP was loaded, but no call of it came here: the program has HIP "
				"linked into it, or loads it with RTLD_DEEPBIND (then use: "
				"somashim run --audit PROGRAM) or into another namespace "
				"(dlmopen)");
		}
	}
	free(options);
}

/* Runs after all destructors, so no HIP call is allowed from here on. A thread that still runs may
 * free blocks of ours until the process is gone. */
static void end_of_process(void)
{
	int state = atomic_load(&ss_state);

	SS_UNCANCELLED;
	ss_state_set(state, state == SS_ON || state == SS_EXITING ? SS_EXITING : SS_OFF);
	if (state == SS_UNKNOWN && !ss_real_resolved() && !ss_copy_aside())
		report_unused();
	if (state != SS_ON && state != SS_EXITING)
		return;
	(void)ss_bypass_check(); /* reports objects that were loaded since the last look, too */
	fflush(ss_shim_log_file());
	ss_run_hook(SS_HOOK_END);
	ss_shim_stats_write();
	ss_live_end();
	ss_report_totals(ss_core);
	fflush(ss_shim_log_file());
	ss_trace_close();
}

static bool last_comes, is_unloaded;

static void last_of_all(void *unused)
{
	(void)unused;
	last_comes = false;
	if (is_unloaded)
		end_of_process();
}

__attribute__((destructor)) static void unloaded(void)
{
	is_unloaded = true;
	if (!last_comes)
		end_of_process();
}

extern int __cxa_atexit(void (*fn)(void *), void *arg, void *library);

__attribute__((constructor)) static void init_last(void)
{
	last_comes = !__cxa_atexit(last_of_all, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests a self-test in another process, because a self-test can hang or end its process. The
 * program asks `somashim run`, through the page of report.h, and waits for the verdict, which is a
 * file (driver/rocm/verdict.h). The test is made once, with the runtime that this process has
 * loaded.
 *
 * Locks: none.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/deadline.h"
#include "driver/rocm/rocm.h"
#include "driver/rocm/verdict.h"
#include "shim/process/log.h"
#include "shim/process/report.h"
#include "shim/process/tester.h"

#define LOOK_MS 100
#define LOOKS 3000 /* after five minutes the program goes on without a verdict */

static _Atomic uint64_t took_ns; /* duration of the test that this process asked for; 0: none */

static bool is_untried(int devices)
{
	for (int dev = 0; dev < devices; dev++)
		if (ss_rocm_untried(dev))
			return true;
	return false;
}

static bool is_tester_there(const struct ss_report *r)
{
	return kill((pid_t)r->tester, 0) == 0 || errno != ESRCH;
}

static void wait_for_end(struct ss_report *r)
{
	const struct timespec look = {0, LOOK_MS * 1000000L};
	uint32_t state;

	for (int i = 0; i < LOOKS; i++) {
		state = atomic_load(&r->test);
		if ((state != SS_TEST_ASKING && state != SS_TEST_WANTED) || !is_tester_there(r))
			return;
		syscall(SYS_futex, &r->test, FUTEX_WAIT, state, &look, NULL, 0);
	}
}

void ss_tester_ask(const struct ss_options *options, int devices)
{
	struct ss_report *r = &somashim_report.r;
	uint32_t ready = SS_TEST_READY;
	uint64_t from;

	if (r->magic != SS_REPORT_MAGIC || options->backing != SS_BACKING_AUTO ||
	    atomic_load(&r->test) == SS_TEST_OFF || atomic_load(&r->test) == SS_TEST_DONE ||
	    !is_untried(devices))
		return;
	from = ss_monotonic_ns();
	if (atomic_compare_exchange_strong(&r->test, &ready, SS_TEST_ASKING)) {
		snprintf(r->runtime, sizeof(r->runtime), "%s", ss_runtime()->path);
		atomic_store(&r->test, SS_TEST_WANTED);
		syscall(SYS_futex, &r->test, FUTEX_WAKE, 1, NULL, NULL, 0);
		wait_for_end(r);
		atomic_store(&took_ns, ss_monotonic_ns() - from);
	} else {
		wait_for_end(r);
	}
	for (int dev = 0; dev < devices; dev++)
		(void)ss_rocm_verdict_again(dev);
}

void ss_tester_tell(int devices)
{
	uint64_t ns = atomic_exchange(&took_ns, 0);
	int passed = 0, failed = 0;

	for (int dev = 0; ns && dev < devices; dev++) {
		enum ss_verdict v = ss_rocm_verdict(dev);

		passed += v == SS_VERDICT_PASSED;
		failed += v == SS_VERDICT_FAILED;
	}
	if (ns)
		ss_shim_log(
			"virtual memory was tried, once for this runtime, driver and device: %s "
			"(%.1f s; somashim doctor says more)",
			passed && !failed ? "it works" :
			passed            ? "it works on some devices" :
			failed            ? "it does not work, and pools go on without it" :
					    "nothing was found out",
			(double)ns / 1e9);
}

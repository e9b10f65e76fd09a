/* SPDX-License-Identifier: MIT */
/*
 * Puts the process to sleep, and wakes it.
 *
 * An attempt to sleep begins with SETTLING: calls that put work on a device are held, calls in
 * progress end, and every stream is asked. A thread that is held too long opens the gate
 * (sleep_state.h), and the attempt is over. Calls that wait for a device are never held.
 *
 * Locks: none.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/deadline.h"
#include "core/sleep.h"
#include "driver/rocm/rocm.h"
#include "shim/process/decay_thread.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/process/sleep_state.h"
#include "shim/process/submit_gate.h"
#include "shim/sleep/answer.h"
#include "shim/sleep/attempt.h"
#include "shim/sleep/reasons.h"
#include "shim/sleep/store.h"
#include "shim/sleep/wake_turn.h"

#define LOOK_US 200  /* between two looks at what an attempt waits for */
#define UNDO_TRIES 5 /* each call of the runtime is tried three times in each */

static struct ss_asleep *asleep;
static const struct ss_sleep_store *store;

static uint64_t now_ms(void)
{
	return ss_monotonic_ns() / 1000000;
}

static void say(struct ss_live_slept *out, const char *text)
{
	snprintf(out->why, sizeof(out->why), "%s", text);
}

/* ---- until the devices are idle ------------------------------------------------- */

static bool opened(void)
{
	return atomic_load(&ss_sleep_state) != SS_LIVE_SETTLING;
}

/* False: the attempt is over. */
static bool look_again(struct ss_deadline *d)
{
	if (opened() || ss_deadline_over(d, ss_monotonic_ns()))
		return false;
	ss_deadline_take(d, 1);
	usleep(LOOK_US);
	return true;
}

/* A device that the process has not used has nothing to do, and a call would begin to use it. */
static bool is_busy(int dev)
{
	return ss_rocm_uses_device(dev) && ss_device_ask_busy(ss_core, dev);
}

static bool synchronize(int dev)
{
	struct ss_token t;
	hipError_t err;

	if (!ss_rocm_uses_device(dev))
		return true;
	if (REAL(hipSetDevice, dev) != hipSuccess)
		return false;
	t = ss_device_sync_begin(ss_core, dev);
	err = REAL(hipDeviceSynchronize);
	ss_sync_end(ss_core, &t, err == hipSuccess, false);
	return err == hipSuccess;
}

/* No call that puts work on a device is in progress, and no device has anything to do. The streams
 * are asked first, because the wait for a device has no limit; it covers streams that cannot be
 * asked. */
static bool settle(unsigned hold_ms, struct ss_live_slept *out)
{
	struct ss_deadline d = ss_deadline_in(ss_monotonic_ns(), hold_ms * 1000000ull,
					      hold_ms * 1000u / LOOK_US);

	while (ss_gate_any_inside()) {
		if (!look_again(&d)) {
			say(out, "a call of HIP does not return");
			return false;
		}
	}
	if (ss_capture_live()) {
		say(out, "a stream captures");
		return false;
	}
	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		while (is_busy(dev)) {
			if (!look_again(&d)) {
				snprintf(out->why, sizeof(out->why),
					 "device %d is at work all the time", dev);
				return false;
			}
		}
	}
	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (!synchronize(dev)) {
			snprintf(out->why, sizeof(out->why), "device %d cannot be synchronized",
				 dev);
			return false;
		}
	}
	return true;
}

bool ss_attempt_would_wait(void)
{
	if (ss_gate_any_inside() || ss_capture_live())
		return true;
	for (int dev = 0; dev < ss_rocm_devices; dev++)
		if (is_busy(dev))
			return true;
	return false;
}

/* ---- to sleep --------------------------------------------------------------------- */

static void drop_store(void)
{
	ss_store_end(store);
	store = NULL;
}

/* The gate is shut and the devices are idle. */
static enum ss_attempt sleep_now(const char *dir, struct ss_live_slept *out)
{
	struct ss_slept slept;
	enum ss_status s;
	const char *why;

	store = ss_store_make(dir[0] ? dir : NULL, &why);
	if (!store) {
		say(out, why);
		return SS_ATTEMPT_FAILED;
	}
	s = ss_core_sleep(ss_core, store, &asleep, &slept);
	if (s != SS_OK) {
		why = ss_store_why(store);
		say(out, why ? why : s == SS_ERR_NOMEM ? "host memory is out" : "the store failed");
		drop_store();
		return SS_ATTEMPT_FAILED;
	}
	out->idle = slept.idle;
	out->held = slept.held;
	out->live = slept.live;
	out->gone = slept.gone;
	out->seen = slept.seen;
	out->stays = slept.stays;
	out->exported = slept.exported;
	snprintf(out->by, sizeof(out->by), "%s", slept.by ? slept.by : "");
	out->chunks = slept.chunks;
	out->ranges = slept.ranges;
	return SS_ATTEMPT_DONE;
}

static void awake(void)
{
	drop_store();
	asleep = NULL;
	ss_sleep_enter(SS_LIVE_AWAKE);
	ss_decay_thread_resume();
}

/* Nothing was released, so no memory can be missing. But the runtime may refuse for good to map
 * again what it has unmapped. False: the process sleeps, and wakes as after any sleep. */
static bool undo(void)
{
	for (int i = 0; i < UNDO_TRIES; i++) {
		if (ss_core_wake(asleep) == SS_OK) {
			awake();
			return true;
		}
		usleep(LOOK_US);
	}
	return false;
}

enum ss_attempt ss_attempt_sleep(unsigned hold_ms, const char *dir, struct ss_live_slept *out)
{
	enum ss_attempt how = SS_ATTEMPT_LATER;
	uint64_t start = now_ms();

	memset(out, 0, sizeof(*out));
	out->error = 1;
	if (ss_sleep_refused(out->why, sizeof(out->why)))
		return SS_ATTEMPT_FAILED;
	ss_decay_thread_pause();
	ss_sleep_set_hold(hold_ms);
	ss_sleep_enter(SS_LIVE_SETTLING);
	if (settle(hold_ms, out)) {
		if (ss_sleep_settled()) {
			out->settle_ms = (uint32_t)(now_ms() - start);
			how = sleep_now(dir, out);
		} else {
			say(out, "a thread was held for too long");
		}
	}
	if (how != SS_ATTEMPT_DONE) {
		awake();
		return how;
	}
	if (!out->gone && !undo()) {
		say(out, "the runtime kept all memory, and refuses to map it again: the process "
			 "sleeps until it does");
		ss_sleep_enter(SS_LIVE_ASLEEP);
		return SS_ATTEMPT_FAILED;
	}
	if (!out->gone) {
		/* If the pools had idle memory only, all has been done that was asked for. */
		out->error = !out->idle;
		say(out, ss_sleep_nothing(out->held));
		return SS_ATTEMPT_FAILED;
	}
	out->error = 0;
	out->sleep_ms = (uint32_t)(now_ms() - start);
	if (ss_options.verbose)
		ss_shim_log("asleep: %llu of %llu MiB released, of which the devices have %llu; "
			    "%llu MiB of contents kept; %u ms",
			    (unsigned long long)(out->gone >> 20),
			    (unsigned long long)(out->held >> 20),
			    (unsigned long long)(out->seen >> 20),
			    (unsigned long long)(out->live >> 20), out->sleep_ms);
	ss_sleep_enter(SS_LIVE_ASLEEP);
	return SS_ATTEMPT_DONE;
}

/* ---- awake ---------------------------------------------------------------------------- */

enum ss_attempt ss_attempt_wake(const char **why)
{
	uint64_t start = now_ms();
	enum ss_status s;

	ss_sleep_enter(SS_LIVE_WAKING);
	ss_wake_turn_begin();
	s = ss_core_wake(asleep);
	ss_wake_turn_end();
	if (s != SS_OK) {
		*why = s == SS_ERR_NOMEM   ? "a device has no room for its memory" :
		       ss_store_why(store) ? ss_store_why(store) :
					     "the runtime refused memory";
		/* Then blocks that the program has freed meanwhile are completed, and the next
		 * attempt can release their memory. */
		for (int dev = 0; s == SS_ERR_NOMEM && dev < ss_rocm_devices; dev++)
			(void)synchronize(dev);
		ss_sleep_count_failure();
		ss_sleep_enter(SS_LIVE_ASLEEP);
		return SS_ATTEMPT_LATER;
	}
	awake();
	if (ss_options.verbose)
		ss_shim_log("awake after %llu ms", (unsigned long long)(now_ms() - start));
	return SS_ATTEMPT_DONE;
}

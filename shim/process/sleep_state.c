/* SPDX-License-Identifier: MIT */
/*
 * The state between awake and asleep, and the threads that wait for the process to wake.
 *
 * A thread that is held in SETTLING may be what a device waits for, by a value, a host function or
 * a lock. So after the hold it opens the gate again, and the attempt to sleep is over. From COPYING
 * on the devices have nothing to do, so nothing can wait for a thread that is held.
 *
 * Locks: none. The state and the bell are futexes.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/process/service.h"
#include "shim/process/sleep_state.h"

#define SLICE_MS 5 /* of a hold */

_Atomic uint32_t ss_sleep_state;
atomic_bool ss_sleep_used;

static _Atomic uint32_t own_bell;
static _Atomic(_Atomic uint32_t *) bell = &own_bell;
static atomic_uint hold_ms, waiters;
static atomic_bool keep;
static _Atomic uint32_t failures; /* attempts to wake that found no memory */

/* Not private: the bell and the answers lie in a page that other processes map. */
bool ss_sleep_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
	struct timespec least = {.tv_nsec = 1000000};
	bool over;

	if (!syscall(SYS_futex, word, FUTEX_WAIT, value, ms == UINT64_MAX ? NULL : &t, NULL, 0))
		return true;
	over = errno == ETIMEDOUT;
	if (errno != EINTR && errno != EAGAIN && !over)
		nanosleep(&least, NULL); /* not possible here: looks again now and then */
	return !over;
}

void ss_sleep_futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void ss_sleep_ring(void)
{
	_Atomic uint32_t *word = atomic_load(&bell);

	atomic_fetch_add(word, 1);
	ss_sleep_futex_wake(word);
}

/* ---- whoever is held ------------------------------------------------------------ */

static void open_gate(void)
{
	uint32_t settling = SS_LIVE_SETTLING;

	if (atomic_compare_exchange_strong(&ss_sleep_state, &settling, SS_LIVE_AWAKE))
		ss_sleep_futex_wake(&ss_sleep_state);
}

/* Turns and attempts are counted, because the program's clock may stand still. */
static bool wait_awake(void)
{
	uint64_t hold = atomic_load(&hold_ms) / SLICE_MS,
		 limit = ss_options.wake_wait_ms / SS_SLEEP_RETRY_MS;
	uint32_t state, tried = 0;
	bool waits = false, ok = true;

	while ((state = atomic_load(&ss_sleep_state)) != SS_LIVE_AWAKE) {
		if (state == SS_LIVE_SETTLING) {
			if (!hold) {
				open_gate();
				continue;
			}
			hold--;
			(void)ss_sleep_futex_wait(&ss_sleep_state, state, SLICE_MS);
			continue;
		}
		if (!waits) {
			waits = true;
			tried = atomic_load(&failures);
			atomic_fetch_add(&waiters, 1);
			ss_sleep_ring();
		}
		if (state == SS_LIVE_ASLEEP && !atomic_load(&keep) &&
		    atomic_load(&failures) - tried > limit) {
			ok = false;
			break;
		}
		(void)ss_sleep_futex_wait(&ss_sleep_state, state, UINT64_MAX);
	}
	if (waits)
		atomic_fetch_sub(&waiters, 1);
	return ok;
}

bool ss_sleep_wait(void)
{
	int saved = errno;
	bool ok = wait_awake();

	errno = saved;
	return ok;
}

bool ss_sleep_wait_in_call(void)
{
	if (ss_tls.gave_up)
		return atomic_load(&ss_sleep_state) == SS_LIVE_AWAKE;
	ss_tls.gave_up = !ss_sleep_wait();
	return !ss_tls.gave_up;
}

void ss_sleep_wait_transition(void)
{
	int saved = errno;
	uint32_t state;

	while ((state = atomic_load(&ss_sleep_state)) != SS_LIVE_AWAKE && state != SS_LIVE_ASLEEP)
		(void)ss_sleep_futex_wait(&ss_sleep_state, state, UINT64_MAX);
	errno = saved;
}

/* ---- the thread ------------------------------------------------------------------ */

void ss_sleep_set_state(enum ss_live_sleep_state state)
{
	atomic_store(&ss_sleep_state, state);
	ss_sleep_futex_wake(&ss_sleep_state);
}

bool ss_sleep_settled(void)
{
	uint32_t settling = SS_LIVE_SETTLING;

	return atomic_compare_exchange_strong(&ss_sleep_state, &settling, SS_LIVE_COPYING);
}

void ss_sleep_set_hold(unsigned ms)
{
	atomic_store(&hold_ms, ms);
}

void ss_sleep_set_keep(bool keeps)
{
	atomic_store(&keep, keeps);
	ss_sleep_futex_wake(&ss_sleep_state); /* the rules for those who wait have changed */
}

bool ss_sleep_keeps(void)
{
	return atomic_load(&keep);
}

unsigned ss_sleep_waiters(void)
{
	return atomic_load(&waiters);
}

void ss_sleep_count_failure(void)
{
	atomic_fetch_add(&failures, 1);
}

void ss_sleep_set_bell(_Atomic uint32_t *word)
{
	atomic_store(&bell, word);
}

_Atomic uint32_t *ss_sleep_bell(void)
{
	return atomic_load(&bell);
}

void ss_sleep_forked(void)
{
	atomic_store(&bell, &own_bell);
	atomic_store(&ss_sleep_state, SS_LIVE_AWAKE);
	atomic_store(&waiters, 0);
	atomic_store(&keep, false);
}

/* SPDX-License-Identifier: MIT */
/*
 * Runtimes from 7.0 on crash when several threads map, unmap or set access at the same time
 * (mori#455), so only one thread at a time may make such a call, for any pool and device.
 *
 * A turn is not a lock. Such a call may wait for a stream, and the stream may wait for another
 * thread, which first waits for a turn. So a turn that has lasted TURN_MS is over, even if its call
 * has not returned: the call is blocked in its wait and changes nothing, and the next thread may
 * begin.
 *
 * Locks: lock, a leaf. It guards the fields below and is not held across a call.
 */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "driver/rocm/calls.h"
#include "driver/rocm/map_turn.h"

#define TURN_MS 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t turns, current; /* turns so far; the number of the current turn, 0: none */
static pthread_t owner;
static struct timespec until; /* time at which the current turn is over at the latest */

static void init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ended, &attr);
	pthread_condattr_destroy(&attr);
}

uint64_t ss_rocm_map_turn_begin(void)
{
	uint64_t mine = 0;
	bool late = false;

	if (!(ss_rocm.quirks[0] & SS_Q_MAP_ALONE))
		return 0;
	pthread_once(&once, init);
	pthread_mutex_lock(&lock);
	/* Another thread may have begun a turn while this thread waited, and gets its full
	 * second. */
	while (current && !pthread_equal(owner, pthread_self()) && !late) {
		uint64_t seen = current;
		struct timespec end = until;

		late = pthread_cond_timedwait(&ended, &lock, &end) != 0 && current == seen;
	}
	/* A call from inside this thread's own turn is part of it. */
	if (!current || !pthread_equal(owner, pthread_self())) {
		current = mine = ++turns;
		owner = pthread_self();
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += TURN_MS / 1000;
	}
	pthread_mutex_unlock(&lock);
	return mine;
}

void ss_rocm_map_turn_end(uint64_t turn)
{
	if (!turn)
		return;
	pthread_mutex_lock(&lock);
	/* If this turn timed out, another thread may have its turn now. */
	if (current == turn) {
		current = 0;
		pthread_cond_signal(&ended);
	}
	pthread_mutex_unlock(&lock);
}

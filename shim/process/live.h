/* SPDX-License-Identifier: MIT */
/*
 * The live page of the process (SOMASHIM_LIVE) and its file of metrics (SOMASHIM_METRICS). Calls of
 * the application drive both: a call that is no hit looks at the processor's counter and at the
 * requests of readers.
 */
#ifndef SS_SHIM_LIVE_H
#define SS_SHIM_LIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/base/processor.h"
#include "live/page.h"

#define SS_LIVE_NEVER UINT64_MAX

/* When the page is due, on ss_live_clock(); SS_LIVE_NEVER: neither is shown. */
extern _Atomic uint64_t ss_live_due __attribute__((visibility("hidden")));
/* NULL: there is none. Never unmapped. */
extern struct ss_live_page *_Atomic ss_live_shown __attribute__((visibility("hidden")));

/* The processor's counter, or nanoseconds if the counter is unknown. */
static inline uint64_t ss_live_clock(void)
{
	uint64_t ticks = ss_ticks();
	struct timespec ts;

	if (__builtin_expect(ticks != 0, 1))
		return ticks;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Is there a page that readers may read? */
static inline bool ss_live_is_shown(void)
{
	return atomic_load_explicit(&ss_live_shown, memory_order_relaxed) != NULL;
}

/* Has a reader asked for something? */
static inline bool ss_live_asked(void)
{
	struct ss_live_page *p = atomic_load_explicit(&ss_live_shown, memory_order_acquire);

	/* Two loads read both kinds of requests. */
	_Static_assert(offsetof(struct ss_live_page, dump_wanted) ==
				       offsetof(struct ss_live_page, refresh_wanted) + 4 &&
			       offsetof(struct ss_live_page, dump_done) ==
				       offsetof(struct ss_live_page, refresh_done) + 4,
		       "side by side");
	return p && __atomic_load_n((uint64_t *)(void *)&p->refresh_wanted, __ATOMIC_RELAXED) !=
			    __atomic_load_n((uint64_t *)(void *)&p->refresh_done, __ATOMIC_RELAXED);
}

/* Starts both, if the options say so. Once, when the core exists. Makes no HIP call. */
void ss_live_start(void);
/* Updates both and answers requests, unless another thread is doing so. Makes HIP calls. No lock of
 * ours held. */
void ss_live_serve(void);
/* The pools took memory of a device, or the device had none left. Updates the page before it
 * returns. If another thread is updating the page, that thread shows this change, too. No lock
 * held. */
void ss_live_grew(void);
/* The last figures, and the end of the page. No HIP call. */
void ss_live_end(void);
/* In a forked child, which has no page: the page is its parent's. `alone`: it has one thread. */
void ss_live_forked(bool alone);

/* Called at the start of a call of the application. */
static inline void ss_live_tick(void)
{
	uint64_t due = atomic_load_explicit(&ss_live_due, memory_order_relaxed);

	if (due != SS_LIVE_NEVER && __builtin_expect(ss_live_clock() >= due || ss_live_asked(), 0))
		ss_live_serve();
}

#endif

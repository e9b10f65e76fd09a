/* SPDX-License-Identifier: MIT */
/*
 * The interface of the order for the layers above: positions and marks, the order of uses, and
 * fences. Streams, events and synchronizations as the application sees them are in core/core.h.
 *
 * A mark (slot, n) is a point on a timeline: all work that was enqueued on it until then. The
 * positions of one timeline only grow, also from one stream of a slot to the next:
 *
 *   0 ---- synced ---- completed ---- commanded ---- now ---->
 *            |             |              |           |
 *            |             |              |           position of the next mark
 *            |             |              covered by a command, the application's or ours
 *            |             completed by the device, by whatever means we know it
 *            completed, and the application knows it: it has synchronized, or asked
 *
 *   fenced   a recorded fence shows, or will show, completion up to here
 *   last     the final position of a stream that has ended
 *   sealed   the position of its last fence; 0: it has none
 *
 * synced <= completed, and all are below `now`. Hits and frees enqueue nothing, so on a stream that
 * joins the null stream the frees above `commanded` have not joined it yet. Nothing was enqueued
 * between `sealed` and `last`, so the last fence covers both.
 */
#ifndef SS_ORDER_ORDER_H
#define SS_ORDER_ORDER_H

#include "core/base/state.h"
#include "core/core.h"

/* ---- the part of a timeline that others may look at ---------------------- */

/* struct ss_timeline begins with this. */
struct ss_progress {
	uint32_t slot;      /* of this stream among all timelines */
	atomic_bool marked; /* a block may carry a mark of it */
	/* Has the stream a hit or a free that no later command orders? 0: no. 1: yes. Otherwise
	 * the number of a command being enqueued that will order them. */
	atomic_uint uncovered;
	_Atomic uint64_t now;                    /* position of the next mark */
	_Alignas(64) _Atomic uint64_t completed; /* highest position known to be reached */
	_Atomic uint64_t synced; /* the same, as far as the application knows it too */
};

static inline struct ss_progress *ss_progress(struct ss_timeline *tl)
{
	return (struct ss_progress *)(void *)tl;
}

static inline uint32_t ss_timeline_slot(const struct ss_timeline *tl)
{
	return ((const struct ss_progress *)(const void *)tl)->slot;
}

/* The position that a free on tl puts on its block now. */
static inline uint64_t ss_timeline_now(struct ss_timeline *tl)
{
	return atomic_load_explicit(&ss_progress(tl)->now, memory_order_acquire);
}

/* Notes that a block carries a mark of tl from now on. */
static inline void ss_timeline_marked(struct ss_timeline *tl)
{
	if (!atomic_load_explicit(&ss_progress(tl)->marked, memory_order_relaxed))
		atomic_store_explicit(&ss_progress(tl)->marked, true, memory_order_relaxed);
}

/* Notes a hit or a free on tl that no later command of the application covers yet. */
static inline void ss_uncover(struct ss_timeline *tl)
{
	if (atomic_load_explicit(&ss_progress(tl)->uncovered, memory_order_relaxed) != 1)
		atomic_store_explicit(&ss_progress(tl)->uncovered, 1, memory_order_relaxed);
}

/* Has mark n of the timeline been reached? `any`: by any knowledge; else only if the application
 * itself has synchronized with it. */
bool ss_mark_reached(struct ss_core *core, uint32_t slot, uint64_t n, bool any);
/* The position up to which tl is covered by a command, of the application or ours. */
uint64_t ss_timeline_commanded(const struct ss_timeline *tl);

/* ---- the state of this layer --------------------------------------------- */

/* Called after a synchronization that succeeded, if such synchronizations are reported. `idle`:
 * the whole device is idle. No lock held. */
typedef void ss_synchronized(struct ss_core *core, int dev, bool idle);

/* False: host memory is out. */
bool ss_order_init(struct ss_core *core, ss_synchronized *synchronized);
void ss_order_finish(struct ss_core *core);
/* Notes that the device has handed out hipMalloc memory, which any stream may use without a
 * mark. */
void ss_order_classic(struct ss_core *core, int dev);
/* Synchronizations on dev are reported while there is a reason for it. The layer above numbers
 * its reasons by bits. The first function begins or ends the reasons in `why`; the second
 * returns the present ones. */
void ss_order_report(struct ss_core *core, int dev, unsigned why, bool on);
unsigned ss_order_reported(const struct ss_core *core, int dev);
/* Ends the timelines of a device, for a reset: all their marks count as completed. */
void ss_order_reset(struct ss_core *core, int dev);
/* The number of streams that capture now. */
uint32_t ss_order_capturing(const struct ss_core *core);
/* The number of live streams of dev without the null stream. */
uint32_t ss_order_streams(struct ss_core *core, int dev);
/* The number of slots that are or were in use. */
uint32_t ss_order_slots(const struct ss_core *core);
/* Fences recorded so far, for the statistics. */
uint64_t ss_order_fences(const struct ss_core *core);
/* Queries so far that found a stream busy, for the statistics. Each may have put a marker on it. */
uint64_t ss_order_busy_queries(const struct ss_core *core);
/* Do live streams join the null stream of dev with its next command? */
bool ss_order_joiners(const struct ss_core *core, int dev);

/* ---- ALL: marks of every stream of a device (all.c) --------------------------
 *
 * Its positions grow like those of a stream. */

/* The mark of a block that is freed on dev now, and may be in use on any stream of the device,
 * or of the devices in `access` (a bit each), destroyed streams that may still run included. */
uint64_t ss_all_mark(struct ss_core *core, int dev, uint64_t access);
/* Have all these streams reached mark n? `any`: by any knowledge; else only if the application
 * has waited for the device since the mark. Asks no stream. */
bool ss_all_reached(struct ss_core *core, int dev, uint64_t n, bool any);
/* The position up to which fences, or the ends of other threads' waits, will show completion. */
uint64_t ss_all_expected(struct ss_core *core, int dev);
/* A stream that the latest marks wait for, and its position. *i, 0 at first, counts the streams
 * that were looked at. NULL: no more. A caller that takes only some of them gets others the next
 * time, since a stream that was asked is one of them again with the next mark. */
struct ss_timeline *ss_all_open(struct ss_core *core, int dev, uint32_t *i, uint64_t *n);
/* Devices, a bit each, whose memory streams of other devices have used. */
uint64_t ss_order_visited(const struct ss_core *core);
/* Notes that a command on tl uses memory of the devices in `bits`. */
void ss_order_visit(struct ss_core *core, struct ss_timeline *tl, uint64_t bits);

/* ---- vector clocks: positions of the others that a timeline has seen ------- */

struct ss_clock;
/* A copy of the clock of tl; NULL: it saw nothing, or host memory is out. */
struct ss_clock *ss_clock_of(struct ss_timeline *tl);
uint64_t ss_clock_get(const struct ss_clock *clock, uint32_t slot);
void ss_clock_free(struct ss_clock *clock);
/* May x, a null timeline, take memory that tl's stream freed, because the next command of x
 * joins that stream? If so, tl must be drained before it is destroyed. */
bool ss_null_joins(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl);

/* ---- fences --------------------------------------------------------------- */

enum ss_fence_how {
	SS_FENCE_LATE,    /* covers all that was enqueued until now */
	SS_FENCE_EXACT,   /* called inside the free of mark n itself */
	SS_FENCE_JOINING, /* inside a call that joins the null stream anyway */
	/* As JOINING, in a call that natively enters the runtime for tl, too. */
	SS_FENCE_OWN,
	SS_FENCE_LAST, /* inside the stream's destruction: nothing follows it */
};

/* Asks for a fence that covers position n of tl (UINT64_MAX: a new one), unless one is pending.
 * A fence that cannot be recorded now is remembered and served by ss_fence_serve. False: none.
 * No lock held. */
bool ss_fence_request(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
		      enum ss_fence_how how);
/* Records a fence that was requested when it could not be recorded. No lock held. */
void ss_fence_serve(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);
/* Polls the pending fences of tl (NULL: of all timelines of dev, -1: of all). True if anything
 * completed. Never waits. No lock held. */
bool ss_fences_poll(struct ss_core *core, struct ss_timeline *tl, int dev);
/* The same for at most `most` streams with pending fences, by turns: *next, 0 at first, says
 * whose turn it is. */
bool ss_fences_poll_some(struct ss_core *core, int dev, unsigned most, uint32_t *next);
/* The number of fences of tl that have not been reached. */
uint32_t ss_fence_pending(const struct ss_timeline *tl);
/* Will it be known without a question that tl has reached n: by a fence, or because another
 * thread waits for that? */
bool ss_position_expected(const struct ss_core *core, const struct ss_timeline *tl, uint64_t n);
/* The same of any position that tl has not reached yet. *waits becomes true if no fence tells. */
bool ss_fence_expected(const struct ss_core *core, const struct ss_timeline *tl, bool *waits);
/* The same of any stream of dev. */
bool ss_fences_expected(const struct ss_core *core, int dev, bool *waits);
/* Will only another thread's wait for tl show that? */
bool ss_wait_tells(const struct ss_core *core, const struct ss_timeline *tl, uint64_t n);
/* Milliseconds that a fence of dev took lately, from its record until a thread saw it reached. */
uint64_t ss_fence_ms(const struct ss_core *core, int dev);
/* Must no thread poll tl's fences now, since that would end a capture? */
bool ss_fence_off_limits(const struct ss_core *core, const struct ss_timeline *tl);
/* Makes stream x wait on the device for an exact fence that covers (tl, n). False: there is
 * none. */
bool ss_fence_gate(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl, uint64_t n);
/* Is there room for a fence of a single free on tl? Polls for reached fences now and then. */
bool ss_fence_room(struct ss_core *core, struct ss_timeline *tl);
/* A position for one free alone, so that an exact fence covers just that free. */
uint64_t ss_position_alone(struct ss_timeline *tl);

/* ---- commands that may need the host: host.c ---------------------------------- */

/* May such a command be pending, on any stream? Reads variables only. */
bool ss_host_needed(struct ss_core *core);
/* The same after asking the streams that have such commands. A stream that cannot tell now will
 * tell later. No lock held. */
bool ss_host_ask(struct ss_core *core);

/* ---- is a stream, or a device, idle? ---------------------------------------
 *
 * The name of a function says what it does. `can` reads variables. `poll` polls fences that were
 * recorded before. `ask` queries the runtime, which enqueues nothing, but after pending work the
 * runtime puts a marker of its own. `record` enqueues a command or a fence first. None of them
 * waits for work of the device, and none is called with a lock held. A yes proves that all of the
 * work in question has completed.
 *
 *  mark n reached?          ss_mark_reached           costs nothing
 *  can tl be asked?         ss_stream_can_ask         costs and proves nothing
 *  fences reached?          ss_fences_poll             a query for each fence of tl or dev
 *  a new fence reached?     ss_fence_poll_briefly     queries for about a millisecond
 *  destroyed ones running?  ss_zombies_poll           as ss_fences_poll; only a no proves something
 *  tl idle?                 ss_stream_ask             (timeline.h) a query; proves all of a stream
 *                                                     that joins no other, else up to `commanded`
 *    before its destroy?    ss_stream_ask_last        (timeline.h) a query, only if commands cover
 *                                                     all hits and frees; proves all of tl
 *    all of it?             ss_stream_record_and_ask  a command if one is missing, and a
 *                                                     query; proves all of tl
 *  dev idle?                ss_device_ask             a query per stream, until one is busy
 *    or known to be busy?   ss_device_ask_busy        (core.h) the same; proves nothing
 *    with fences, too?      ss_device_record_and_ask  (core.h) a query per stream, and a fence
 *                                                     if the query is not enough
 *  null stream and joiners? ss_null_record_and_ask    the same for these
 *    of all devices?        ss_joined_idle            a query per stream, until one is busy
 *
 * After a bypass queries prove nothing. The pools wait for an idle device by ss_device_wait_idle
 * (pool/release.h).
 */

bool ss_stream_record_and_ask(struct ss_core *core, struct ss_timeline *tl);
/* Asks the null stream of dev, only so that the runtime makes its queue. False: not now. */
bool ss_null_wake(struct ss_core *core, int dev);
/* Can tl be queried at no cost to the device, and does the answer prove all of it? */
bool ss_stream_can_ask(const struct ss_timeline *tl);
/* *busy: on entry a stream to query first, on return one that is not idle; NULL: none. */
bool ss_device_ask(struct ss_core *core, int dev, struct ss_timeline **busy);
/* *busy: the streams are not idle, but a fence is pending. */
bool ss_null_record_and_ask(struct ss_core *core, int dev, bool *busy);
/* Have the null stream and all streams that join it nothing to do, on every device? A stream that
 * cannot be asked counts as busy. */
bool ss_joined_idle(struct ss_core *core);
/* May destroyed streams of dev still run? False: all of them have completed. */
bool ss_zombies_poll(struct ss_core *core, int dev);
/* *looks counts the polls over all streams that are polled. */
bool ss_fence_poll_briefly(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
			   unsigned *looks);

/* Is the token that of a wait for a whole device? */
bool ss_token_device_wide(const struct ss_token *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One timeline, its vector clock and its fences, and the functions that the files of core/order
 * call of each other. Other folders include it only through watched.h.
 */
#ifndef SS_ORDER_TIMELINE_H
#define SS_ORDER_TIMELINE_H

#include "core/order/state.h"

/* ---- one timeline -------------------------------------------------------- */

/* The highest position of every other timeline, by slot, that a timeline is ordered after. */
struct ss_clock {
	uint32_t cap, count;
	uint64_t n[];
};

/* A recorded fence. When it is reached, `pos` and all of `clock` have completed. */
struct ss_pending {
	struct ss_fence fence;
	uint64_t pos;
	uint64_t since; /* ms: when it was recorded */
	uint64_t asked; /* ms: the last poll that found it not reached; 0: never */
	struct ss_clock *clock;
	bool exact; /* recorded inside the free that it covers, so it covers no later work */
	struct ss_pending *next;
};

/* A stream, or the slot of one that has ended. A slot is not freed before its core. */
struct ss_timeline {
	struct ss_progress progress; /* first: order.h relies on it */

	/* Written when a stream begins or ends (order lock), and read by its user: */
	struct ss_link link; /* by handle */
	atomic_int dev;      /* these three are also read without a lock. As a subscript `dev` needs
				atomic_load(): there GCC 12 makes a plain read of an atomic */
	_Atomic enum ss_timeline_kind kind;
	void *_Atomic native;
	pthread_t thread;        /* SS_TL_THREAD: only this thread can record on it */
	_Atomic uint64_t number; /* number of this stream among all; 0: it has ended */
	atomic_bool alive, capturing;
	bool joined;                /* the null stream took memory that tl freed */
	atomic_bool wanted;         /* a fence was requested when none could be recorded, */
	_Atomic uint64_t wanted_at; /* and the position that it was to cover */
	unsigned covers;            /* number of the last command being enqueued (ss_cover_begin) */
	_Atomic uint64_t visits;    /* other devices whose memory the stream uses, a bit each */
	_Atomic uint64_t commanded; /* position, as order.h draws it */
	_Atomic uint64_t host;      /* after the last command that may need the host; 0: none */
	atomic_bool host_asked;     /* a thread wanted to know when such a command completes */

	/* Written by threads that ask for its progress: */
	/* saw, version, covers; with order->lock alive, capturing */
	_Alignas(64) struct ss_spin lock;
	struct ss_clock *saw;
	_Atomic uint64_t version; /* of saw; never the same twice, in any slot */
	_Atomic uint64_t proved;  /* the version of which the whole clock is synced */

	/* Threads inside a wait for the stream, and the position that the end of a wait will
	 * show as reached */
	atomic_uint waiting;
	_Atomic uint64_t told;

	/* Fences. Guarded by order->lock; the atomic members are read without it. */
	_Atomic uint32_t pending; /* number in the list */
	atomic_uint crowded;      /* frees that got no fence of their own, for lack of room */
	atomic_uint recording;    /* threads inside a driver call that uses `native` */
	struct ss_pending *fences, **fences_tail; /* the oldest first */
	_Atomic uint64_t fenced;                  /* positions, as order.h draws them */
	uint64_t last, sealed;
	bool polling; /* a thread uses the first fences without the lock */
	bool drop;    /* ... and releases all of them when it is done */
};

static inline uint64_t ss_version(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->version, memory_order_acquire);
}

/* Reads a position and begins the next one: earlier frees are at or below it, later frees lie
 * above it. */
static inline uint64_t ss_position(struct ss_timeline *tl)
{
	return atomic_fetch_add(&tl->progress.now, 1);
}

static inline bool ss_kind_joins(enum ss_timeline_kind kind)
{
	return kind == SS_TL_BLOCKING || kind == SS_TL_THREAD;
}

/* ---- commands that cover hits and frees ---------------------------------- */

/* Must the next command of ours on tl also cover hits or frees (ss_fence_cover)? */
static inline bool ss_needs_cover(const struct ss_timeline *tl)
{
	return tl->kind != SS_TL_NONBLOCKING &&
	       atomic_load_explicit(&tl->progress.uncovered, memory_order_relaxed);
}

/* Call this before a command is enqueued on tl, and ss_cover_end() after that succeeded. The
 * number that it returns says which hits and frees the command covers: those before this call. A
 * hit or a free in between makes the number stale, so it stays uncovered. tl->lock held. */
static inline unsigned ss_cover_begin(struct ss_timeline *tl)
{
	if (atomic_load(&tl->progress.uncovered) == 1) {
		if (++tl->covers < 2) /* 0 and 1 have other meanings */
			tl->covers = 2;
		atomic_store(&tl->progress.uncovered, tl->covers);
	}
	return tl->covers;
}

/* No lock needed. */
static inline void ss_cover_end(struct ss_timeline *tl, unsigned cover)
{
	if (atomic_load_explicit(&tl->progress.uncovered, memory_order_relaxed) == cover)
		atomic_compare_exchange_strong(&tl->progress.uncovered, &cover, 0);
}

/* ---- stream_table.c: the table of streams --------------------------------- */

/* The timelines of all slots, also of those whose stream has ended. */
#define SS_TIMELINES_EACH(tl, order) \
	for (struct ss_timeline **tl##_at = (order)->slots, *tl; \
	     tl##_at < (order)->slots + atomic_load(&(order)->slot_count) && (tl = *tl##_at); \
	     tl##_at++)

/* NULL: unknown, or missed. To be sure, search again with the order lock held. */
static inline struct ss_timeline *ss_timeline_listed(struct ss_core *core, const void *native)
{
	struct ss_link *l = ss_table_find(&core->order->by_handle, native);

	return l ? ss_container_of(l, struct ss_timeline, link) : NULL;
}

/* A new stream in a slot of its own; its handle is not listed yet. NULL: host memory is out, or
 * all slots are taken. Order lock held. */
struct ss_timeline *ss_timeline_begin(struct ss_core *core, int dev, void *native,
				      enum ss_timeline_kind kind);
/* Ends a live stream: it takes no more commands, and its handle is forgotten. Order lock held. */
void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl);

/* ---- null_stream.c --------------------------------------------------------- */

/* Does the null stream of tl's device rely on joining tl with its next command? Order lock held. */
bool ss_null_relies_on(const struct ss_core *core, const struct ss_timeline *tl);
/* Before the application uses tl (may be NULL), which has just begun: waits for fences that are
 * being recorded on the null stream because nothing joined it. No lock held. */
void ss_null_quiesce(struct ss_core *core, const struct ss_timeline *tl);

/* ---- clock.c: positions that a timeline has seen -------------------------- */

/* Makes *to a copy of tl's clock. It reuses the memory of *to if that is large enough. False:
 * host memory is out. tl->lock held. */
bool ss_clock_copy(struct ss_clock **to, const struct ss_timeline *tl);
/* The slow half of ss_clock_merge(). x->lock held. */
void ss_clock_raise(struct ss_timeline *x, const struct ss_clock *from, uint32_t slot, uint64_t n);
/* Orders all later commands on x after position n of `slot` and after `from`, the clock that
 * `slot` had at n. A timeline that has seen n has seen that clock already, so a position that is
 * not new changes nothing. Takes x->lock. */
static inline void ss_clock_merge(struct ss_timeline *x, const struct ss_clock *from, uint32_t slot,
				  uint64_t n)
{
	uint64_t *known;

	ss_spin_lock(&x->lock);
	known = x->saw && slot < x->saw->count ? &x->saw->n[slot] : NULL;
	if (!known || (*known < n && from && from->count)) {
		ss_clock_raise(x, from, slot, n);
	} else if (*known < n) {
		*known = n;
		atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
	}
	ss_spin_unlock(&x->lock);
}

/* ---- clock.c: completed positions ------------------------------------- */

static inline void ss_progress_raise(struct ss_progress *p, uint64_t n, bool synced)
{
	ss_raise_to(&p->completed, n);
	if (synced)
		ss_raise_to(&p->synced, n);
}

/* Raises `completed` of tl to pos, and of every timeline in `clock` (NULL: none) to its position
 * there; raises `synced`, too, if the application knows it. The caller holds only the lock that
 * guards the clock, if any. */
void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_clock *clock, bool synced);
/* The slow half of ss_complete_seen(). */
void ss_complete_clock(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t version,
		       bool synced);
/* The same with tl's clock as it was in `version`. If the clock has changed since, only tl itself
 * is raised. Takes tl->lock. */
static inline void ss_complete_seen(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
				    uint64_t version, bool synced)
{
	if (unlikely(atomic_load_explicit(&tl->proved, memory_order_relaxed) != version))
		ss_complete_clock(core, tl, pos, version, synced);
	ss_progress_raise(&tl->progress, pos, synced);
}

/* ---- synchronizations that are reported ------------------------------------ */

/* Arguments as of ss_synchronized. No lock held. */
static inline void ss_sync_report(struct ss_core *core, int dev, bool idle)
{
	struct ss_order *o = core->order;

	if (unlikely(atomic_load_explicit(&o->dev[dev].report, memory_order_relaxed)))
		o->synchronized(core, dev, idle);
}

/* ---- fence_poll.c and fence.c ----------------------------------------------- */

/* Unlinks the fences of a timeline. Returns the list, for ss_fence_dropped(); a thread that
 * polls them now releases them itself. Order lock held. */
struct ss_pending *ss_fence_drop(struct ss_core *core, struct ss_timeline *tl);
/* Releases a list of fences. No lock held. */
void ss_fence_dropped(struct ss_core *core, struct ss_pending *list);
/* May a fence be recorded on tl, or the stream be queried? Order lock held. */
bool ss_fence_may(const struct ss_core *core, const struct ss_timeline *tl, enum ss_fence_how how);
/* The same, and no other thread waits for the stream. Every call into the runtime for a stream
 * that only serves information takes this way. True: the stream is neither destroyed nor
 * captured before ss_asking_end(). Order lock held. */
bool ss_asking_begin(const struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);
static inline void ss_asking_end(struct ss_timeline *tl)
{
	atomic_fetch_sub(&tl->recording, 1);
}
/* Enqueues a command on tl if no command covers its hits or frees. No lock held. */
void ss_fence_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);
/* Waits until no thread is inside a driver call that uses tl's handle. The caller has made sure
 * that no such call begins. No lock held. */
void ss_fence_quiesce(struct ss_timeline *tl);

/* ---- waiting.c ------------------------------------------------------------------ */

/* Begins a wait that ss_sync_end() ends. tl: as of ss_waiting_begin(); the end of the wait will
 * show that tl has reached pos. */
struct ss_waiting ss_waiting_begin_at(struct ss_core *core, struct ss_timeline *tl, uint64_t pos);
/* The first half of ss_waiting_end(): the runtime's call has returned. Returns the stream for
 * which it waited; NULL: no single one. */
struct ss_timeline *ss_waiting_over(struct ss_core *core, struct ss_waiting *w);
/* The second half (fence.c): records a fence that was requested during the wait, unless the wait
 * has shown as much. */
void ss_waiting_serve(struct ss_core *core, struct ss_timeline *tl);

/* ---- synchronize.c: the positions of a device's streams ------------------------ */

enum ss_who {
	SS_WHO_ALL,    /* every live stream */
	SS_WHO_APART,  /* the same; but no list if one of them joins the null stream */
	SS_WHO_JOINED, /* the null stream and the streams that join it */
	SS_WHO_EVER,   /* every stream, destroyed ones included: for a device-wide wait */
};

struct ss_positions {
	uint64_t wide; /* position of ALL before the device-wide wait; 0: no such wait */
	uint32_t count;
	uint32_t others; /* all but the null stream, which is the last */
	bool whole;      /* no live stream was left out */
	struct ss_seen {
		struct ss_timeline *tl;
		uint64_t pos, version;
		unsigned cover;
		bool idle; /* for the caller's use */
	} at[];
};

/* The present position of each stream. The caller frees the list with free(). NULL: there is no
 * list, or host memory is out. No lock held. */
struct ss_positions *ss_positions_take(struct ss_core *core, int dev, enum ss_who who);
/* ss_stream_query_begin() with a fence of another kind than the application's own query allows. */
struct ss_token ss_query_begin(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);

/* all.c: for the end of the core. */
void ss_all_finish(struct ss_order *o);

/* ---- watched calls ------------------------------------------------------------ */

enum ss_token_kind {
	SS_TOKEN_NONE,
	SS_TOKEN_RECORD,
	SS_TOKEN_WAIT,
	SS_TOKEN_EVENT,
	SS_TOKEN_STREAM,
	SS_TOKEN_MANY,
};

/* event.c: the host has waited for generation `gen` of an event. Completes all positions that
 * its clock covers. Returns the timeline that the event was recorded on; NULL: it had no clock. */
struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen);
/* event.c: for the end of the core. */
void ss_order_events_finish(struct ss_core *core);

/* host.c: the application has waited for all of tl when tl->host was `pos`. */
void ss_host_synced(struct ss_timeline *tl, uint64_t pos);

/* ---- idle.c and stream_end.c ------------------------------------------- */

/* Queries the runtime whether tl is idle, and completes all that the answer proves. Unlike
 * ss_stream_record_and_ask() it enqueues no command, so frees that the stream has not joined
 * stay pending. */
enum ss_status ss_stream_ask(struct ss_core *core, struct ss_timeline *tl);
/* Is tl, which is about to be destroyed, idle already? The stream is queried only if a command
 * covers all hits and frees on it. *asked: the driver's answer, or SS_ERR_NOT_READY. No lock
 * held. */
bool ss_stream_ask_last(struct ss_core *core, struct ss_timeline *tl, enum ss_status *asked);
/* May memory carry a mark of tl, or be in use on tl without a mark? */
bool ss_stream_may_be_marked(const struct ss_core *core, const struct ss_timeline *tl);

#endif

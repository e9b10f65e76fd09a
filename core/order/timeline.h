/* SPDX-License-Identifier: MIT */
/* What is ordered after what: timelines, fences, epochs, rows of positions. Part of
 * core/internal.h. */
#ifndef SS_CORE_ORDER_H
#define SS_CORE_ORDER_H

#include <stdatomic.h>

#include "core/core.h"
#include "core/lock.h"
#include "core/mutants.h"
#include "core/table.h"

struct ss_block;

/* ---- order: timeline.c, event.c, record.c, wait.c, fence.c ------------- */

enum ss_fence_how {
	SS_FENCE_LATE,    /* stands behind whatever was enqueued until now */
	SS_FENCE_EXACT,   /* called inside the free of mark n itself */
	SS_FENCE_JOINING, /* inside a call that joins the null stream anyway */
	SS_FENCE_LAST,    /* inside the stream's destruction: nothing comes behind it */
};

/* What a timeline saw of every other, by slot. */
struct ss_row {
	uint32_t cap, count;
	uint64_t n[];
};

/* A fence on its way: when it is reached, `pos` and all of `row` completed. */
struct ss_pending {
	struct ss_fence fence;
	uint64_t pos;
	struct ss_row *row;
	bool exact; /* recorded in the very free it stands for: covers nothing later */
	struct ss_pending *next;
};

struct ss_timeline {
	/* Read and written by the stream's user: */
	struct ss_link link;            /* by handle */
	struct ss_core *core;
	uint32_t slot;
	int dev;
	enum ss_timeline_kind kind;
	void *native;
	pthread_t thread;               /* SS_TL_THREAD: the only one that may record */
	_Atomic uint64_t life;          /* of this stream in the slot; 0: it has ended */
	atomic_bool alive, capturing;
	bool seen;
	bool joined;                    /* the null stream counts on joining it */
	atomic_bool marked;             /* something may carry a mark of it */
	_Atomic uint64_t visits;        /* devices of others whose memory it works with */
	atomic_bool wanted;             /* a fence that could not be recorded then */
	/* 0: a command stands behind every hit and free; 1: not; else the number of
	 * a command under way that will. */
	atomic_uint uncovered;
	unsigned covers;
	_Atomic uint64_t commanded;     /* a command stands behind this position */
	_Atomic uint64_t now;           /* position of the next mark */
	/* Written by whoever asks how far it is: */
	_Alignas(64) _Atomic uint64_t completed; /* reached, however we know */
	_Atomic uint64_t synced;        /* reached, and the application knows too */
	/* The last two synchronizations of it: where it was by then (ss_freed_by) */
	struct { _Atomic uint64_t pos, ms; } noted[2];
	_Atomic uint64_t noted_at;      /* ticks */
	struct ss_spin lock;            /* saw, version, covers; alive, capturing with order */
	struct ss_row *saw;
	_Atomic uint64_t version;       /* of saw; grows in a slot for ever */
	_Atomic uint64_t proved;        /* the version of which all is synced */
	_Atomic uint32_t pending;       /* how many fences */
	atomic_uint crowded;            /* frees that found too many for one of their own */
	struct ss_pending *fences, **fences_tail;
	uint64_t fenced;                /* highest position with a fence behind it */
	uint64_t last;                  /* the final position, once retired */
	uint64_t sealed;                /* of its SS_FENCE_LAST; 0: there is none */
	atomic_uint recording;          /* threads inside the driver's fence_record for it */
	bool polling, drop;             /* a thread is asking the driver; drop after */
};

#define SS_FREERS 16 /* threads told apart by what they freed */

/* Frees that share one set of marks: everything a device's timelines had
 * enqueued. Refcounted by the blocks that carry it. */
struct ss_epoch {
	struct ss_epoch *prev, *next;   /* of the pool */
	struct ss_block *blocks;
	uint64_t bytes;
	uint64_t since;                 /* ms */
	uint64_t by[SS_FREERS];         /* of bytes, as they were freed */
	uint64_t wide;                  /* needs a device-wide wait (0 = no) */
	int dev;
	uint32_t count;
	struct { uint32_t slot; uint64_t n; } mark[];
};

void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl); /* order lock held */
static inline void ss_uncover(struct ss_timeline *tl)
{
	if (atomic_load_explicit(&tl->uncovered, memory_order_relaxed) != 1)
		atomic_store_explicit(&tl->uncovered, 1, memory_order_relaxed);
}
/* Round a command on tl: what is hit or freed meanwhile stays uncovered, and so
 * does everything if the command fails. Commands between whose beginnings there was neither a
 * hit nor a free have one number: whichever is enqueued first, it covers as much. tl->lock
 * held. */
static inline unsigned ss_cover_begin(struct ss_timeline *tl)
{
	if (atomic_load(&tl->uncovered) == 1) {
		tl->covers = tl->covers < 2 ? 2 : tl->covers + 1;
		atomic_store(&tl->uncovered, tl->covers);
	}
	return tl->covers;
}
/* No lock needed. */
static inline void ss_cover_end(struct ss_timeline *tl, unsigned cover)
{
	if (atomic_load_explicit(&tl->uncovered, memory_order_relaxed) == cover)
		atomic_compare_exchange_strong(&tl->uncovered, &cover, 0);
}
void ss_timeline_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);
static inline uint64_t ss_version(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->version, memory_order_acquire);
}
void ss_row_put(struct ss_row *row);
/* A copy of the row of `tl`; NULL: it saw nothing (or host memory is out). */
struct ss_row *ss_row_of(struct ss_core *core, struct ss_timeline *tl);
/* Makes *to the same, in the memory it has where that is enough. False: host memory
 * is out. tl->lock held. */
bool ss_row_copy(struct ss_row **to, const struct ss_timeline *tl);
static inline uint64_t ss_row_get(const struct ss_row *row, uint32_t slot)
{
	return row && slot < row->count ? row->n[slot] : 0;
}
struct ss_timeline *ss_slot(struct ss_core *core, uint32_t slot);
/* Raises completed (and synced) of tl to pos and of everything in row. */
void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_row *row, bool synced);
/* The program has synchronized with tl at pos, at `now` ms. */
void ss_note(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t now);
/* When was what carries mark n of tl free, at the latest? */
uint64_t ss_freed_by(const struct ss_timeline *tl, uint64_t n, uint64_t now);
/* The same with what tl had seen by then: if that has changed since, it only counts
 * for tl itself. */
void ss_complete_seen(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		      uint64_t version, bool synced);
void ss_event_finish_all(struct ss_core *core);
bool ss_token_device_wide(const struct ss_token *t);

enum ss_token_kind {
	SS_TOKEN_NONE,
	SS_TOKEN_RECORD,
	SS_TOKEN_WAIT,
	SS_TOKEN_EVENT,
	SS_TOKEN_STREAM,
	SS_TOKEN_MANY,
};

struct ss_event;
/* Whose stream it was recorded on, and where; NULL: it had no clock. */
struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen,
				  uint64_t *pos);

/* Waits, with no lock held, until no thread is recording on tl; the caller has
 * made sure that none begins. */
void ss_fence_quiesce(struct ss_timeline *tl);
/* May a marker be recorded on tl, or the stream be asked? Order lock held. */
bool ss_fence_may(const struct ss_timeline *tl, enum ss_fence_how how);
/* Must nobody ask for tl's fences now? For certain with the order lock held. */
bool ss_fence_off_limits(const struct ss_core *core, const struct ss_timeline *tl);
/* Waits until nobody asks for fences of its own, or of a stream that is gone, where that would
 * end the capture which is about to begin on it. */
void ss_fence_unasked(struct ss_core *core, const struct ss_timeline *tl);
/* Asks for a fence that covers position n of tl, unless one is on its way; a
 * fence that cannot be recorded now is remembered and served by ss_fence_serve.
 * No lock held. */
bool ss_fence_request(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
		      enum ss_fence_how how);
/* Records a fence that somebody asked for while it was not possible: on the null
 * stream in a call that joins it, on a per-thread stream by its own thread. */
static inline void ss_fence_serve(struct ss_core *core, struct ss_timeline *tl,
				  enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->wanted, memory_order_relaxed))
		ss_fence_request(core, tl, UINT64_MAX, how);
}
/* Polls outstanding fences of tl (NULL: of all timelines of dev). True if
 * anything completed. No lock held. */
bool ss_fence_poll(struct ss_core *core, struct ss_timeline *tl, int dev);
/* Drops the fences of a timeline that is gone: a list for ss_fence_dropped. Order lock held. */
struct ss_pending *ss_fence_drop(struct ss_core *core, struct ss_timeline *tl);
/* No lock held. */
void ss_fence_dropped(struct ss_core *core, struct ss_pending *list);
/* Was the fence that has just been recorded at n reached? Asked a few times, of
 * which *looks keeps count over all streams that are asked. */
bool ss_fence_reached(struct ss_core *core, struct ss_timeline *tl, uint64_t n, unsigned *looks);
/* Is tl at its end, as the runtime knows without a fence? Then what was freed on it has
 * completed. No lock held. */
bool ss_stream_at_end(struct ss_core *core, struct ss_timeline *tl);
/* The same, but no command of ours makes up for what it has not joined. */
enum ss_status ss_stream_ask(struct ss_core *core, struct ss_timeline *tl);
/* Is every stream of dev? Asks nothing of the device, and the null stream only when no
 * other has anything left to join. False: *busy is one that is not, or NULL; on entry one to
 * ask first. */
bool ss_device_at_end(struct ss_core *core, int dev, struct ss_timeline **busy);
/* The same for all of them: is any known to have something left to do? */
bool ss_device_busy(struct ss_core *core, int dev);
/* A fresh position: what was freed before is at or below it, what is freed from
 * now on above it. */
static inline uint64_t ss_position(struct ss_timeline *tl)
{
	return atomic_fetch_add(&tl->now, 1);
}
/* Everything enqueued on x from now on is ordered after position n of `slot` and after
 * `from`. Rows are closed under this, so a known position brings nothing. */
void ss_row_raise(struct ss_timeline *x, const struct ss_row *from, uint32_t slot, uint64_t n);
static inline void ss_row_merge_into(struct ss_timeline *x, const struct ss_row *from,
				     uint32_t slot, uint64_t n)
{
	uint64_t *known;

	ss_spin_lock(&x->lock);
	known = x->saw && slot < x->saw->count ? &x->saw->n[slot] : NULL;
	if (!known || (*known < n && from && from->count)) {
		ss_row_raise(x, from, slot, n);
	} else if (*known < n) {
		*known = n;
		atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
	}
	ss_spin_unlock(&x->lock);
}
/* Makes stream X wait on the device for an exact fence that covers (tl, n).
 * False: there is none. No lock held. */
bool ss_fence_gate(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl, uint64_t n);

#endif

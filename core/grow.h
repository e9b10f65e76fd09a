/* SPDX-License-Identifier: MIT */
/*
 * How a pool grows and gives back, and what decides about it: whether its demand is known
 * (steady.c), what a tight fit may cost (thrift.c), what its peak looks like (peak.c), and which
 * segments fit (fit.c). Memory comes by slab.c, or below it by vmm.c.
 */
#ifndef SS_CORE_GROW_H
#define SS_CORE_GROW_H

#include "core/internal.h"

/* Did the driver not want to, for a reason of its own? Want of memory is none, and what a
 * capture forbids, or a device that is gone, the program is to hear of as that. */
static inline bool ss_refused(enum ss_status s)
{
	return s != SS_OK && s != SS_ERR_NOMEM && s != SS_ERR_CAPTURE && s != SS_ERR_NO_DEVICE;
}

/* fit.c. Pool lock held. Why the pool should rather grow than cut up an idle segment. */
struct ss_fit {
	uint64_t instead; /* the device is too small for it in the end: how large a segment would
			   * hold as much; or 0 */
	bool beside;      /* be it for a little more than its peak */
};

/* Would it be wasteful to cut `size` bytes off b, rather than to grow by them? While the
 * pool is growing, what calls were saved up may go into that. */
bool ss_fit_wasteful(struct ss_pool *pool, const struct ss_block *b, uint64_t size, bool growing,
		     struct ss_fit *fit);
/* How large the pool may become for that, if nothing goes back. */
uint64_t ss_fit_ceiling(struct ss_pool *pool, uint64_t size, const struct ss_fit *fit);
/* A segment for `size` bytes, of `instead` at most (0: as large as seems good). */
uint64_t ss_fit_size(const struct ss_pool *pool, uint64_t size, uint64_t instead);

/* slab.c, and vmm.c below it. No lock held. ss_grow adds memory so that x (NULL:
 * nobody in particular) finds a run of `size` at `align`, in a segment of `instead` at most
 * (0: as large as seems good); with `give_back`, idle memory may move or go back for it. */
enum ss_status ss_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
		       uint64_t align, uint64_t instead, bool give_back);
/* Can the pool grow for `size` without a new peak, but for what fit->beside allows? */
bool ss_slab_room(struct ss_pool *pool, uint64_t size, const struct ss_fit *fit, bool give_back);
/* Before the device is asked for `size` bytes. False: a cap forbids it. Given again
 * when the device gave none, or has them back. */
bool ss_cap_take(struct ss_pool *pool, uint64_t size);
void ss_cap_give(struct ss_pool *pool, uint64_t size);
void ss_account_reserved(struct ss_pool *pool, uint64_t size);
enum ss_status ss_vmm_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap);
uint64_t ss_vmm_release(struct ss_pool *pool, uint64_t target, uint64_t older_than);
/* The chunks behind b are in use. Pool lock held. */
void ss_vmm_touch(struct ss_pool *pool, const struct ss_block *b);
/* What is mapped becomes accessible to pool->peers. Claimed. */
enum ss_status ss_vmm_open(struct ss_pool *pool);
void ss_vmm_drop(struct ss_pool *pool, bool give_back);
/* The process ends: unmaps everything, and stays claimed, so that nobody maps any more. The
 * tables stay for threads that still run. */
void ss_vmm_leave(struct ss_pool *pool, void *arg);
/* Gives idle memory back until `target` bytes are reserved, but only what has
 * been idle since `older_than` ms. Returns the bytes given back. */
uint64_t ss_release(struct ss_pool *pool, uint64_t target, uint64_t older_than);

/* Of two idle segments, does that of `size` bytes go before that of `other`, if `excess` are to
 * go? The smallest that suffices, or else the largest: fewest calls. */
static inline bool ss_goes_first(uint64_t size, uint64_t other, uint64_t excess)
{
	return size > excess ? other < excess || size < other : other < excess && size > other;
}

enum ss_status ss_slab_add(struct ss_pool *pool, uint64_t size);
/* The same for a segment that a block is to have for itself; what is idle makes room, where
 * nobody has to wait for that. */
enum ss_status ss_slab_whole(struct ss_pool *pool, uint64_t size);

/* steady.c. Pool lock held. Is the demand of q's stream known, which asks for `size`
 * bytes now? */
enum ss_demand_state ss_steady(struct ss_pool *pool, struct ss_queue *q, uint64_t size);
/* Memory went back: what comes again for it is to be placed as tightly as it was. */
void ss_unsteady(struct ss_pool *pool);
/* The most bytes that q's stream had in use at once, as far as a slow path saw its fewest. */
uint64_t ss_peak_of(struct ss_queue *q);

/* turns.c. Pool lock held. Do the pool's blocks go in turn? */
bool ss_turns(struct ss_pool *pool);
/* `size` bytes are asked for, by no hit; and this is the block. */
void ss_turns_asked(struct ss_pool *pool, uint64_t size);
void ss_turns_got(struct ss_pool *pool, const struct ss_block *b);
/* Of all ranges that are long enough, b among them, the one with which the pool will lack least
 * (b, if that cannot be said). NULL: the pool should rather grow, for *fit (NULL: it is not to). */
struct ss_block *ss_turns_best(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
			       uint64_t align, struct ss_block *b, struct ss_fit *fit);
/* On virtual memory: the block that came last, of those that go in turn (NULL: none do), and of
 * all ranges that are long enough the next one behind it (b, if there is none). */
struct ss_block *ss_turns_last(struct ss_pool *pool);
struct ss_block *ss_turns_next(struct ss_pool *pool, const struct ss_queue *q, uint64_t size,
			       uint64_t align, struct ss_block *b);

/* thrift.c. Pool lock held. Counts an allocation by q that was no hit, and the hits
 * before it. */
void ss_thrift_count(struct ss_pool *pool, struct ss_queue *q);
/* Calls of the driver that may be spent on a tighter fit; below 0: a debt. */
int64_t ss_thrift(struct ss_pool *pool);
/* Are chunks moved more often than a hundredth of the allocations on top of that? */
bool ss_thrift_over(struct ss_pool *pool);
/* May an allocation that something would serve be a miss for a tighter fit? */
bool ss_thrift_misses(const struct ss_pool *pool);
/* And how many may? Below 0: so many too many were. */
int64_t ss_thrift_misses_left(const struct ss_pool *pool);
/* Is the pool one that goes on growing, in steps that are many for the allocations it serves? */
bool ss_thrift_often(const struct ss_pool *pool);
/* Has it missed too seldom to tell how it goes on? */
bool ss_thrift_young(const struct ss_pool *pool);
/* Are its misses more than 90 % hits allow, and not only because it is young? */
bool ss_thrift_many(const struct ss_pool *pool);
/* How much to grow by, in bytes, where less is missing: a `part`th of a pool that goes on
 * growing, 0 for others. */
uint64_t ss_thrift_ahead(const struct ss_pool *pool, unsigned part);

/* peak.c. Pool lock held: `size` bytes are asked for. Notes what is live if that is near the
 * most that ever was. */
void ss_peak_note(struct ss_pool *pool, uint64_t size);
/* Would it hurt at the next peak if a block of `size` lay in a segment of `segment` bytes?
 * Fewer of them are live than were then, and in a pool that fitted they lay better. */
bool ss_peak_lacks(struct ss_pool *pool, uint64_t size, uint64_t segment);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Leases: what only one stream uses of a pool whose demand is known, it divides by itself.
 *
 * A run of neighbouring blocks - live ones that the stream was given, what it freed,
 * what is clean - leaves the segment's list and hangs from one block in its place
 * (SS_BLOCK_LEASED). From then on it is split, merged and searched under the queue's
 * lock alone: an allocation that no bin can serve takes what fits, and what the bins
 * hold goes back as far as that needs. So streams of a steady pool share nothing, not
 * even where sizes change all the time. Every mark in a run is one of the lessee's own
 * timeline (0: clean when it came), so what is merged carries the later of two.
 *
 * Whoever needs more than that (growth, giving back, an address inside a block) takes the
 * pool's lock and ends the lease; then the run is part of its segment again, as if nothing had
 * been. Another stream that needs memory is given one block of it, which leaves the run or
 * becomes one by itself in the other's lease; after a good many of those the lease is made
 * anew. A block of the run that another stream freed waits in that stream's bins, and ends
 * the lease when it is placed.
 *
 * Here they are made, torn and ended; divide.c uses them.
 *
 * Locks: pool->lock, then queue->lock; the latter alone to use one.
 */
#include "core/grow.h"
#include "core/hit.h"

#define WAIT_PART 8 /* of its blocks: the most misses until the next, after ones that did not pay */

struct ss_queue *ss_lessee_queue(struct ss_pool *pool, uint32_t lessee)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);

	return atomic_load_explicit(&t->q[lessee - 1], memory_order_acquire);
}

/* ---- making it: pool->lock held ------------------------------------------- */

/* What q's stream may have for itself: with q->lock held it stays what it is. */
static bool is_mine(const struct ss_block *b, uint32_t slot)
{
	switch (atomic_load_explicit(&b->state, memory_order_acquire)) {
	case SS_BLOCK_LIVE:
		/* (Should it have been freed to this very stream meanwhile, it is on its way
		 * into the bins, and belongs to the run just as well.) */
		return __atomic_load_n(&b->slot, __ATOMIC_RELAXED) == slot && !b->exported;
	case SS_BLOCK_FREE:
		return b->slot == slot || (b->slot == SS_SLOT_CLEAN) ||
		       (SS_MUTANT_IS(50) && b->slot != SS_SLOT_EPOCH);
	case SS_BLOCK_QUEUED:
		return ss_lessee(b) == slot + 1; /* in its bins */
	default:
		return false;
	}
}

static void name_list(struct ss_block *b, uint32_t lessee)
{
	for (; b; b = b->left)
		if (!ss_lessee(b))
			ss_set_lessee(b, lessee);
}

/* The free range b leaves the pool's heaps for q's lease, under a descriptor that shares
 * no cache line with what other streams write. */
static struct ss_block *adopt(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b)
{
	ss_unplace(pool, b);
	if (b->slot == SS_SLOT_CLEAN) {
		if (b->n > q->lease->clean)
			q->lease->clean = b->n;
		b->n = 0;
	}
	b->slot = q->tl->slot;
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (pool->queue_count > 1)
		b = ss_block_rehome(pool->core, &q->spares, &pool->spares, b);
	ss_set_lessee(b, q->tl->slot + 1);
	return b;
}

/* The run from `first` to `last` is q's, unless host memory is out. */
static void lease_run(struct ss_pool *pool, struct ss_queue *q, struct ss_block *first,
		      struct ss_block *last)
{
	struct ss_block *run = ss_block_wrap(pool->core, &pool->spares, first, last), *b;

	if (!run) {
		for (b = first; b != last->next; b = b->next)
			ss_set_lessee(b, 0);
		return;
	}
	if (pool->vmm)
		ss_vmm_touch(pool, run);
	for (b = first; b; b = b->next)
		ss_set_lessee(b, q->tl->slot + 1);
	run->right = q->lease->runs;
	q->lease->runs = run;
}

static void each_lease(struct ss_pool *pool, void (*each)(struct ss_pool *, struct ss_queue *))
{
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q))
		if (ss_leases(q))
			each(pool, q);
}

void ss_lease_end_all(struct ss_pool *pool)
{
	each_lease(pool, ss_lease_end);
}

static void freeze(struct ss_pool *pool, struct ss_queue *q)
{
	ss_bias_visit(&q->lock);
}

static void thaw(struct ss_pool *pool, struct ss_queue *q)
{
	ss_bias_unlock(&q->lock);
}

/* Leases begin and end with the pool's lock held, so the same are found twice. Nobody
 * else takes two of these locks. */
void ss_lease_freeze(struct ss_pool *pool, bool on)
{
	each_lease(pool, on ? freeze : thaw);
}

void ss_lease_make(struct ss_pool *pool, struct ss_queue *q, struct ss_block *given, bool merges)
{
	struct ss_block *b, *next, *list = NULL;
	uint32_t slot = q->tl->slot;
	struct ss_lease *l = q->lease;

	if (l && l->runs)
		return;
	if (!l && !(l = ss_host_alloc(pool->core, sizeof(*l))))
		return;
	ss_bias_visit(&q->lock);
	q->lease = l;
	l->taken = l->blocks = l->clean = l->torn = 0;
	l->merges = merges;
	l->assigned = UINT64_MAX;
	for (unsigned i = 0; i < SS_BINS; i++)
		name_list(q->bin[i].head, slot + 1);
	name_list(q->overflow, slot + 1);
	ss_set_lessee(given, slot + 1);
	for (struct ss_segment *seg = pool->segments; seg; seg = seg->next)
		for (b = seg->first; b; b = next) {
			struct ss_block *first = NULL, *last = NULL;

			for (; b && is_mine(b, slot); b = b->next) {
				if (ss_is_state(b, SS_BLOCK_FREE)) {
					b = adopt(pool, q, b);
					b->left = list;
					list = b;
				}
				first = first ? first : b;
				last = b;
				l->blocks++;
			}
			next = b ? b->next : NULL;
			if (first)
				lease_run(pool, q, first, last);
		}
	while ((b = list)) {
		list = b->left;
		if (ss_lessee(b))
			ss_lease_put(q, b);
		else
			ss_place(pool, b);
	}
	ss_bias_unlock(&q->lock);
}

/* ---- one block of it: pool->lock held ------------------------------------ */

/* Is it long enough, and completed? */
static enum ss_offer serves(struct ss_pool *pool, const struct ss_block *b, uint64_t size,
			    uint64_t align)
{
	if (!b || ss_round(b->addr, align) - b->addr + size > b->size)
		return SS_OFFER_NONE;
	return !b->n || ss_mark_done(pool, b->slot, b->n) || SS_MUTANT_IS(52) ? SS_OFFER_NOW :
										SS_OFFER_LATER;
}

/* Can q have so much to give? Looked at without its lock, which costs its owner a visit: what
 * it had a moment ago will do. (The thread sanitizer cannot know.) */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread, noinline))
#endif
static bool may_have(const struct ss_queue *q, uint64_t size)
{
	const volatile uint64_t *binned = &q->bytes, *merged = &q->lease->heap.bytes;

	return *binned + *merged >= size;
}

/* The run of l that begins with b, which lies in one. NULL: host memory is out. */
static struct ss_block *run_from(struct ss_pool *pool, struct ss_lease *l, struct ss_block *b)
{
	struct ss_block *run = l->runs, *rest;

	while (b->addr - run->addr >= run->size)
		run = run->right;
	if (run->left == b)
		return run;
	rest = ss_block_wrap_rest(pool->core, &pool->spares, run, b);
	if (rest) {
		rest->right = l->runs;
		l->runs = rest;
	}
	return rest;
}

/* `size` bytes at `align` of the free range b leave the lease. NULL: host memory is out. */
static struct ss_block *take_out(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b,
				 uint64_t size, uint64_t align)
{
	struct ss_lease *l = q->lease;
	struct ss_block *run, **at;

	ss_heap_remove(&l->heap, b);
	b = ss_lease_cut(q, b, ss_round(b->addr, align), size);
	if (!b)
		return NULL;
	if ((b->next && !run_from(pool, l, b->next)) || !(run = run_from(pool, l, b))) {
		ss_lease_put(q, b);
		return NULL;
	}
	for (at = &l->runs; *at != run; at = &(*at)->right)
		;
	*at = run->right;
	ss_block_unwrap(pool->core, &pool->spares, run, b);
	ss_set_lessee(b, 0);
	l->torn++;
	return b;
}

enum ss_offer ss_lease_give(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
			    uint64_t align, struct ss_block **out)
{
	struct ss_block *b;
	enum ss_offer best, next;
	unsigned bin = 0;

	*out = NULL;
	if (!ss_leases(q) || !may_have(q, size))
		return SS_OFFER_NONE;
	ss_bias_visit(&q->lock);
	b = ss_heap_best_part(&q->lease->heap, size, align);
	best = serves(pool, b, size, align);
	if (best != SS_OFFER_NOW) {
		b = NULL;
		for (unsigned i = 0; i < SS_BINS; i++) {
			next = q->bin[i].size < size ? SS_OFFER_NONE :
			       serves(pool, q->bin[i].head, size, align);
			if (next > best || (next == SS_OFFER_NOW && q->bin[i].size < q->bin[bin].size))
				bin = i;
			best = next > best ? next : best;
		}
		if (best == SS_OFFER_NOW && ss_lease_empty(q, bin, false))
			b = ss_heap_best_part(&q->lease->heap, size, align);
		/* (Neighbours may have been freed later.) */
		if (serves(pool, b, size, align) != SS_OFFER_NOW)
			b = NULL;
	}
	if (b && !ss_lease_keeps(b, size))
		*out = take_out(pool, q, b, size, align);
	ss_bias_unlock(&q->lock);
	return best;
}

void ss_lease_add(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b)
{
	ss_bias_visit(&q->lock);
	ss_set_lessee(b, q->tl->slot + 1);
	lease_run(pool, q, b, b);
	q->lease->torn++;
	ss_bias_unlock(&q->lock);
}

/* ---- ending it ------------------------------------------------------------ */

struct ss_block *ss_lease_undo(struct ss_pool *pool, struct ss_queue *q)
{
	struct ss_lease *l = q->lease;
	struct ss_block *run, *b, *last = NULL, *list = NULL;
	uint64_t wait;

	if (!ss_leases(q))
		return NULL;
	while ((run = l->runs)) {
		l->runs = run->right;
		for (b = run->left; b; last = b, b = b->next) {
			ss_set_lessee(b, 0);
			if (!ss_is_state(b, SS_BLOCK_FREE))
				continue;
			ss_set_state(b, SS_BLOCK_QUEUED);
			if (!b->n) {
				b->slot = SS_SLOT_CLEAN;
				b->n = l->clean;
			}
			b->left = list;
			list = b;
		}
		ss_block_unwrap(pool->core, &pool->spares, run, last);
	}
	memset(&l->heap, 0, sizeof(l->heap));
	/* Did it serve more than it cost to make? */
	wait = l->taken * 8 >= l->blocks ? q->lease_wait / 2 : q->lease_wait * 2 + 4;
	q->lease_wait = wait < l->blocks / WAIT_PART ? wait : (uint32_t)(l->blocks / WAIT_PART);
	q->lease_in = q->lease_wait;
	return list;
}

void ss_lease_end(struct ss_pool *pool, struct ss_queue *q)
{
	struct ss_block *list;

	if (!ss_leases(q))
		return;
	ss_bias_visit(&q->lock);
	list = ss_lease_undo(pool, q);
	ss_bias_unlock(&q->lock);
	ss_place_all(pool, list);
}

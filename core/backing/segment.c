/* SPDX-License-Identifier: MIT */
/*
 * Whole segments: how a pool on hip or hsa backing grows and gives back.
 *
 * A segment is taken from the driver in one call and goes back in one call, when
 * every byte of it is free and completed. Its usable part starts and ends on
 * 2 MiB frames, so that the address map has one owner per frame; the runtimes
 * align segments of this size to a frame anyway.
 *
 * Locks: pool->lock, dropped for the driver.
 */
#include "core/grow.h"

#define KEPT_PART 4 /* of the peak: kept above it for a threshold, whatever fits */

/* Is seg wholly clean? Pool lock held. */
static bool is_idle(const struct ss_segment *seg)
{
	const struct ss_block *b = seg->first;

	return b->size == seg->size && !seg->opening &&
	       __atomic_load_n(&b->slot, __ATOMIC_RELAXED) == SS_SLOT_CLEAN &&
	       atomic_load_explicit(&b->state, memory_order_relaxed) == SS_BLOCK_FREE;
}

/* What must stay reserved when `want` bytes come for others. Of what a threshold keeps no more
 * goes than comes. But segments do not add up, and each exchange would add the rest to the
 * pool: one that is so much larger than what was ever in use may lose it. */
static uint64_t floor_of(struct ss_pool *pool, uint64_t want)
{
	uint64_t most = ss_pool_used_high(pool), reserved = atomic_load(&pool->reserved);
	uint64_t keep = 0;

	most += most / KEPT_PART;
	if (most > reserved)
		most = reserved;
	if (atomic_load(&pool->threshold_set))
		keep = atomic_load(&pool->threshold);
	if (keep > most)
		keep = most;
	return keep > want ? keep - want : 0;
}

/* Bytes that may go for `want` others. Pool lock held. */
static uint64_t giveable(struct ss_pool *pool, uint64_t want)
{
	uint64_t reserved = atomic_load(&pool->reserved), floor = floor_of(pool, want), bytes = 0;

	if (!floor)
		return pool->idle_bytes;
	for (const struct ss_segment *seg = pool->segments; seg; seg = seg->next)
		if (is_idle(seg) && seg->native_size + floor <= reserved)
			bytes += seg->native_size;
	return bytes;
}

bool ss_slab_room(struct ss_pool *pool, uint64_t size, const struct ss_fit *fit, bool give_back)
{
	uint64_t want, idle;
	bool room;

	if (pool->backing == SS_BACKING_VMM)
		return give_back;
	pthread_mutex_lock(&pool->lock);
	want = ss_fit_size(pool, size, fit->instead);
	idle = give_back ? giveable(pool, want) : 0;
	room = atomic_load(&pool->reserved) + want <= ss_fit_ceiling(pool, size, fit) + idle;
	pthread_mutex_unlock(&pool->lock);
	return room;
}

bool ss_cap_take(struct ss_pool *pool, uint64_t size)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];

	/* Memory comes in frames; that no more than max_bytes of it is handed out is
	 * seen to where it is handed out. */
	if (pool->max_bytes &&
	    atomic_load(&pool->reserved) + size > ss_round(pool->max_bytes, SS_FRAME))
		return false;
	/* First taken, then asked for: two threads at once stay below it, too. */
	if (atomic_fetch_add(&d->taken, size) + size <= d->limit || !d->limit)
		return true;
	ss_cap_give(pool, size);
	return false;
}

void ss_cap_give(struct ss_pool *pool, uint64_t size)
{
	atomic_fetch_sub(&pool->core->dev[pool->dev].taken, size);
}

void ss_account_reserved(struct ss_pool *pool, uint64_t size)
{
	uint64_t now = atomic_fetch_add(&pool->reserved, size) + size;
	uint64_t high = atomic_load(&pool->reserved_high);

	while (now > high && !atomic_compare_exchange_weak(&pool->reserved_high, &high, now))
		;
	atomic_fetch_add(&pool->core->dev[pool->dev].reserved, size);
}

/* Memory for a segment, opened to the peers. *ptr: what must go back, should this or what
 * follows fail, by means of *spare; NULL: nothing. */
static enum ss_status take(struct ss_pool *pool, uint64_t size, uint64_t peers, void **ptr,
			   struct ss_unfreed **spare)
{
	struct ss_core *core = pool->core;
	enum ss_status s;

	*ptr = ss_unfreed_take(pool, size, spare);
	if (*ptr)
		return SS_DRIVE(core, core->drv.segment_access(core->drv.ctx, pool->dev,
							       pool->backing, *ptr, size, peers));
	if (!ss_cap_take(pool, size))
		return SS_ERR_NOMEM;
	*spare = ss_unfreed_new(pool);
	s = *spare ? SS_DRIVE(core, core->drv.segment_alloc(core->drv.ctx, pool->dev, pool->backing,
							    size, peers, ptr))
		   : SS_ERR_FAILED;
	if (!*ptr) {
		ss_cap_give(pool, size);
		if (*spare)
			ss_unfreed_done(pool, *spare);
	}
	return s;
}

enum ss_status ss_slab_add(struct ss_pool *pool, uint64_t size)
{
	struct ss_core *core = pool->core;
	struct ss_segment *seg;
	uint64_t base, end, peers = pool->peers;
	struct ss_unfreed *spare;
	enum ss_status s;
	void *ptr;

	s = take(pool, size, peers, &ptr, &spare);
	if (s != SS_OK)
		goto undo;
	base = ss_round((uintptr_t)ptr, SS_FRAME);
	end = ((uintptr_t)ptr + size) & ~(SS_FRAME - 1);
	seg = end > base ? ss_segment_new(core, pool, base, end - base) : NULL;
	if (!seg) {
		s = SS_ERR_FAILED;
		goto undo;
	}
	seg->backing = pool->backing;
	seg->native = ptr;
	seg->native_size = size;
	pthread_mutex_lock(&pool->lock);
	/* Who was given access meanwhile has it to what is in the list, which this is not yet. */
	while (s == SS_OK && pool->peers & ~peers) {
		peers = pool->peers;
		pthread_mutex_unlock(&pool->lock);
		s = SS_DRIVE(core, core->drv.segment_access(core->drv.ctx, pool->dev, pool->backing,
							    ptr, size, peers));
		pthread_mutex_lock(&pool->lock);
	}
	if (s != SS_OK) {
		pthread_mutex_unlock(&pool->lock);
		ss_segment_forget(core, seg);
		goto undo;
	}
	ss_segment_link(pool, seg);
	pool->st.grown++;
	pool->spent.calls++;
	ss_account_reserved(pool, size);
	ss_place(pool, seg->first);
	pthread_mutex_unlock(&pool->lock);
	ss_unfreed_done(pool, spare);
	return SS_OK;
undo:
	if (ptr)
		ss_unfreed_give(pool, spare, ptr, size);
	return s;
}

/* The next segment to give back: wholly clean, idle for long enough, and small enough that
 * `floor` stays. The smallest that gets down to `target`, or else the largest: fewest calls.
 * Pool lock held. */
static struct ss_segment *victim(struct ss_pool *pool, uint64_t target, uint64_t floor,
				 uint64_t older_than)
{
	uint64_t reserved = atomic_load(&pool->reserved), excess = reserved - target;
	struct ss_segment *seg, *best = NULL;

	for (seg = pool->segments; seg; seg = seg->next) {
		if (!is_idle(seg) || seg->idle_since > older_than ||
		    seg->native_size + floor > reserved)
			continue;
		if (!best || ss_goes_first(seg->native_size, best->native_size, excess))
			best = seg;
	}
	return best;
}

static uint64_t slab_release(struct ss_pool *pool, uint64_t target, uint64_t floor,
			     uint64_t older_than)
{
	struct ss_core *core = pool->core;
	uint64_t given = ss_unfreed_retry(pool);
	struct ss_segment *seg;

	pthread_mutex_lock(&pool->lock);
	while (atomic_load(&pool->reserved) > target &&
	       (seg = victim(pool, target, floor, older_than))) {
		void *native = seg->native;
		uint64_t size = seg->native_size;
		enum ss_status s;

		/* It leaves our tables before it leaves the device: afterwards its
		 * addresses may be anybody's. */
		ss_unplace(pool, seg->first);
		ss_segment_unlink(pool, seg);
		ss_segment_forget(core, seg);
		atomic_fetch_sub(&pool->reserved, size);
		atomic_fetch_sub(&core->dev[pool->dev].reserved, size);
		pool->spent.calls++;
		pthread_mutex_unlock(&pool->lock);
		s = SS_DRIVE(core, core->drv.segment_free(core->drv.ctx, pool->dev, pool->backing,
							  native, size));
		pthread_mutex_lock(&pool->lock);
		if (s == SS_OK) {
			given += size;
			pool->st.released_bytes += size;
			ss_cap_give(pool, size);
			continue;
		}
		/* The device keeps it, so we keep it too. */
		seg = ss_segment_new(core, pool, (uintptr_t)native, size);
		if (seg) {
			seg->backing = pool->backing;
			seg->native = native;
			seg->native_size = size;
			ss_segment_link(pool, seg);
			ss_account_reserved(pool, size);
			ss_place(pool, seg->first);
		}
		break;
	}
	pthread_mutex_unlock(&pool->lock);
	return given;
}

/* Idle segments that are too short for the request make room for one that is
 * not, rather than raise the pool's peak. */
static void make_room(struct ss_pool *pool, uint64_t want)
{
	uint64_t high = atomic_load(&pool->reserved_high);

	if (atomic_load(&pool->reserved) + want <= high || !atomic_load(&pool->reserved))
		return;
	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	slab_release(pool, high > want ? high - want : 0, floor_of(pool, want), UINT64_MAX);
}

enum ss_status ss_slab_whole(struct ss_pool *pool, uint64_t size)
{
	enum ss_status s;
	bool free;

	ss_wake_null(pool, size);
	if (atomic_load(&pool->reserved) + size <= atomic_load(&pool->reserved_high) &&
	    (s = ss_slab_add(pool, size)) != SS_ERR_NOMEM)
		return s;
	free = !ss_release_waits(pool) || ss_device_idle(pool->core, pool->dev, false);
	if (free)
		make_room(pool, size);
	s = ss_slab_add(pool, size);
	if (s == SS_ERR_NOMEM && free && ss_release(pool, 0, UINT64_MAX))
		s = ss_slab_add(pool, size);
	return s;
}

static enum ss_status slab_grow(struct ss_pool *pool, uint64_t size, uint64_t align,
				uint64_t instead, bool give_back)
{
	uint64_t need = ss_round(size + (align > SS_FRAME ? align : 0), SS_FRAME);
	enum ss_status s;
	uint64_t want;
	bool unfreed;

	pthread_mutex_lock(&pool->lock);
	want = ss_fit_size(pool, align > SS_FRAME ? need : size, instead);
	want = want < need ? need : want;
	unfreed = pool->unfreed && !atomic_load(&pool->core->capturing);
	pthread_mutex_unlock(&pool->lock);

	/* Segments that were exported and are over go first, and what would not go before, if
	 * nobody has to wait. */
	if ((atomic_load(&pool->kept) || unfreed) && ss_device_idle(pool->core, pool->dev, false)) {
		ss_ipc_release(pool, false);
		ss_unfreed_retry(pool);
	}
	if (give_back)
		make_room(pool, want);
	s = ss_slab_add(pool, want);

	if (s == SS_ERR_NOMEM && want > need)
		s = ss_slab_add(pool, need);
	return s;
}

enum ss_status ss_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
		       uint64_t align, uint64_t instead, bool give_back)
{
	bool vmm = pool->backing == SS_BACKING_VMM;
	enum ss_status s;

	ss_wake_null(pool, size);
	s = vmm ? ss_vmm_grow(pool, x, size, align, give_back)
		: slab_grow(pool, size, align, instead, give_back);

	/* There were no addresses, or the driver has no use for them. */
	if (vmm && s == SS_ERR_NOMEM && pool->backing != SS_BACKING_VMM)
		s = slab_grow(pool, size, align, instead, false);
	if (s == SS_OK)
		ss_look_left(pool);
	return ss_refused(s) ? SS_ERR_FAILED : s;
}

uint64_t ss_release(struct ss_pool *pool, uint64_t target, uint64_t older_than)
{
	uint64_t given, more;

	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	given = ss_ipc_release(pool, older_than == UINT64_MAX);
	ss_giving(pool);
	more = pool->backing == SS_BACKING_VMM ? ss_vmm_release(pool, target, older_than) :
						 slab_release(pool, target, target, older_than);
	ss_gave(pool, more);
	given += more;
	if (!given)
		return 0;
	ss_pressed_set(pool->core, pool->dev, false);
	/* What comes back for it is to be placed as tightly as it was. */
	pthread_mutex_lock(&pool->lock);
	ss_unsteady(pool);
	pthread_mutex_unlock(&pool->lock);
	return given;
}

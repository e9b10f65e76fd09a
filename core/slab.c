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
#include "core/internal.h"

#define WARM_UP 32           /* allocations: before, nothing is a loop */
#define HARMLESS 88          /* percent of the peak that segments in use may reach */
#define HARMLESS_LEAST 25
#define SMALL (64ull << 20) /* a pool of this size is not worth calls */
#define SHARED (4ull << 20) /* smaller blocks share a segment */
#define KEPT_PART 4         /* of the peak: kept above it for a threshold, whatever fits */
#define AHEAD_PART 64       /* of the pool: the segment of one that goes on growing, */
#define SPARING_PART 32     /* and of several blocks that fill it better than one, */
#define SPARING_LEAST (8ull << 20)
#define WASTE_PART 8        /* if that would leave more of it unused */
#define GOOD_PART 8         /* of a device: what a pool would miss that needs it in one piece */
#define CRAMP_PART 64        /* in rests, while it may still need all of it in other sizes: */
#define CRAMPED_FROM 3       /* it has had such a part in use */
#define BESIDE_PART 16      /* of the peak: growth, rather than that */

/* How much to ask for when `size` bytes are missing: small blocks share, large ones get
 * what they need and no more, unless several of them fit so much better: segments are whole
 * frames. Pool lock held. */
static uint64_t segment_size(const struct ss_pool *pool, uint64_t size)
{
	uint64_t ahead = ss_thrift_ahead(pool, AHEAD_PART);
	uint64_t most = atomic_load(&pool->reserved) / SPARING_PART;
	uint64_t n = (ahead > SHARED ? ahead : SHARED) / size, best, want;

	if (!n)
		n = 1;
	best = ss_round(n * size, SS_FRAME);
	if (size < SHARED / 4)
		return best;
	if (most < SPARING_LEAST)
		most = SPARING_LEAST;
	for (uint64_t more = n + 1; (best - n * size) * WASTE_PART > best; more++) {
		want = ss_round(more * size, SS_FRAME);
		if (want > most)
			break;
		if ((want - more * size) * n < (best - n * size) * more) {
			best = want;
			n = more;
		}
	}
	return best;
}

/* What the pools may have of the device. */
static uint64_t device_bytes(const struct ss_pool *pool)
{
	const struct ss_device_state *d = &pool->core->dev[pool->dev];

	return d->limit && d->limit < d->info.total_bytes ? d->limit : d->info.total_bytes;
}

/* Would a block of `size` keep a good part of the device from going back, or from being used
 * once more as it was? What it could have beside is too little for that again. (What was never
 * in use as a whole is no such block, but reserved from the start.) */
static bool missed(const struct ss_pool *pool, const struct ss_block *b, uint64_t size,
		   uint64_t high)
{
	uint64_t good = device_bytes(pool) / GOOD_PART, total = b->seg->size;
	/* It was made for one block, of which b is the rest, or which is free. */
	bool one = b->prev ? !b->prev->prev && !b->next : !b->next || !b->next->next;

	return good > SMALL && high + SS_FRAME > total && (one ? total : b->size) >= good + size;
}

/* With `size` cut off the idle segment b, would segments in use hold so much beside what is
 * live that a program which has all of its device in use could not have it again, in other
 * sizes? Or a good part of the device, for one that is on its way there? */
static bool cramps(struct ss_pool *pool, const struct ss_block *b, uint64_t size, uint64_t high,
		   bool growing)
{
	const struct ss_device_state *d = &pool->core->dev[pool->dev];
	uint64_t reserved = atomic_load(&pool->reserved), all = atomic_load(&d->reserved);
	uint64_t most = device_bytes(pool), good = most / GOOD_PART, spare = 0;
	uint64_t others = all > reserved ? all - reserved : 0;
	uint64_t rests = growing && high + others > most / CRAMPED_FROM ? most / CRAMP_PART : good;

	if (most > high + others)
		spare = (most - high - others) / 2; /* segments are whole frames */
	return good > SMALL &&
	       reserved - pool->idle_bytes + b->size >
		       ss_pool_used(pool) + size + (spare < rests ? spare : rests);
}

/* How large the pool may become beside what it was in use with. */
static uint64_t beside(const struct ss_pool *pool, uint64_t used, uint64_t want)
{
	uint64_t most = device_bytes(pool);

	return atomic_load(&pool->core->dev[pool->dev].reserved) + want > most - most / BESIDE_PART ?
		       0 : used + used / BESIDE_PART;
}

bool ss_slab_wasteful(struct ss_pool *pool, const struct ss_block *b, uint64_t size,
		      bool growing, uint64_t *instead)
{
	uint64_t busy = atomic_load(&pool->reserved) - pool->idle_bytes;
	uint64_t high = ss_pool_used_high(pool);
	uint64_t want = segment_size(pool, size);
	int64_t thrift, percent;
	bool missing, one;

	*instead = 0;
	if (high < SMALL)
		return false;
	missing = missed(pool, b, size, high);
	if (!missing && b->size != b->seg->size)
		return false;
	one = b->size <= want; /* as it would grow by one */
	/* (Growth beside the peak costs a call, and an exchange two.) */
	if (missing ? ss_thrift(pool) >= 2 || atomic_load(&pool->reserved) + want <= beside(pool, high, want) :
	    (!one || b->size % size >= SS_FRAME) && cramps(pool, b, size, high, growing) &&
	    (growing || ss_thrift(pool) >= 2)) {
		/* Of what fits into b all; the rest is what makes the difference. */
		*instead = b->size - b->size % size;
		return true;
	}
	if (missing || one || pool->spent.allocs < WARM_UP)
		return false;
	thrift = ss_thrift(pool);
	if (thrift < 2 || !ss_thrift_misses(pool))
		return false;
	if (ss_peak_lacks(pool, size, b->size))
		return true;
	/* Only what is cut off an idle segment keeps it from going back. That does no
	 * harm while the segments in use leave room below the peak. Calls that were
	 * saved up are spent on more room, as long as that may lower the peak. */
	percent = growing ? HARMLESS - (thrift - 2) : HARMLESS;
	if (percent < HARMLESS_LEAST)
		percent = HARMLESS_LEAST;
	return busy + b->size > high / 100 * (uint64_t)percent;
}

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

/* How large the pool may become for a tight fit, if nothing goes back: no larger than it was
 * already, but for a little beside what would be missed. Pool lock held. */
static uint64_t ceiling(struct ss_pool *pool, uint64_t size, uint64_t want)
{
	uint64_t high = atomic_load(&pool->reserved_high), used = ss_pool_used_high(pool);
	uint64_t most = beside(pool, used, want);
	struct ss_block *b;

	if (most <= high)
		return high;
	b = ss_heap_best_part(&pool->clean, size, SS_GRAIN);
	return b && missed(pool, b, size, used) ? most : high;
}

/* A segment for `size` bytes, of `instead` at most (0: as large as seems good). Pool lock
 * held. */
static uint64_t segment_within(const struct ss_pool *pool, uint64_t size, uint64_t instead)
{
	uint64_t want = segment_size(pool, size), most = ss_round(instead, SS_FRAME);

	return instead && most < want ? most : want;
}

bool ss_slab_room(struct ss_pool *pool, uint64_t size, uint64_t instead, bool give_back)
{
	uint64_t want, idle;
	bool room;

	if (pool->backing == SS_BACKING_VMM)
		return give_back;
	pthread_mutex_lock(&pool->lock);
	want = segment_within(pool, size, instead);
	idle = give_back ? giveable(pool, want) : 0;
	room = atomic_load(&pool->reserved) + want <= ceiling(pool, size, want) + idle;
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
		bool over = seg->native_size > excess;

		if (!is_idle(seg) || seg->idle_since > older_than ||
		    seg->native_size + floor > reserved)
			continue;
		if (!best || (over ? best->native_size < excess ||
				     seg->native_size < best->native_size :
			      best->native_size < excess &&
			      seg->native_size > best->native_size))
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
	want = segment_within(pool, align > SS_FRAME ? need : size, instead);
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

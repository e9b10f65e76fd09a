/* SPDX-License-Identifier: MIT */
/*
 * Exported blocks, which other processes may map, and blocks of guarded segments. Neither is handed
 * out again.
 *
 * No call tells when an importer has closed its mapping. So the bytes of an exported block are
 * never handed out again: a free turns them into a gap. A segment that holds only gaps and idle
 * memory is released as a whole, and the runtime keeps it for the importer. Some runtimes are seen
 * to keep it for good (hip#3886). On these the other bytes of a segment are used up first.
 *
 * Locks: the pool's, dropped for the driver.
 */
#include "core/pool/reclaim.h"
#include "core/pool/release.h"

/* The live block at `addr` with its pool's lock held, if handles can be made for it; otherwise
 * NULL, no lock held, and *why (NULL allowed) says whether the address is ours. */
static struct ss_block *lock_shareable(struct ss_core *core, uint64_t addr, enum ss_status *why)
{
	struct ss_segment *seg = ss_segment_lock(core, addr);
	struct ss_block *b;
	uint64_t start;

	if (why)
		*why = seg ? SS_ERR_INVALID : SS_ERR_FOREIGN;
	if (!seg)
		return NULL;
	/* Only what HIP itself allocated has a handle: raw HSA memory is refused there, and a
	 * VMM address in it is a kernel BUG (clr#265). */
	b = seg->backing == SS_BACKING_HIP ? ss_live_at(core, seg, addr, &start) : NULL;
	if (!b)
		ss_pool_unlock(seg->pool);
	return b;
}

enum ss_status ss_ipc_find(struct ss_core *core, const void *ptr, struct ss_ipc_place *out)
{
	enum ss_status s;
	struct ss_block *b = lock_shareable(core, (uintptr_t)ptr, &s);
	struct ss_segment *seg;

	if (!b)
		return s;
	seg = b->seg;
	if (!seg->serial)
		seg->serial = ss_serial_new(core);
	out->segment = seg->native;
	out->segment_size = seg->native_size;
	out->serial = seg->serial;
	out->offset = b->addr - (uintptr_t)seg->native;
	out->size = b->request;
	out->device = seg->pool->mem.dev;
	ss_pool_unlock(seg->pool);
	return SS_OK;
}

void ss_ipc_export(struct ss_core *core, const struct ss_ipc_place *place)
{
	struct ss_block *b = lock_shareable(core, (uintptr_t)place->segment + place->offset, NULL);

	if (!b)
		return;
	b->exported = true;
	ss_pool_unlock(b->seg->pool);
}

bool ss_ipc_exported(struct ss_core *core, const void *ptr, uint64_t serial)
{
	struct ss_block *b = lock_shareable(core, (uintptr_t)ptr, NULL);
	bool is = b && b->exported && b->seg->serial == serial;

	if (b)
		ss_pool_unlock(b->seg->pool);
	return is;
}

void ss_ipc_gap(struct ss_block *b)
{
	b->request = 0;
	atomic_store_explicit(&b->state, SS_BLOCK_GAP, memory_order_release);
}

void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b)
{
	ss_pool_lock(pool);
	pool->st.frees++;
	atomic_fetch_add(&pool->kept, b->size);
	ss_ipc_gap(b);
	ss_pool_unlock(pool);
}

/* ---- segments to release ----------------------------------------------------------- */

/* The blocks of a segment. */
struct contents {
	uint64_t gaps; /* bytes that were exported */
	bool live;
	bool busy; /* a block is live, in a shelf, or still in use by the device */
};

/* Pool lock held, the shelves frozen. */
static struct contents look_into(struct ss_core *core, const struct ss_segment *seg)
{
	struct contents c = {0};

	for (const struct ss_block *b = ss_segment_first(core, seg); b; b = ss_block_next(b)) {
		unsigned state = atomic_load(&b->state);

		c.gaps += state == SS_BLOCK_GAP ? b->size : 0;
		c.live |= state == SS_BLOCK_LIVE;
		if (state == SS_BLOCK_GAP)
			c.busy |= b->slot != SS_SLOT_COMPLETED &&
				  !ss_mark_reached(core, b->slot, b->n, true);
		else
			c.busy |= !ss_is_free_on(b, SS_SLOT_COMPLETED);
	}
	return c;
}

uint64_t ss_ipc_pinned(struct ss_pool *pool)
{
	uint64_t pinned = 0;

	if (!atomic_load(&pool->kept))
		return 0;
	ss_pool_lock(pool);
	ss_shelves_freeze(&pool->shelves, true);
	for (const struct ss_segment *seg = pool->mem.segments; seg; seg = seg->next) {
		struct contents c = {0};

		if (seg->serial)
			c = look_into(ss_core_of(pool), seg);
		pinned += c.live ? c.gaps : 0;
	}
	ss_shelves_freeze(&pool->shelves, false);
	ss_pool_unlock(pool);
	return pinned;
}

/* A segment to release; NULL: none. `kept`: the runtime keeps all of a segment for good even if
 * only one block was exported, so at least half of the segment must have been exported. Pool lock
 * held. */
static struct ss_segment *find_over(struct ss_pool *pool, bool kept)
{
	struct ss_segment *seg;

	ss_shelves_freeze(&pool->shelves, true);
	for (seg = pool->mem.segments; seg; seg = seg->next) {
		struct contents c = {.busy = true};

		if (seg->serial && !seg->opening)
			c = look_into(ss_core_of(pool), seg);
		if (!c.busy && c.gaps && (!kept || c.gaps >= seg->size / 2))
			break;
	}
	ss_shelves_freeze(&pool->shelves, false);
	return seg;
}

/* Takes the blocks of the segment, of which nothing is in use, out of the pool's figures and
 * indexes. Pool lock held. */
static void empty(struct ss_pool *pool, const struct ss_segment *seg)
{
	struct ss_core *core = ss_core_of(pool);

	for (struct ss_block *b = ss_segment_first(core, seg); b; b = ss_block_next(b))
		if (ss_is_state(b, SS_BLOCK_GAP))
			atomic_fetch_sub(&pool->kept, b->size);
		else
			ss_completed_remove(&pool->mem, b);
}

uint64_t ss_ipc_release(struct ss_pool *pool, bool all)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_memory *m = &pool->mem;
	enum ss_released is = SS_RELEASED;
	uint64_t given = 0, size, usable;
	struct ss_segment *seg;

	if (!atomic_load(&pool->kept))
		return 0;
	ss_releasing_begin(core, m->dev);
	ss_pool_lock(pool);
	ss_reclaim_all(pool);
	while (is == SS_RELEASED && (seg = find_over(pool, !all && ss_retention_exports(m)))) {
		size = seg->native_size;
		usable = seg->size;
		empty(pool, seg);
		is = ss_segment_release(m, seg, true);
		given += is == SS_RELEASED ? size : 0;
		/* The pool keeps a segment that the driver refused, and hands it out no more. */
		if (is == SS_REFUSED)
			atomic_fetch_add(&pool->kept, usable);
	}
	ss_pool_unlock(pool);
	ss_releasing_end(core, m->dev, given);
	return given;
}

/* SPDX-License-Identifier: MIT */
/*
 * The address map, and the life of segment and block descriptors.
 *
 * The tables of a segment are reserved address space. The kernel backs only the pages that hold a
 * block's start: 4 bytes for a small block, a page for a large one.
 *
 * Segment and block descriptors are recycled, never freed, and a recycled segment keeps its tables
 * mapped. So a reader that comes too late (a double free, a foreign pointer) reads zeros or a
 * descriptor that does not match, and never unmapped memory.
 *
 * Locks: map->lock, a leaf, guards the spare descriptors and the growth of the frame tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/lock.h"
#include "core/range/address_map.h"

#define LEAVES (1u << (SS_ADDRESS_BITS - SS_FRAME_BITS - SS_LEAF_BITS))

/* ---- segments ----------------------------------------------------------- */

static bool frames_set(struct ss_core *core, uint64_t base, uint64_t size, struct ss_segment *seg)
{
	for (uint64_t a = base; a < base + size; a += SS_FRAME) {
		uint64_t top = a >> (SS_FRAME_BITS + SS_LEAF_BITS);
		_Atomic(struct ss_segment *) *leaf = atomic_load_explicit(&core->map->frames[top],
									  memory_order_relaxed);

		if (!leaf) {
			leaf = ss_host_map(sizeof(*leaf) << SS_LEAF_BITS);
			if (!leaf)
				return false;
			atomic_store_explicit(&core->map->frames[top], leaf, memory_order_release);
		}
		atomic_store_explicit(&leaf[a >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)], seg,
				      memory_order_release);
	}
	return true;
}

/* 16 TiB, more than any reservation. */
#define MOST (1ull << 44)

/* Tables are sized for the next power of two, so that a recycled descriptor fits more than one size
 * of segment. */
static bool tables_make(struct ss_segment *seg, uint64_t size)
{
	uint64_t frames, grains;

	for (seg->span = SS_FRAME; seg->span < size;)
		seg->span *= 2;
	frames = seg->span / SS_FRAME;
	grains = seg->span / SS_GRAIN * sizeof(seg->grains[0]);
	seg->table_bytes = ss_round(grains + (frames + frames / 64 + 1) * 8, 4096);
	seg->grains = ss_host_map(seg->table_bytes);
	seg->starts = (void *)((char *)seg->grains + grains);
	seg->used = seg->starts + frames;
	return seg->grains != NULL;
}

/* Are the tables large enough for `size` bytes, and not far too large? */
static bool tables_suit(const struct ss_segment *seg, uint64_t size)
{
	return seg->span >= size && (seg->span == SS_FRAME || seg->span / 2 < size);
}

/* A spare descriptor whose tables suit, or a new one. NULL: host memory is out. */
static struct ss_segment *descriptor_take(struct ss_core *core, uint64_t size)
{
	struct ss_segment *seg, **at;

	pthread_mutex_lock(&core->map->lock);
	for (at = &core->map->spare_segments; *at && !tables_suit(*at, size); at = &(*at)->next)
		;
	seg = *at;
	if (seg)
		*at = seg->next;
	pthread_mutex_unlock(&core->map->lock);
	if (seg)
		return seg;
	seg = ss_host_alloc(core, sizeof(*seg));
	if (seg && !tables_make(seg, size)) {
		ss_host_free(core, seg, sizeof(*seg));
		seg = NULL;
	}
	return seg;
}

/* ---- storage of block descriptors ------------------------------------------ */

/* Each descriptor has cache lines of its own, so its former owner does not matter. The lock of the
 * spare descriptors' owner is held. */
_Static_assert(sizeof(struct ss_block) % SS_LINES == 0, "descriptors share a line");

/* A descriptor that was used before, or else the next of the newest slab. core->map->lock held. */
static struct ss_block *take(struct ss_map *map, struct ss_core *core)
{
	struct ss_block *b = map->unused, *slab;

	if (b) {
		map->unused = b->left;
		return b;
	}
	if (map->made == map->slab_count * SS_SLAB) {
		slab = map->slab_count < SS_MAX_SLABS ? ss_host_alloc(core, SS_SLAB_BYTES) : NULL;
		if (!slab)
			return NULL;
		__atomic_store_n(&map->slabs[map->slab_count++], slab, __ATOMIC_RELEASE);
	}
	b = ss_block_by_index(map, map->made);
	b->index = map->made++;
	return b;
}

static void put(struct ss_map *map, struct ss_block *b)
{
	b->left = map->unused;
	map->unused = b;
}

struct ss_block *ss_block_new_slow(struct ss_core *core, struct ss_spares *own)
{
	struct ss_block *b;

	pthread_mutex_lock(&core->map->lock);
	while (own->count < SS_BATCH && (b = take(core->map, core))) {
		b->left = own->head;
		own->head = b;
		own->count++;
	}
	pthread_mutex_unlock(&core->map->lock);
	return own->head ? ss_block_new(core, own) : NULL;
}

void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep)
{
	pthread_mutex_lock(&core->map->lock);
	while (own->count > keep)
		put(core->map, ss_block_new(core, own));
	pthread_mutex_unlock(&core->map->lock);
}

/* ---- blocks ------------------------------------------------------------- */

/* The last start at or below g among the 64 grains of its group, as index + 1; 0: none. */
static uint32_t last_in_group(const struct ss_segment *seg, uint64_t g)
{
	for (;; g--) {
		uint32_t v = atomic_load(&seg->grains[g]);

		if (v || g % 64 == 0)
			return v;
	}
}

/* This thread sets the bit of the group, then checks the bit of the frame. A thread that clears
 * the group's bit checks the frame's bit afterwards. So one of both sees the other's change. */
void ss_start_note(struct ss_segment *seg, uint64_t frame, unsigned group)
{
	atomic_fetch_or(&seg->starts[frame], 1ull << group);
	if (!(atomic_load(&seg->used[frame / 64]) >> frame % 64 & 1))
		atomic_fetch_or(&seg->used[frame / 64], 1ull << frame % 64);
}

/* A search found no start in the groups `stale` of a frame. Clears their bits, and sets those
 * again that turn out to be right. Meanwhile another search may miss a block, so it searches
 * again (seg->correcting is odd). Without a barrier in all threads the bits stay, which costs
 * later searches time (ss_start_set). */
static void correct(struct ss_segment *seg, uint64_t frame, uint64_t stale)
{
	uint32_t turn = atomic_load(&seg->correcting);

	if (!stale || !ss_thread_barriers() || turn % 2 ||
	    !atomic_compare_exchange_strong(&seg->correcting, &turn, turn + 1))
		return;
	if (atomic_fetch_and(&seg->starts[frame], ~stale) == stale)
		atomic_fetch_and(&seg->used[frame / 64], ~(1ull << frame % 64));
	ss_thread_barrier();
	for (uint64_t left = stale | atomic_load(&seg->starts[frame]); left; left &= left - 1) {
		unsigned group = (unsigned)__builtin_ctzll(left);

		if (last_in_group(seg, (frame * 64 + group) * 64 + 63))
			ss_start_note(seg, frame, group);
	}
	atomic_store(&seg->correcting, turn + 2);
}

/* The number of the highest bit below bit n; n: there is none. */
static uint64_t bit_below(const _Atomic uint64_t *words, uint64_t n)
{
	uint64_t w = n / 64, bits = atomic_load(&words[w]) & ((1ull << n % 64) - 1);

	while (!bits && w)
		bits = atomic_load(&words[--w]);
	return bits ? w * 64 + 63 - (unsigned)__builtin_clzll(bits) : n;
}

/* The last start at or below grain g, as index + 1; 0: none. */
static uint32_t last_start(struct ss_segment *seg, uint64_t g)
{
	uint64_t frame = g / SS_FRAME_GRAINS, before = frame;
	/* First the groups before that of g, then those of earlier frames. */
	uint64_t bits = atomic_load(&seg->starts[frame]) & ((1ull << g / 64 % 64) - 1);
	uint32_t found = last_in_group(seg, g);

	while (!found) {
		uint64_t stale = 0;

		for (; bits && !found; bits &= ~stale) {
			unsigned group = 63 - (unsigned)__builtin_clzll(bits);

			found = last_in_group(seg, (frame * 64 + group) * 64 + 63);
			stale |= (uint64_t)!found << group;
		}
		correct(seg, frame, stale);
		before = bit_below(seg->used, frame);
		if (before == frame)
			break;
		frame = before;
		bits = atomic_load(&seg->starts[frame]);
	}
	return found;
}

struct ss_block *ss_block_last_start(const struct ss_core *core, struct ss_segment *seg,
				     uint64_t addr)
{
	unsigned waited = 0;
	uint32_t turn, found;
	uint64_t off;

	for (;; ss_backoff(&waited)) {
		turn = atomic_load(&seg->correcting);
		if (!ss_segment_has(seg, addr, &off))
			return NULL;
		found = last_start(seg, off / SS_GRAIN);
		if (turn % 2 == 0 && atomic_load(&seg->correcting) == turn)
			return found ? ss_block_by_index(core->map, found - 1) : NULL;
	}
}

struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size)
{
	struct ss_map *map = core->map;
	struct ss_segment *seg;
	struct ss_block *b;

	if (size > MOST)
		return NULL;
	pthread_mutex_lock(&map->lock); /* the spares of a pool would need the pool's lock */
	b = take(map, core);
	pthread_mutex_unlock(&map->lock);
	seg = b ? descriptor_take(core, size) : NULL;
	if (!seg)
		goto fail;
	/* A late free may still take the recycled segment for the previous one. */
	__atomic_store_n(&seg->base, base, __ATOMIC_RELAXED);
	__atomic_store_n(&seg->size, size, __ATOMIC_RELAXED);
	seg->pool = pool;
	seg->serial = seg->idle_since = 0;
	seg->chunk = NULL;
	seg->opening = false;
	b->addr = base;
	b->size = size;
	b->request = 0;
	b->seg = seg;
	atomic_store_explicit(&b->prev, NULL, memory_order_relaxed);
	atomic_store_explicit(&b->next, NULL, memory_order_relaxed);
	b->n = 0;
	ss_set_home(b, 0);
	ss_set_word(b, ss_word(SS_SLOT_COMPLETED, SS_BLOCK_GAP, false));
	ss_start_set(seg, base, b->index);
	pthread_mutex_lock(&map->lock);
	if (!frames_set(core, base, size, seg)) {
		frames_set(core, base, size, NULL);
		ss_start_clear(seg, base);
		/* The segment's tables may be read as long as the core lives, as those of every
		 * recycled segment. */
		seg->next = map->spare_segments;
		map->spare_segments = seg;
		pthread_mutex_unlock(&map->lock);
		goto fail;
	}
	pthread_mutex_unlock(&map->lock);
	return seg;

fail:
	if (b) {
		ss_set_state(b, SS_BLOCK_UNUSED);
		pthread_mutex_lock(&map->lock);
		put(map, b);
		pthread_mutex_unlock(&map->lock);
	}
	return NULL;
}

void ss_segment_forget(struct ss_core *core, struct ss_segment *seg)
{
	struct ss_block *b = ss_segment_first(core, seg), *next;
	struct ss_spares none = {0};

	ss_hits_end(core);
	pthread_mutex_lock(&core->map->lock);
	frames_set(core, seg->base, seg->size, NULL);
	pthread_mutex_unlock(&core->map->lock);
	for (; b; b = next) {
		next = ss_block_next(b);
		ss_start_clear(seg, b->addr);
		b->front = 0;
		ss_block_recycle(core, &none, b);
	}
	ss_spares_return(core, &none, 0);
	/* The tables are zero already, but large, so the kernel gets their pages back. */
	if (seg->table_bytes > 256 * 1024)
		madvise((void *)seg->grains, seg->table_bytes, MADV_DONTNEED);
	pthread_mutex_lock(&core->map->lock);
	__atomic_store_n(&seg->size, 0, __ATOMIC_RELAXED);
	seg->next = core->map->spare_segments;
	core->map->spare_segments = seg;
	pthread_mutex_unlock(&core->map->lock);
}

/* ---- the map as a whole -------------------------------------------------- */

bool ss_map_init(struct ss_core *core)
{
	struct ss_map *map = ss_host_alloc(core, sizeof(*map));

	core->map = map;
	if (!map)
		return false;
	pthread_mutex_init(&map->lock, NULL);
	map->frames = ss_host_map(sizeof(*map->frames) * LEAVES);
	map->slabs = ss_host_map(sizeof(*map->slabs) * SS_MAX_SLABS);
	return map->frames && map->slabs;
}

void ss_map_finish(struct ss_core *core)
{
	struct ss_map *map = core->map;
	struct ss_segment *seg, *next;

	if (!map)
		return;
	for (seg = map->spare_segments; seg; seg = next) {
		next = seg->next;
		munmap((void *)seg->grains, seg->table_bytes);
		ss_host_free(core, seg, sizeof(*seg));
	}
	for (uint32_t i = 0; map->slabs && i < map->slab_count; i++)
		ss_host_free(core, map->slabs[i], SS_SLAB_BYTES);
	if (map->slabs)
		munmap(map->slabs, sizeof(*map->slabs) * SS_MAX_SLABS);
	for (unsigned i = 0; map->frames && i < LEAVES; i++) {
		void *leaf = atomic_load(&map->frames[i]);

		if (leaf)
			munmap(leaf, sizeof(void *) << SS_LEAF_BITS);
	}
	if (map->frames)
		munmap(map->frames, sizeof(*map->frames) * LEAVES);
	pthread_mutex_destroy(&map->lock);
	ss_host_free(core, map, sizeof(*map));
	core->map = NULL;
}

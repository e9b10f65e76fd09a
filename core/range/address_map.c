/* SPDX-License-Identifier: MIT */
/*
 * The address map, and the life of segment descriptors.
 *
 * The tables of a segment are reserved address space of which the kernel backs only the pages
 * that hold a block's start: 4 bytes for a small block, a page for a large one.
 *
 * Segment and block descriptors are recycled, never freed, and a recycled segment keeps its
 * tables mapped. So a reader that comes too late (a double free, a foreign pointer) reads zeros or
 * a descriptor that does not match, and never unmapped memory.
 *
 * Locks: map->lock, a leaf, guards the spare segments and the growth of the frame tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/base/lock.h"
#include "core/range/address_map.h"
#include "core/range/descriptor.h"

#define LEVELS 5
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

/* Lays the grain table and the bitmaps for `size` bytes out in one mapping. */
static size_t table_layout(uint64_t size, size_t level_words[LEVELS], int *levels)
{
	uint64_t grains = size / SS_GRAIN;
	size_t bytes = grains * sizeof(uint32_t);
	uint64_t n = grains / 64;

	*levels = 0;
	do {
		n = (n + 63) / 64;
		level_words[(*levels)++] = n;
		bytes += n * 8;
	} while (n > 1);
	return ss_round(bytes, 4096);
}

static bool tables_make(struct ss_segment *seg)
{
	size_t words[LEVELS];
	/* Tables are sized for the next power of two, so that a recycled
	 * descriptor fits more than one size of segment. */
	uint64_t span = SS_FRAME;
	char *p;

	while (span < seg->size)
		span *= 2;
	seg->table_bytes = table_layout(span, words, &seg->levels);
	p = ss_host_map(seg->table_bytes);
	if (!p)
		return false;
	seg->grains = (void *)p;
	p += span / SS_GRAIN * sizeof(uint32_t);
	for (int i = 0; i < seg->levels; i++) {
		seg->level[i] = (void *)p;
		p += words[i] * 8;
	}
	return true;
}

static uint64_t table_span(const struct ss_segment *seg)
{
	return (uint64_t)((char *)seg->level[0] - (char *)seg->grains) / sizeof(uint32_t) *
	       SS_GRAIN;
}

/* Sets bit g of level i, and those above it. Levels above are looked at after the bit is set;
 * whoever takes a bit above away looks for bits below afterwards. So one of both sees what the
 * other did. */
void ss_starts_note(struct ss_segment *seg, int i, uint64_t g)
{
	for (;;) {
		atomic_fetch_or(&seg->level[i][g / 64], 1ull << g % 64);
		g /= 64;
		if (++i == seg->levels || atomic_load(&seg->level[i][g / 64]) >> g % 64 & 1)
			return;
	}
}

/* The last start at or below g among the 64 grains of its group, as index + 1; 0: none. */
static uint32_t last_in_group(const struct ss_segment *seg, uint64_t g)
{
	for (;; g--) {
		uint32_t v = atomic_load(&seg->grains[g]);

		if (v || g % 64 == 0)
			return v;
	}
}

/* ---- blocks ------------------------------------------------------------- */

/* Bits below which a search found nothing. */
struct stale {
	unsigned count;
	struct {
		int level;
		uint64_t bit;
	} of[32];
};

/* Takes the bits away, and puts back those that turn out to be right. Meanwhile a search may miss a
 * block, so it looks again (seg->correcting is odd). Without a barrier in all threads the bits
 * stay, which costs later searches time (ss_start_set). */
static void correct(struct ss_segment *seg, struct stale *s)
{
	uint32_t turn = atomic_load(&seg->correcting);

	if (s->count && ss_thread_barriers() && turn % 2 == 0 &&
	    atomic_compare_exchange_strong(&seg->correcting, &turn, turn + 1)) {
		for (unsigned k = 0; k < s->count; k++)
			atomic_fetch_and(&seg->level[s->of[k].level][s->of[k].bit / 64],
					 ~(1ull << s->of[k].bit % 64));
		ss_thread_barrier();
		for (unsigned k = 0; k < s->count; k++) {
			int i = s->of[k].level;
			uint64_t g = s->of[k].bit;

			if (i ? atomic_load(&seg->level[i - 1][g]) :
				last_in_group(seg, g * 64 + 63))
				ss_starts_note(seg, i, g);
		}
		atomic_store(&seg->correcting, turn + 2);
	}
	s->count = 0;
}

static void add_stale(struct ss_segment *seg, struct stale *s, int level, uint64_t bit)
{
	if (!(atomic_load(&seg->level[level][bit / 64]) >> bit % 64 & 1))
		return;
	if (s->count == sizeof(s->of) / sizeof(s->of[0]))
		correct(seg, s);
	s->of[s->count].level = level;
	s->of[s->count++].bit = bit;
}

/* The last start at or below grain g, as index + 1; 0: none. */
static uint32_t last_start(struct ss_segment *seg, uint64_t g)
{
	struct stale stale = {0};
	uint64_t w;
	int i = -1; /* g is a grain, or else a bit of this level */

	for (;;) {
		if (i < 0) {
			w = last_in_group(seg, g);
			if (w)
				break;
		} else {
			w = atomic_load(&seg->level[i][g / 64]) & (~0ull >> (63 - g % 64));
		}
		if (w) { /* the end of what that bit stands for, one level down */
			g = (g / 64 * 64 + (63 - (unsigned)__builtin_clzll(w))) * 64 + 63;
			i--;
			continue;
		}
		if (g % 64 == 63 && i + 1 < seg->levels)
			add_stale(seg, &stale, i + 1, g / 64);
		if (g < 64)
			break;
		g = g / 64 - 1; /* what lies before, one level up */
		i++;
	}
	correct(seg, &stale);
	return (uint32_t)w;
}

struct ss_block *ss_block_last_start(const struct ss_core *core, struct ss_segment *seg,
				     uint64_t addr)
{
	uint32_t turn, found;
	uint64_t off;

	for (;;) {
		turn = atomic_load(&seg->correcting);
		if (!ss_segment_has(seg, addr, &off))
			return NULL;
		found = last_start(seg, off / SS_GRAIN);
		if (turn % 2 == 0 && atomic_load(&seg->correcting) == turn)
			return found ? ss_block_by_index(core->map, found - 1) : NULL;
		sched_yield();
	}
}

struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size)
{
	struct ss_segment *seg = NULL, **at;
	/* The spare descriptors of a pool would need the pool's lock. */
	struct ss_block *b = size <= MOST ? ss_block_new_alone(core) : NULL;
	struct ss_spares none = {0};

	if (!b)
		return NULL;
	pthread_mutex_lock(&core->map->lock);
	for (at = &core->map->spare_segments; *at; at = &(*at)->next) {
		uint64_t span = table_span(*at);

		if (span >= size && (span == SS_FRAME || span / 2 < size)) {
			seg = *at;
			*at = seg->next;
			break;
		}
	}
	pthread_mutex_unlock(&core->map->lock);
	if (!seg) {
		seg = ss_host_alloc(core, sizeof(*seg));
		if (!seg)
			goto fail;
		seg->size = size;
		if (!tables_make(seg)) {
			ss_host_free(core, seg, sizeof(*seg));
			goto fail;
		}
	}
	/* A late free may still read the recycled segment as the one that it was before. */
	__atomic_store_n(&seg->base, base, __ATOMIC_RELAXED);
	__atomic_store_n(&seg->size, size, __ATOMIC_RELAXED);
	seg->pool = pool;
	seg->serial = seg->idle_since = 0;
	seg->opening = false;
	b->addr = base;
	b->size = size;
	b->request = 0;
	b->seg = seg;
	atomic_store_explicit(&b->prev, NULL, memory_order_relaxed);
	atomic_store_explicit(&b->next, NULL, memory_order_relaxed);
	b->n = 0;
	ss_set_home(b, 0);
	ss_set_word(b, ss_word(SS_SLOT_COMPLETED, SS_BLOCK_GAP, false, false));
	ss_start_set(seg, base, b->index);
	pthread_mutex_lock(&core->map->lock);
	if (!frames_set(core, base, size, seg)) {
		frames_set(core, base, size, NULL);
		ss_start_clear(seg, base);
		/* Its tables may be read as long as the core lives, as those of every segment that
		 * was one. */
		seg->next = core->map->spare_segments;
		core->map->spare_segments = seg;
		pthread_mutex_unlock(&core->map->lock);
		goto fail;
	}
	pthread_mutex_unlock(&core->map->lock);
	return seg;

fail:
	ss_block_recycle(core, &none, b);
	ss_spares_return(core, &none, 0);
	return NULL;
}

void ss_segment_forget(struct ss_core *core, struct ss_segment *seg)
{
	struct ss_block *b = ss_segment_first(core, seg), *next;
	struct ss_spares none = {0};

	ss_recent_end(core);
	pthread_mutex_lock(&core->map->lock);
	frames_set(core, seg->base, seg->size, NULL);
	pthread_mutex_unlock(&core->map->lock);
	for (; b; b = next) {
		next = ss_block_next(b);
		ss_start_clear(seg, b->addr);
		ss_block_recycle(core, &none, b);
	}
	ss_spares_return(core, &none, 0);
	/* They are zero already, but large, so the kernel gets their pages back. */
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
		ss_host_free(core, map->slabs[i], ss_slab_bytes());
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

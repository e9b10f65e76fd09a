/* SPDX-License-Identifier: MIT */
/*
 * Address -> segment -> block.
 *
 * A radix tree over 2 MiB frames finds the segment, a table with one word per
 * 512 B grain finds the block that starts at an address; both are read without
 * a lock. The tables are reserved address space of which the kernel backs only
 * the pages that hold a block's start: 4 bytes for a small block, a page for a
 * large one. A bitmap of block starts with 64-ary summaries above it finds the
 * block that contains an address.
 *
 * Segment and block descriptors are recycled, never freed, and a recycled
 * segment keeps its tables mapped: a racing reader (a double free, a pointer of
 * somebody else) reads zeros or a descriptor that does not match, never
 * unmapped memory.
 *
 * Locks: core->meta guards the spare lists and the frame tables' growth.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/hit.h"

#define LEAVES (1u << (SS_ADDRESS_BITS - SS_FRAME_BITS - SS_LEAF_BITS))

static void *map_zeroed(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *ss_host_alloc(struct ss_core *core, size_t size)
{
	void *p = NULL;

	/* So that no two streams or pools share cache lines. */
	if (size < 64) {
		p = calloc(1, size);
	} else if (posix_memalign(&p, SS_LINES, size)) {
		p = NULL;
	} else {
		memset(p, 0, size);
	}
	if (p)
		atomic_fetch_add_explicit(&core->host_bytes, size, memory_order_relaxed);
	return p;
}

void ss_host_free(struct ss_core *core, void *p, size_t size)
{
	if (!p)
		return;
	atomic_fetch_sub_explicit(&core->host_bytes, size, memory_order_relaxed);
	free(p);
}

/* ---- segments ----------------------------------------------------------- */

struct ss_segment *ss_map_segment(struct ss_core *core, uint64_t addr)
{
	return ss_map_segment_inline(core, addr);
}

static bool frames_set(struct ss_core *core, uint64_t base, uint64_t size, struct ss_segment *seg)
{
	for (uint64_t a = base; a < base + size; a += SS_FRAME) {
		uint64_t top = a >> (SS_FRAME_BITS + SS_LEAF_BITS);
		_Atomic(struct ss_segment *) *leaf =
			atomic_load_explicit(&core->frames[top], memory_order_relaxed);

		if (!leaf) {
			leaf = map_zeroed(sizeof(*leaf) << SS_LEAF_BITS);
			if (!leaf)
				return false;
			atomic_store_explicit(&core->frames[top], leaf, memory_order_release);
		}
		atomic_store_explicit(&leaf[a >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)], seg,
				      memory_order_release);
	}
	return true;
}

/* What the levels below reach: 16 TiB, a reservation of twice a device's memory. */
#define MOST (1ull << 44)

/* Lays the grain table and the bitmaps for `size` bytes out in one mapping. */
static size_t table_layout(uint64_t size, size_t level_words[SS_MAP_LEVELS], int *levels)
{
	uint64_t grains = size / SS_GRAIN;
	size_t bytes = grains * sizeof(uint32_t);
	uint64_t n = grains;

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
	size_t words[SS_MAP_LEVELS];
	/* Tables are sized for the next power of two, so that a recycled
	 * descriptor fits more than one size of segment. */
	uint64_t span = SS_FRAME;
	char *p;

	while (span < seg->size)
		span *= 2;
	seg->table_bytes = table_layout(span, words, &seg->levels);
	p = map_zeroed(seg->table_bytes);
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

/* Streams split and merge what is leased to them at the same time, each under its own
 * lock, and words of the bitmaps may be shared: hence the atomic operations. */
static void level_set(struct ss_segment *seg, int i, uint64_t g)
{
	for (; i < seg->levels; i++, g /= 64)
		if (atomic_fetch_or(&seg->level[i][g / 64], 1ull << g % 64))
			return; /* the summary is set already */
}

static void level_clear(struct ss_segment *seg, uint64_t g)
{
	for (int i = 0; i < seg->levels; i++, g /= 64) {
		uint64_t bit = 1ull << g % 64, old = atomic_fetch_and(&seg->level[i][g / 64], ~bit);

		/* A start below, set since its word was empty, may have found this very
		 * summary still set. */
		if (i && atomic_load(&seg->level[i - 1][g])) {
			level_set(seg, i, g);
			return;
		}
		if (old & ~bit)
			return;
	}
}

void ss_start_set(struct ss_segment *seg, uint64_t addr, uint32_t value)
{
	uint64_t g = (addr - seg->base) / SS_GRAIN;

	atomic_store_explicit(&seg->grains[g], value, memory_order_release);
	if (value)
		level_set(seg, 0, g);
	else
		level_clear(seg, g);
}

/* ---- blocks ------------------------------------------------------------- */

struct ss_block *ss_block_at(struct ss_core *core, struct ss_segment *seg, uint64_t addr)
{
	return ss_block_at_inline(core, seg, addr - seg->base);
}

struct ss_block *ss_block_containing(struct ss_core *core, struct ss_segment *seg, uint64_t addr)
{
	struct ss_block *b;

	ss_lease_freeze(seg->pool, true);
	b = ss_block_last_start(core, seg, addr);
	ss_lease_freeze(seg->pool, false);
	return b;
}

struct ss_block *ss_block_last_start(struct ss_core *core, struct ss_segment *seg, uint64_t addr)
{
	uint64_t g = (addr - seg->base) / SS_GRAIN;

	for (int i = 0; i < seg->levels; i++) {
		uint64_t w = atomic_load(&seg->level[i][g / 64]) & (~0ull >> (63 - g % 64));

		if (w) {
			uint32_t v;

			g = g / 64 * 64 + (63 - (unsigned)__builtin_clzll(w));
			while (i-- > 0) { /* down again: the last start below */
				w = atomic_load(&seg->level[i][g]);
				if (!w)
					return NULL; /* gone meanwhile */
				g = g * 64 + (63 - (unsigned)__builtin_clzll(w));
			}
			v = atomic_load_explicit(&seg->grains[g], memory_order_acquire);
			return v ? ss_block_by_index(core, v - 1) : NULL;
		}
		if (g < 64)
			return NULL;
		g = g / 64 - 1; /* the word before this one, one level up */
	}
	return NULL;
}

struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size)
{
	struct ss_segment *seg = NULL, **at;
	/* (The pool's are for those who hold its lock.) */
	struct ss_block *b = size <= MOST ? ss_block_new_alone(core) : NULL;
	struct ss_spares none = {0};

	if (!b)
		return NULL;
	pthread_mutex_lock(&core->meta);
	for (at = &core->spare_segments; *at; at = &(*at)->next) {
		uint64_t span = table_span(*at);

		if (span >= size && (span == SS_FRAME || span / 2 < size)) {
			seg = *at;
			*at = seg->next;
			break;
		}
	}
	pthread_mutex_unlock(&core->meta);
	if (!seg) {
		seg = ss_host_alloc(core, sizeof(*seg));
		if (!seg)
			goto fail;
		seg->size = size;
		if (!tables_make(seg))
			goto fail_seg;
	}
	/* A free may be looking at what it was before. */
	__atomic_store_n(&seg->base, base, __ATOMIC_RELAXED);
	__atomic_store_n(&seg->size, size, __ATOMIC_RELAXED);
	seg->pool = pool;
	seg->first = b;
	seg->serial = 0;
	b->addr = base;
	b->size = size;
	b->request = 0;
	b->seg = seg;
	b->prev = b->next = NULL;
	b->slot = SS_SLOT_CLEAN;
	b->n = 0;
	b->classic = b->exported = false;
	ss_set_lessee(b, 0);
	atomic_store_explicit(&b->state, SS_BLOCK_HOLE, memory_order_relaxed);
	ss_start_set(seg, base, b->index + 1);
	pthread_mutex_lock(&core->meta);
	if (!frames_set(core, base, size, seg)) {
		frames_set(core, base, size, NULL);
		pthread_mutex_unlock(&core->meta);
		ss_start_set(seg, base, 0);
		munmap((void *)seg->grains, seg->table_bytes);
		goto fail_seg;
	}
	pthread_mutex_unlock(&core->meta);
	return seg;

fail_seg:
	ss_host_free(core, seg, sizeof(*seg));
fail:
	ss_block_recycle(core, &none, b);
	ss_spares_return(core, &none, 0);
	return NULL;
}

void ss_segment_forget(struct ss_core *core, struct ss_segment *seg)
{
	struct ss_block *b = seg->first, *next;
	struct ss_spares none = {0};

	atomic_fetch_add(&seg->pool->gone, 1);
	ss_recent_end(core);
	pthread_mutex_lock(&core->meta);
	frames_set(core, seg->base, seg->size, NULL);
	pthread_mutex_unlock(&core->meta);
	for (; b; b = next) {
		next = b->next;
		ss_start_set(seg, b->addr, 0);
		ss_block_recycle(core, &none, b);
	}
	ss_spares_return(core, &none, 0);
	/* Zero already, but large: hand the pages back to the kernel. */
	if (seg->table_bytes > 256 * 1024)
		madvise((void *)seg->grains, seg->table_bytes, MADV_DONTNEED);
	pthread_mutex_lock(&core->meta);
	__atomic_store_n(&seg->size, 0, __ATOMIC_RELAXED);
	seg->next = core->spare_segments;
	core->spare_segments = seg;
	pthread_mutex_unlock(&core->meta);
}

void ss_segment_link(struct ss_pool *pool, struct ss_segment *seg)
{
	seg->prev = NULL;
	seg->next = pool->segments;
	if (seg->next)
		seg->next->prev = seg;
	pool->segments = seg;
	pool->segment_count++;
}

void ss_segment_unlink(struct ss_pool *pool, struct ss_segment *seg)
{
	if (seg->prev)
		seg->prev->next = seg->next;
	else
		pool->segments = seg->next;
	if (seg->next)
		seg->next->prev = seg->prev;
	pool->segment_count--;
}

/* ---- for core.c --------------------------------------------------------- */

bool ss_map_init(struct ss_core *core)
{
	core->frames = map_zeroed(sizeof(*core->frames) * LEAVES);
	core->chunks = map_zeroed(sizeof(*core->chunks) * SS_MAX_CHUNKS);
	return core->frames && core->chunks;
}

void ss_map_finish(struct ss_core *core)
{
	struct ss_segment *seg, *next;

	for (seg = core->spare_segments; seg; seg = next) {
		next = seg->next;
		munmap((void *)seg->grains, seg->table_bytes);
		ss_host_free(core, seg, sizeof(*seg));
	}
	for (uint32_t i = 0; core->chunks && i < core->chunk_count; i++)
		ss_host_free(core, core->chunks[i], ss_chunk_bytes());
	if (core->chunks)
		munmap(core->chunks, sizeof(*core->chunks) * SS_MAX_CHUNKS);
	for (unsigned i = 0; core->frames && i < LEAVES; i++) {
		void *leaf = atomic_load(&core->frames[i]);

		if (leaf)
			munmap(leaf, sizeof(void *) << SS_LEAF_BITS);
	}
	if (core->frames)
		munmap(core->frames, sizeof(*core->frames) * LEAVES);
}

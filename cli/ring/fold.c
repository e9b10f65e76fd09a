/* SPDX-License-Identifier: MIT */
/* Moves the beginning of a ring. See fold.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/analysis/trace_memory.h"
#include "cli/ring/base.h"
#include "cli/ring/file.h"
#include "cli/ring/fold.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_tail(const void *a, const void *b)
{
	const struct ss_ring_block *x = a, *y = b;

	return x->tail < y->tail ? -1 : x->tail > y->tail;
}

/* Chooses the new beginning; 0: the old one may stay. Sorts `b`: the blocks that are done come
 * first, the oldest in front. */
static uint64_t choose(const struct ss_ring_file *f, struct ss_ring_block *b, size_t count,
		       uint64_t keep_ns)
{
	uint32_t used = __atomic_load_n(&f->ring->used, __ATOMIC_ACQUIRE), limit = f->ring->limit;
	uint64_t now = now_ns(), begin = 0;
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		if (b[i].magic == SS_TRACE_BLOCK_DONE) {
			struct ss_ring_block first = b[done];
			b[done++] = b[i];
			b[i] = first;
		}
	}
	qsort(b, done, sizeof(*b), by_tail);
	/* An eighth of the time is added, so that not each block that ends moves the beginning. */
	if (done && keep_ns && now > keep_ns + keep_ns / 8 &&
	    b[0].tail < now - keep_ns - keep_ns / 8)
		begin = now - keep_ns;
	if (done && used > limit - limit / 4) {
		size_t more = used - limit / 2;
		uint64_t end = b[(more < done ? more : done) - 1].tail + 1;
		/* Blocks may end late */
		end = end > f->header->begin_ns ? end : f->header->begin_ns + 1;
		begin = end > begin ? end : begin;
	}
	return begin > f->header->begin_ns ? begin : 0;
}

/* Fills in the memory that existed at the new beginning. */
static bool replay(struct ss_trace_memory *m, struct ss_trace_reader *r, uint64_t begin)
{
	struct ss_trace_item e;

	while (ss_trace_reader_next(r, &e) && e.time_ns < begin)
		if (!ss_trace_memory_apply(m, &e))
			return false;
	return true;
}

static bool write_memory(struct ss_ring_base *base, const struct ss_trace_memory *m)
{
	for (int freed = 1; freed >= 0; freed--) {
		struct ss_ranges_walk walk = {0};
		for (const struct ss_range *b = ss_ranges_from(&m->blocks, 0); b;
		     b = ss_ranges_next(&m->blocks, &walk, b))
			if (b->freed == freed)
				ss_ring_base_block(base, b);
	}
	return !base->failed;
}

/* Writes the new base, makes it valid, and frees the blocks that it replaces. */
static bool rewrite(struct ss_ring_file *f, const struct ss_ring_block *b, size_t count,
		    uint64_t begin, const struct ss_trace_memory *m)
{
	struct ss_ring_base base = {.file = f, .begin_ns = begin};
	struct ss_ranges_walk walk = {0};

	/* Definitions of blocks that stay are there anyway. */
	for (size_t i = 0; i < count; i++)
		if ((b[i].magic == SS_TRACE_BLOCK_DONE && b[i].tail < begin) ||
		    (b[i].magic == SS_TRACE_BLOCK_BASE && b[i].tail == f->header->begin_ns))
			ss_ring_base_collect(&base, b[i].number);
	ss_ring_base_definitions(&base);
	for (const struct ss_range *s = ss_ranges_from(&m->mapped, 0); s;
	     s = ss_ranges_next(&m->mapped, &walk, s))
		ss_ring_base_mapped(&base, s);
	write_memory(&base, m);
	for (int device = 0; device < SS_DEVICES; device++)
		ss_ring_base_outside(&base, device, &m->outside[device]);
	if (!ss_ring_base_end(&base))
		return false;
	f->header->base_blocks = base.numbers;
	f->header->base_for_ns = begin;
	__atomic_store_n(&f->header->begin_ns, begin, __ATOMIC_RELEASE);
	for (size_t i = 0; i < count; i++) {
		bool done = b[i].magic == SS_TRACE_BLOCK_DONE && b[i].tail < begin;
		if (done || b[i].magic == SS_TRACE_BLOCK_BASE)
			ss_ring_free(f, b[i].number, done);
	}
	return true;
}

static enum ss_ring_result move_begin(struct ss_ring_file *f, const char *path, uint64_t begin,
				      const struct ss_ring_block *b, size_t count, char *err,
				      size_t err_size)
{
	struct ss_trace_memory m = {0};
	struct ss_sites sites = {0};
	struct ss_trace_reader *r = ss_trace_reader_open_held(path, err, err_size);
	enum ss_ring_result result = SS_RING_FAILED;

	if (!r)
		return SS_RING_FAILED;
	if (!ss_sites_of_stacks(&sites, r) || !ss_trace_memory_init(&m, r, &sites, NULL, NULL) ||
	    !replay(&m, r, begin)) {
		snprintf(err, err_size, "%s: out of memory", path);
	} else if (rewrite(f, b, count, begin, &m)) {
		result = SS_RING_FOLDED;
	} else {
		snprintf(err, err_size, "%s: %s", path,
			 errno == ENOSPC ? "the ring is too small for the blocks that live, or the "
					   "disk is full" :
					   strerror(errno));
	}
	ss_trace_memory_finish(&m);
	free(sites.of_stack);
	ss_trace_reader_close(r);
	return result;
}

enum ss_ring_result ss_ring_fold(const char *path, uint64_t keep_ns, char *err, size_t err_size)
{
	struct ss_ring_file f;
	size_t count = 0;
	enum ss_ring_refusal why;

	/* This does not wait for the lock: a dump that holds it ends before the ring is full. */
	if (!ss_ring_open(&f, path, 0, err, err_size, &why))
		return why == SS_RING_LOCKED ? SS_RING_IDLE : SS_RING_FAILED;
	enum ss_ring_result result = SS_RING_IDLE;
	struct ss_ring_block *b = ss_ring_blocks(&f, &count);
	uint64_t begin = b ? choose(&f, b, count, keep_ns) : 0;
	if (begin)
		result = move_begin(&f, path, begin, b, count, err, err_size);
	free(b);
	ss_ring_close(&f);
	return result;
}

/* SPDX-License-Identifier: MIT */
/*
 * Epochs: one set of marks for many hipFree calls. What hipMalloc gave may be in use on any stream,
 * so a free that did not wait marks all of them; frees between which no stream has moved on share
 * an epoch. Each epoch waits for all that older ones wait for, so they complete in their order.
 *
 * Locks: the pool's, held by the caller.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/pool/reclaim.h"

#define FEW 64 /* marks that fit on the stack of any thread */

static size_t epoch_bytes(uint32_t count)
{
	return sizeof(struct ss_epoch) + count * sizeof(struct ss_mark);
}

/* Do the marks say what the newest epoch says? */
static bool same(const struct ss_epoch *e, const struct ss_mark *mark, size_t count, uint64_t wide)
{
	if (!e || wide || e->wide || e->count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (e->mark[i].slot != mark[i].slot || e->mark[i].n != mark[i].n)
			return false;
	return true;
}

static struct ss_epoch *epoch_new(struct ss_pool *pool, const struct ss_mark *mark, size_t count,
				  uint64_t wide)
{
	struct ss_epoch *e = ss_host_alloc(ss_core_of(pool), epoch_bytes((uint32_t)count));

	if (!e)
		return NULL;
	memcpy(e->mark, mark, count * sizeof(*mark));
	e->count = (uint32_t)count;
	e->wide = wide;
	e->since = ss_now_ms(ss_core_of(pool));
	DL_PREPEND(pool->epochs, e);
	return e;
}

bool ss_epoch_mark(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t wide = ss_wide_needed(core, pool->mem.dev);
	struct ss_mark few[FEW], *mark = few;
	size_t max = FEW, count;
	struct ss_epoch *e = NULL;

	/* A device that has lost its access counts as long as an epoch waits for it. */
	pool->epochs_access = (pool->epochs ? pool->epochs_access : 0) | ss_access(pool);
	while ((count = ss_marks_take(core, pool->mem.dev, pool->epochs_access, mark, max)) > max) {
		if (mark != few)
			free(mark);
		max = count + FEW;
		mark = malloc(max * sizeof(*mark));
		if (!mark)
			return false;
	}
	e = !count                                ? NULL :
	    same(pool->epochs, mark, count, wide) ? pool->epochs :
						    epoch_new(pool, mark, count, wide);
	if (mark != few)
		free(mark);
	if (!e)
		return false;
	ss_set_slot(b, SS_SLOT_EPOCH);
	b->epoch = e;
	ss_pressure_freed(pool, e, b->size);
	return true;
}

void ss_epoch_insert(struct ss_block *b)
{
	struct ss_epoch *e = b->epoch;
	bool exported = b->exported;

	ss_set_free(b, SS_SLOT_EPOCH);
	b->exported = exported;
	b->left = NULL;
	b->right = e->blocks;
	if (e->blocks)
		e->blocks->left = b;
	e->blocks = b;
	e->bytes += b->size;
}

bool ss_epoch_reached(struct ss_pool *pool, struct ss_epoch *e)
{
	const struct ss_mark *m = e->mark;

	if (e->wide && !ss_wide_reached(ss_core_of(pool), pool->mem.dev, e->wide))
		return false;
	/* Where there are a thousand streams, most looks end here. */
	if (!ss_pool_mark_done(pool, m[e->open].slot, m[e->open].n))
		return false;
	for (uint32_t i = 0; i < e->count; i++)
		if (!ss_pool_mark_done(pool, m[i].slot, m[i].n)) {
			e->open = i;
			return false;
		}
	return true;
}

void ss_epoch_free(struct ss_pool *pool, struct ss_epoch *e)
{
	ss_pressure_completed(pool, e);
	DL_DELETE(pool->epochs, e);
	ss_host_free(ss_core_of(pool), e, epoch_bytes(e->count));
}

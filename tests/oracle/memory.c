/* SPDX-License-Identifier: MIT */
/* The owner of each byte, accesses of earlier owners that may not have finished, and statistics. */
#include <string.h>

#include "oracle.h"
#include "core/statistics.h"

#define CLASSIC(w, b) ((b)->stream < 0)

/* May a command on T, with this clock and time, touch the block? */
static bool may_touch(const struct world *w, const struct block *b, int t, const struct node *c)
{
	int dev = w->s[t].dev;

	if (dev != b->dev) {
		uint64_t peers = b->classic ? w->peers[b->dev] : w->pool[b->pool].peers;
		if (!(peers >> dev & 1))
			return false;
	}
	if (c->time <= b->time)
		return false;
	return CLASSIC(w, b) || c->vc.n[b->stream] >= b->pos ||
	       (b->host_time && b->host_time <= c->time);
}

/* Drops what is known to have finished; false if nothing is left. */
static bool prune(const struct world *w, struct clk *c)
{
	int any = 0;

	for (int i = 0; i < NS; i++) {
		c->n[i] = c->n[i] > w->H.n[i] ? c->n[i] : 0;
		any |= c->n[i];
	}
	return any != 0;
}

static int first_after(const struct clk *hz, const struct clk *c)
{
	for (int i = 0; i < NS; i++)
		if (hz->n[i] > c->n[i])
			return i;
	return -1;
}

void kernel_touches(struct world *w, int t)
{
	const struct stream *s = &w->s[t];
	const struct node *c = &w->node[s->node[s->vc.n[t]] - 1];

	for (int i = 0; i < BLOCKS; i++) {
		struct block *b = &w->blk[i];
		if (!b->used || !b->hazardous || !may_touch(w, b, t, c))
			continue;
		b->hazardous = prune(w, &b->hz);
		int by = first_after(&b->hz, &c->vc);
		if (by >= 0)
			fail(w, F_ACCESS,
			     "the kernel on stream %d touches block %d while "
			     "kernel %d of stream %d may still use an earlier block "
			     "there",
			     t, i, b->hz.n[by], by);
	}
}

/* Must this free still be remembered? */
static bool matters(const struct world *w, struct hazard *h)
{
	if (h->stream >= 0 && w->app.n[h->stream] >= h->pos)
		h->stream = -1;
	return prune(w, &h->at) || h->stream >= 0;
}

/* Was the last free of these bytes made usable by a rule that the pool allows? */
static void check_policy(struct world *w, const struct hazard *h, int pool, int x,
			 const struct clk *next)
{
	const struct pool *p = &w->pool[pool];
	const struct stream *s = h->stream >= 0 ? &w->s[h->stream] : NULL;

	if (!s || h->stream == x || !s->alive || x < 0 || pool >= POOLS)
		return;
	if (w->s[x].kind == SS_TL_NULL && s->dev == w->s[x].dev && s->kind == SS_TL_BLOCKING)
		return;
	if ((p->ever_follow || p->ever_internal) && next->n[h->stream] >= h->pos)
		return;
	if (p->ever_opportunistic && w->H.n[h->stream] >= h->pos)
		return;
	fail(w, F_POLICY, "stream %d gets what stream %d freed by a rule that pool %d forbids", x,
	     h->stream, pool);
}

uint64_t memory_of(const struct world *w, int dev, uint64_t lo, uint64_t hi)
{
	uint64_t covered = 0;

	for (int i = 0; i < w->nseg; i++) {
		const struct segment *g = &w->seg[i];
		if (!g->used || g->reservation || !g->addr || g->dev != dev)
			continue;
		uint64_t from = g->addr > lo ? g->addr : lo;
		uint64_t to = g->addr + g->size < hi ? g->addr + g->size : hi;
		covered += to > from ? to - from : 0;
	}
	return covered;
}

void hand_out(struct world *w, int slot, int pool, int dev, int stream, uint64_t size, void *ptr)
{
	struct block *b = &w->blk[slot];
	uint64_t lo = (uint64_t)(uintptr_t)ptr, hi = lo + size;
	uint64_t align = stream < 0 && size >= 65536 ? 4096 : 512;
	struct ss_block_info info;
	struct clk next;
	bool inside = false;

	memset(b, 0, sizeof(*b));
	if (lo & (align - 1))
		fail(w, F_ALIGN, "%#lx is not aligned to %lu", (unsigned long)lo,
		     (unsigned long)align);
	for (int i = 0; i < BLOCKS; i++)
		if (w->blk[i].used && lo < w->blk[i].addr + w->blk[i].size && w->blk[i].addr < hi)
			fail(w, F_OVERLAP, "%#lx+%lu overlaps live block %d at %#lx+%lu",
			     (unsigned long)lo, (unsigned long)size, i,
			     (unsigned long)w->blk[i].addr, (unsigned long)w->blk[i].size);
	inside = memory_of(w, dev, lo, hi) == size;
	if (!inside)
		fail(w, F_OVERLAP, "%#lx+%lu is not wholly memory of device %d", (unsigned long)lo,
		     (unsigned long)size, dev);

	if (stream >= 0)
		stream_next(w, stream, &next);
	else
		memset(&next, 0, sizeof(next));
	for (int i = 0; i < w->nhz;) {
		struct hazard *h = &w->hz[i];
		if (!matters(w, h)) {
			*h = w->hz[--w->nhz];
			continue;
		}
		i++;
		if (h->lo >= hi || h->hi <= lo)
			continue;
		check_policy(w, h, pool, stream, &next);
		if (!prune(w, &h->vc))
			continue;
		int by = first_after(&h->vc, &next);
		if (by >= 0)
			fail(w, F_ORDER,
			     "%#lx+%lu is handed out on stream %d while kernel %d "
			     "of stream %d may still use it",
			     (unsigned long)lo, (unsigned long)size, stream, h->vc.n[by], by);
		clk_join(&b->hz, &h->vc);
		b->hazardous = true;
	}

	memset(&info, 0, sizeof(info));
	if (!ss_lookup(w->core, ptr, &info) || !info.live || info.base != ptr ||
	    info.size != size || info.device != dev || info.id == 0)
		fail(w, F_STATUS, "ss_lookup disagrees about %#lx+%lu (live %d size %lu id %lu)",
		     (unsigned long)lo, (unsigned long)size, info.live, (unsigned long)info.size,
		     (unsigned long)info.id);
	for (int i = 0; i < BLOCKS; i++)
		if (w->blk[i].used && w->blk[i].id == info.id)
			fail(w, F_STATUS, "two live blocks have id %lu", (unsigned long)info.id);
	b->used = true;
	b->classic = stream < 0;
	b->addr = lo;
	b->size = size;
	b->dev = dev;
	b->pool = pool;
	b->stream = stream;
	b->pos = stream >= 0 ? (uint16_t)enqueue(w, stream, CMD_VIRTUAL, NULL) : 0;
	b->time = ++w->time;
	b->id = info.id;
	struct pool *p = &w->pool[pool];
	p->used_bytes += (size + 511) & ~511ull;
	p->allocations++;
	if (p->used_bytes > p->used_high)
		p->used_high = p->used_bytes;
}

bool free_is_legal(const struct world *w, const struct block *b, int stream)
{
	struct clk next;

	if (CLASSIC(w, b) || b->host_time)
		return true;
	stream_next(w, stream, &next);
	return next.n[b->stream] >= b->pos;
}

void let_go(struct world *w, int slot, int stream)
{
	struct block *b = &w->blk[slot];
	struct hazard *h = &w->hz[w->nhz];
	struct clk limit;

	if (w->nhz == HAZARDS) {
		w->full = true;
		return;
	}
	memset(h, 0, sizeof(*h));
	if (stream >= 0)
		stream_next(w, stream, &limit);
	else
		device_clock(w, b->dev, true, &limit);
	h->lo = b->addr;
	h->hi = b->addr + ((b->size + 511) & ~511ull);
	h->at = limit;
	h->at.n[stream >= 0 ? stream : w->null[b->dev]]++; /* the free itself */
	if (b->hazardous)
		h->vc = b->hz;
	for (int t = 0; t < w->nstreams; t++) {
		uint16_t k = limit.n[t] ? w->s[t].kern[limit.n[t]] : 0;
		if (k > w->H.n[t] && k > h->vc.n[t] &&
		    may_touch(w, b, t, &w->node[w->s[t].node[k] - 1]))
			h->vc.n[t] = k;
	}
	/* This free replaces earlier frees of these bytes. */
	for (int i = 0; i < w->nhz; i++)
		if (w->hz[i].lo < h->hi && h->lo < w->hz[i].hi)
			w->hz[i].stream = -1;
	h->stream = b->classic ? -1 : stream;
	h->pos = stream >= 0 ? limit.n[stream] + 1 : 0;
	prune(w, &h->vc);
	if (matters(w, h))
		w->nhz++;
	w->pool[b->pool].used_bytes -= (b->size + 511) & ~511ull;
	w->pool[b->pool].frees++;
	w->stale[w->nstale++ % 16] = b->addr;
	b->used = false;
}

void check_given_back(struct world *w, int dev, uint64_t addr, uint64_t size, bool device_waits)
{
	if (w->resetting == dev + 1)
		return;
	for (int i = 0; i < BLOCKS; i++) {
		const struct block *b = &w->blk[i];
		if (b->used && b->addr < addr + size && addr < b->addr + b->size)
			fail(w, F_OVERLAP, "memory at %#lx is given back under live block %d",
			     (unsigned long)addr, i);
	}
	for (int i = 0; i < w->nhz && !device_waits; i++) {
		struct hazard *h = &w->hz[i];
		if (h->lo < addr + size && addr < h->hi && prune(w, &h->vc))
			fail(w, F_ORDER,
			     "memory at %#lx is given back while a freed block in "
			     "it may still be in use",
			     (unsigned long)addr);
	}
}

void forget_range(struct world *w, uint64_t addr, uint64_t size)
{
	for (int i = 0; i < w->nhz;)
		if (w->hz[i].lo < addr + size && addr < w->hz[i].hi)
			w->hz[i] = w->hz[--w->nhz];
		else
			i++;
}

int pool_of(const struct world *w, const struct ss_pool *p)
{
	for (int i = 0; i < ALLP; i++)
		if (w->pool[i].used && w->pool[i].p == p)
			return i;
	return -1;
}

/* Compares the core's statistics of a pool with the model. The counts of the reuse rules add up to
 * at most the hits, because memory that was never in use counts under no rule. */
static void check_counts(const struct ss_pool_stats *s, void *arg)
{
	struct world *w = arg;
	const struct pool *p = NULL;
	unsigned long number = 0;
	int numbered = sscanf(s->kind, "pool %lu", &number);

	for (int i = 0; i < ALLP && !p; i++) {
		const struct pool *q = &w->pool[i];
		if (!q->used || q->dev != s->device)
			continue;
		if (numbered ? i < POOLS && (q->handle & 0xffffffffffffull) == number :
			       i == (*s->kind == 'd' ? POOL_DEFAULT(q->dev) : POOL_CLASSIC(q->dev)))
			p = q;
	}
	if (!p || p->dying)
		return;
	if (s->allocations != p->allocations || s->frees != p->frees)
		fail(w, F_STATS,
		     "the %s pool counts %lu allocations and %lu frees, not %lu and %lu", s->kind,
		     (unsigned long)s->allocations, (unsigned long)s->frees,
		     (unsigned long)p->allocations, (unsigned long)p->frees);
	if (s->hits + s->misses != s->allocations ||
	    s->reuse_same_stream + s->reuse_event + s->reuse_completed + s->reuse_implicit >
		    s->allocations)
		fail(w, F_STATS,
		     "the %s pool has %lu hits, %lu misses; reuse on the same stream %lu, "
		     "by events %lu, completed %lu, joined %lu of %lu",
		     s->kind, (unsigned long)s->hits, (unsigned long)s->misses,
		     (unsigned long)s->reuse_same_stream, (unsigned long)s->reuse_event,
		     (unsigned long)s->reuse_completed, (unsigned long)s->reuse_implicit,
		     (unsigned long)s->allocations);
}

void check_stats(struct world *w)
{
	uint64_t sum[DEVS] = {0}, v[4];

	ss_stats(w->core, &(struct ss_stats_visitor){.pool = check_counts}, w);

	for (int i = 0; i < ALLP; i++) {
		struct pool *p = &w->pool[i];
		if (!p->used || p->dying)
			continue;
		for (int a = 0; a < 4; a++)
			if (ss_pool_get_attr(p->p, SS_ATTR_RESERVED_CURRENT + a, &v[a]))
				fail(w, F_STATS, "pool %d has no attribute %d", i,
				     SS_ATTR_RESERVED_CURRENT + a);
		if (v[2] != p->used_bytes)
			fail(w, F_STATS, "pool %d: used is %lu, should be %lu", i,
			     (unsigned long)v[2], (unsigned long)p->used_bytes);
		/* A free in progress and an allocation inside it both count. */
		if (w->nested && v[3] > p->used_high)
			p->used_high = v[3];
		if (v[3] != p->used_high)
			fail(w, F_STATS, "pool %d: highest used is %lu, should be %lu", i,
			     (unsigned long)v[3], (unsigned long)p->used_high);
		sum[p->dev] += v[0];
		if (v[0] < v[2])
			fail(w, F_STATS, "pool %d: less reserved (%lu) than used (%lu)", i,
			     (unsigned long)v[0], (unsigned long)v[2]);
		if (v[0] > p->reserved_high)
			p->reserved_high = v[0];
		if (v[1] < p->reserved_high || v[1] > w->given_high[p->dev])
			fail(w, F_STATS,
			     "pool %d: highest reserved is %lu, not between %lu and "
			     "%lu",
			     i, (unsigned long)v[1], (unsigned long)p->reserved_high,
			     (unsigned long)w->given_high[p->dev]);
	}
	for (int d = 0; d < w->cfg.devices; d++)
		/* Destroyed pools keep what is in flight. */
		if (w->ghosts[d] ? sum[d] > w->given[d] : sum[d] != w->given[d])
			fail(w, F_STATS,
			     "device %d: pools say %lu bytes reserved, the driver gave "
			     "%lu",
			     d, (unsigned long)sum[d], (unsigned long)w->given[d]);
	w->nested = false;
}

/* SPDX-License-Identifier: MIT */
/* Executes operations on pools (create, destroy, attributes, trim) and device resets. */
#include <string.h>

#include "oracle.h"

static void pool_enter(struct world *w, int i, int dev, struct ss_pool *p)
{
	struct pool *q = &w->pool[i];

	memset(q, 0, sizeof(*q));
	if (!p || ss_pool_device(p) != dev) {
		fail(w, F_STATUS, "device %d has no pool %d", dev, i);
		return;
	}
	q->used = true;
	q->dev = dev;
	q->p = p;
	q->handle = (uint64_t)(uintptr_t)ss_pool_handle(p);
	q->follow = q->opportunistic = q->internal = true;
	q->threshold = w->cfg.opt.threshold[dev].set ?
			       ss_amount_bytes(&w->cfg.opt.threshold[dev], w->cfg.vram) :
			       0;
	q->threshold_set = w->cfg.opt.threshold[dev].set;
	for (int k = 0; k < ALLP; k++)
		if (k != i && w->pool[k].used && w->pool[k].handle == q->handle)
			fail(w, F_STATUS, "two pools have one handle");
}

void pools_fetch(struct world *w, int dev)
{
	for (int d = 0; d < w->cfg.devices; d++)
		if (dev < 0 || dev == d) {
			pool_enter(w, POOL_DEFAULT(d), d, ss_pool_default(w->core, d));
			pool_enter(w, POOL_CLASSIC(d), d, ss_pool_classic(w->core, d));
		}
}

int pool_pick(const struct world *w, int n, int dev)
{
	n %= POOLS + 2;
	if (n >= POOLS)
		return POOL_DEFAULT(dev);
	return w->pool[n].used && !w->pool[n].dying && w->pool[n].dev == dev ? n :
									       POOL_DEFAULT(dev);
}

uint64_t pool_value(const struct world *w, int pool, enum ss_attr a)
{
	uint64_t v = 0;

	ss_pool_get_attr(w->pool[pool].p, a, &v);
	return v;
}

static void pool_attr(struct world *w, const struct op *op)
{
	int i = op->a % (POOLS + DEVS);
	struct pool *p = &w->pool[i];
	uint64_t v = op->n, expect = SS_OK;
	enum ss_attr a = SS_ATTR_REUSE_FOLLOW_EVENTS + op->b % 8;

	if (!p->used || p->dying)
		return;
	if (a <= SS_ATTR_REUSE_INTERNAL)
		v &= 1;
	else if (a == SS_ATTR_RESERVED_HIGH || a == SS_ATTR_USED_HIGH)
		v = op->c & 3 ? 0 : v;
	if (a == SS_ATTR_RESERVED_CURRENT || a == SS_ATTR_USED_CURRENT ||
	    (a > SS_ATTR_RELEASE_THRESHOLD && v))
		expect = SS_ERR_INVALID;
	enum ss_status st = ss_pool_set_attr(w->core, p->p, a, v);
	if (st != expect)
		fail(w, F_STATUS, "setting attribute %d to %lu gave status %d", a, (unsigned long)v,
		     st);
	if (st)
		return;
	if (a == SS_ATTR_REUSE_FOLLOW_EVENTS)
		p->follow = v;
	else if (a == SS_ATTR_REUSE_OPPORTUNISTIC)
		p->opportunistic = v;
	else if (a == SS_ATTR_REUSE_INTERNAL)
		p->internal = v;
	else if (a == SS_ATTR_RELEASE_THRESHOLD)
		p->threshold = v, p->threshold_set = true;
	else if (a == SS_ATTR_RESERVED_HIGH)
		p->reserved_high = pool_value(w, i, SS_ATTR_RESERVED_CURRENT);
	else if (a == SS_ATTR_USED_HIGH)
		p->used_high = p->used_bytes;
	if (a <= SS_ATTR_RELEASE_THRESHOLD && pool_value(w, i, a) != v)
		fail(w, F_STATUS, "attribute %d reads %lu after %lu was set", a,
		     (unsigned long)pool_value(w, i, a), (unsigned long)v);
}

static void pool_create(struct world *w, const struct op *op)
{
	int i = op->a % POOLS, dev = op->b % w->cfg.devices;
	struct ss_pool *p = NULL;

	if (w->pool[i].used)
		return;
	if (ss_pool_create(w->core, dev, op->flags & 1 ? op->n : 0, &p) || !p) {
		fail(w, F_STATUS, "ss_pool_create failed");
		return;
	}
	pool_enter(w, i, dev, p);
	for (int a = 0; a < 3; a++)
		if (!(op->c >> a & 1)) {
			struct op off = {.kind = OP_POOL_ATTR, .a = (uint8_t)i, .b = (uint8_t)a};
			pool_attr(w, &off);
		}
}

static void pool_destroy(struct world *w, const struct op *op)
{
	struct pool *p = &w->pool[op->a % POOLS];
	void *handle;

	if (w->depth || !p->used || p->dying)
		return;
	handle = ss_pool_handle(p->p);
	p->dying = true; /* no other thread may use it from now on */
	if (ss_pool_destroy(w->core, p->p))
		fail(w, F_STATUS, "ss_pool_destroy failed");
	if (ss_pool_from_handle(w->core, handle) || !ss_pool_is_handle(handle))
		fail(w, F_STATUS, "a dead pool's handle is found");
	w->ghosts[p->dev] = true;
	if (!p->blocks)
		p->used = false;
}

void pool_trim(struct world *w, int i, uint64_t keep)
{
	uint64_t before = pool_value(w, i, SS_ATTR_RESERVED_CURRENT), after;

	w->pool[i].trimmed = true;
	if (ss_pool_trim(w->core, w->pool[i].p, keep))
		fail(w, F_STATUS, "ss_pool_trim failed");
	after = pool_value(w, i, SS_ATTR_RESERVED_CURRENT);
	if (!w->call.hooked && after < (before < keep ? before : keep))
		fail(w, F_RELEASE, "trim to %lu left %lu", (unsigned long)keep,
		     (unsigned long)after);
}

static void blocks_die(struct world *w, int dev)
{
	for (int i = 0; i < BLOCKS; i++)
		if (w->blk[i].used && w->blk[i].dev == dev) {
			w->stale[w->nstale++ % 16] = w->blk[i].addr;
			w->blk[i].used = false;
		}
}

static void reset(struct world *w, int dev)
{
	struct clk all;

	for (int i = 0; i < PAIRS; i++)
		if (w->pair[i].used)
			return;
	if (w->depth || w->nstreams > NS - 6)
		return;
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].dev == dev)
			w->s[i].stuck = 0;
	blocks_die(w, dev);
	device_clock(w, dev, true, &all);
	w->resetting = dev + 1;
	if (w->nstreams & 1) {
		/* After a wait, and what HIP leaves alone goes back. */
		uint64_t peers = ss_reset_waits_for(w->core, dev);

		for (int d = 0; d < w->cfg.devices; d++) {
			if (d != dev && !(peers >> d & 1))
				continue;
			for (int i = 0; i < w->nstreams; i++)
				if (w->s[i].dev == d)
					w->s[i].stuck = 0;
			device_clock(w, d, true, &all);
			finish(w, &all);
			know(w, &all, true);
		}
		ss_device_reset_begin(w->core, dev, true);
	} else {
		ss_device_reset_begin(w->core, dev, false);
		finish(w, &all);
		know(w, &all, true);
	}
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].dev == dev)
			stream_dies(w, i);
	for (int i = 0; i < ALLP; i++)
		if (w->pool[i].used && w->pool[i].dev == dev)
			w->pool[i].used = false;
	blocks_die(w, dev); /* those of other threads */
	device_forget(w, dev);
	ss_device_reset_end(w->core, dev);
	w->resetting = 0;
	w->ghosts[dev] = false;
	w->null[dev] = stream_new(w, dev, SS_TL_NULL, NULL);
	pools_fetch(w, dev);
}

static void nothing(void *arg, uint64_t ms)
{
}

/* What the shim's thread does: it looks, and the next free tells it. Or there is none. */
static void watch(struct world *w, int d, bool any)
{
	ss_decay_watch(w->core, any ? nothing : NULL, NULL);
	(void)ss_decay_next(w->core, d);
}

bool op_pool(struct world *w, const struct op *op)
{
	int s, d = op->b % w->cfg.devices;

	switch (op->kind) {
	case OP_POOL_CREATE: pool_create(w, op); return true;
	case OP_POOL_DESTROY: pool_destroy(w, op); return true;
	case OP_POOL_ATTR: pool_attr(w, op); return true;
	case OP_TRIM:
		if (w->pool[op->a % ALLP].used && !w->pool[op->a % ALLP].dying)
			pool_trim(w, op->a % ALLP, op->n);
		return true;
	case OP_POOL_CURRENT:
		s = pool_pick(w, op->a, d);
		if ((ss_pool_set_current(w->core, d, w->pool[s].p) ||
		     ss_pool_current(w->core, d) != w->pool[s].p) &&
		    w->resetting != d + 1)
			fail(w, F_STATUS, "the current pool is not the one that was set");
		return true;
	case OP_POOL_ACCESS:
		s = pool_pick(w, op->a, d);
		if (ss_pool_set_access(w->pool[s].p, op->c & 3, 0) == SS_OK)
			w->pool[s].peers |= op->c & 3;
		return true;
	case OP_PEERS:
		if (ss_device_add_peers(w->core, d, op->c & 3) == SS_OK)
			w->peers[d] |= op->c & 3;
		return true;
	case OP_HOUSEKEEP:
		if (op->c & 3)
			watch(w, d, op->c & 1);
		else
			ss_decay_run(w->core, d, false);
		return true;
	case OP_RESET: reset(w, d); return true;
	}
	return false;
}

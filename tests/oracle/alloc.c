/* SPDX-License-Identifier: MIT */
/* Executes allocations and frees. */
#include <string.h>

#include "oracle.h"

/* The core made a stream wait. The fence must cover nothing after the free that it was recorded for
 * (the free of the block, or of a neighbour that merged with it). */
static void check_gates(struct world *w, int stream, const struct clk *next)
{
	for (int i = 0; i < w->call.gates; i++) {
		struct clk c = w->fence[w->call.gate[i]].vc;
		bool fine = !kernels_only(w, &c) || w->fence[w->call.gate[i]].raced;
		if (w->call.gate_stream[i] != stream)
			fail(w, F_LATE, "an allocation on stream %d makes stream %d wait", stream,
			     w->call.gate_stream[i]);
		for (int k = 0; k < w->nhz && !fine; k++) {
			fine = true;
			for (int t = 0; t < w->nstreams; t++)
				fine &= c.n[t] <= w->hz[k].at.n[t] || c.n[t] <= next->n[t];
		}
		if (!fine)
			fail(w, F_LATE,
			     "stream %d waits for a fence of stream %d that covers work "
			     "after the free",
			     stream, w->fence[w->call.gate[i]].stream);
	}
}

static bool plain_oom(const struct world *w, int dev, int pool, uint64_t size)
{
	struct clk all;

	device_clock(w, dev, true, &all);
	return w->given[dev] == 0 && clk_done(w, &all) && pool >= POOLS &&
	       size + (64ull << 20) <= w->cfg.vram;
}

/* Memory that a pool took before it failed may stay as idle memory in two cases: if giving back
 * waits for the device, and beside a capture, in which the null stream cannot join. */
static bool keeps_growth(const struct world *w, int stream)
{
	bool captures = false;

	for (int i = 0; i < w->nstreams; i++)
		captures |= w->s[i].alive && w->s[i].capturing;
	return (w->cfg.vmm && w->cfg.access_prefix && w->cfg.release_waits[SS_BACKING_VMM]) ||
	       (captures && stream >= 0 && w->s[stream].kind == SS_TL_NULL);
}

/* stream < 0: hipMalloc. Returns the block's address or 0. */
static void allocate(struct world *w, int slot, int pool, int dev, int stream, uint64_t size)
{
	uint64_t used = pool_value(w, pool, SS_ATTR_USED_CURRENT);
	uint64_t given = w->given[dev];
	struct clk next;
	void *ptr = NULL;
	enum ss_status st;

	if (stream >= 0)
		stream_next(w, stream, &next);
	else
		memset(&next, 0, sizeof(next));
	w->pool[pool].ever_follow |= w->pool[pool].follow;
	w->pool[pool].ever_opportunistic |= w->pool[pool].opportunistic;
	w->pool[pool].ever_internal |= w->pool[pool].internal;
	w->call.in_alloc = true;
	w->call.pool = pool;
	w->call.size = size;
	if (stream >= 0 && w->s[stream].kind == SS_TL_NULL) {
		w->call.joining = dev + 1;
		w->call.own = stream + 1; /* what it takes there, the next command joins */
	}
	if (stream >= 0) {
		w->s[stream].busy++;
		st = ss_alloc_async(w->core, w->pool[pool].p, w->s[stream].tl, size, &ptr);
		w->s[stream].busy--;
	} else {
		w->call.in_classic = true;
		st = ss_alloc_classic(w->core, dev, size, &ptr);
		w->call.in_classic = false;
	}
	w->call.in_alloc = false;
	w->call.own = 0;
	if (w->verbose)
		fprintf(stderr, "%*s     -> %d %p\n", w->depth * 4, "", st, ptr);
	if (w->blk[slot].used)
		fail(w, F_CRASH, "the oracle lost block %d", slot);
	if (st == SS_OK) {
		check_gates(w, stream, &next);
		hand_out(w, slot, pool, dev, stream, size, ptr);
		w->pool[pool].blocks++;
		return;
	}
	if (w->call.hooked || (w->resetting == dev + 1 && st == SS_ERR_NO_DEVICE))
		return;
	if (st != SS_ERR_NOMEM && !w->call.injected)
		fail(w, F_STATUS, "an allocation failed with status %d", st);
	/* SOMASHIM_INITIAL is reserved even if the first use of the device fails. */
	if (!given && w->cfg.opt.initial.set)
		given = w->cfg.opt.initial.bytes;
	if (pool_value(w, pool, SS_ATTR_USED_CURRENT) != used ||
	    (w->given[dev] > given && !keeps_growth(w, stream)))
		fail(w, F_ATOMIC,
		     "a failed allocation left used %lu (was %lu), reserved %lu "
		     "(was %lu)",
		     (unsigned long)pool_value(w, pool, SS_ATTR_USED_CURRENT), (unsigned long)used,
		     (unsigned long)w->given[dev], (unsigned long)given);
	/* Inside another call's map the core cannot wait for its turn here. */
	if (!w->call.injected && !w->depth && plain_oom(w, dev, pool, size))
		fail(w, F_MISS, "an empty device has no room for %lu bytes", (unsigned long)size);
}

static void pool_lost_block(struct world *w, int i)
{
	struct pool *p = &w->pool[i];

	if (--p->blocks == 0 && p->dying)
		p->used = false;
}

static void free_classic(struct world *w, int slot, const struct op *op)
{
	struct block *b = &w->blk[slot];
	bool waited = op->flags & OPF_WAITED;
	uint64_t addr = b->addr, id = b->id;
	int dev = b->dev, pool = b->pool;
	struct ss_token t;
	struct clk c, null;

	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].capturing)
			return;
	if (op->flags & OPF_INNER)
		addr += op->n % b->size;
	w->call.joining = dev + 1; /* the real hipFree joins, whether or not we wait */
	if (!waited)
		w->call.own = w->null[dev] + 1; /* if much is under way it may wait for that, too */
	if (waited) {
		/* A wait for the whole device covers more than a wait for one stream after the
		 * other. */
		bool wide = w->distrusted && op->c & 1;
		memset(&c, 0, sizeof(c));
		for (int i = 0; i < w->nstreams; i++)
			if (w->s[i].dev == dev && (wide || (w->s[i].alive && !w->s[i].unseen)))
				clk_join(&c, &w->s[i].vc);
		/* The null stream also waits for blocking streams that nobody knows. */
		stream_next(w, w->null[dev], &null);
		clk_join(&c, &null);
		if (!can_finish(w, &c))
			return;
		w->call.natively_waits = dev + 1;
		t = wide ? ss_device_sync_begin(w->core, dev) : ss_streams_sync_begin(w->core, dev);
		if (!b->used || b->id != id) { /* another thread was faster */
			ss_sync_end(w->core, &t, false, false);
			return;
		}
		finish(w, &c);
		know(w, &c, true);
	}
	let_go(w, slot, -1);
	if (w->full)
		return;
	enum ss_status st = ss_free_classic(w->core, (void *)(uintptr_t)addr, waited ? &t : NULL);
	w->call.own = 0;
	if (st)
		fail(w, F_STATUS, "hipFree of block %d gave status %d", slot, st);
	pool_lost_block(w, pool);
}

static void op_free(struct world *w, const struct op *op)
{
	int slot = op->a % BLOCKS;
	struct block *b = &w->blk[slot];
	int s = b->used ? stream_at(w, op->b) : -1;

	if (s < 0 || w->s[s].capturing || !free_is_legal(w, b, s) ||
	    (w->s[s].dev != b->dev && b->classic))
		return;
	void *ptr = (void *)(uintptr_t)(b->addr + (op->flags & OPF_INNER ? op->n % b->size : 0));
	int pool = b->pool;
	if (b->classic) {
		if (ss_free_async(w->core, ptr, w->s[s].tl) != SS_ERR_CLASSIC)
			fail(w, F_STATUS, "hipFreeAsync of hipMalloc's block %d", slot);
		else
			free_classic(w, slot, op);
		return;
	}
	let_go(w, slot, s);
	enqueue(w, s, CMD_VIRTUAL, NULL);
	if (w->full)
		return;
	if (w->s[s].kind == SS_TL_NULL)
		w->call.joining = w->s[s].dev + 1;
	w->s[s].busy++;
	enum ss_status st = ss_free_async(w->core, ptr, w->s[s].tl);
	w->s[s].busy--;
	if (st)
		fail(w, F_STATUS, "hipFreeAsync of block %d gave status %d", slot, st);
	pool_lost_block(w, pool);
}

/* Frees and allocates the same size on the same stream, which must be a hit. */
static void swap(struct world *w, const struct op *op)
{
	struct block old = w->blk[op->a % BLOCKS];
	uint64_t calls = 0;
	struct op f = {.kind = OP_FREE, .a = op->a, .b = op->b};
	int s;

	if (!old.used || old.classic || w->pool[old.pool].dying || w->hook ||
	    (s = stream_at(w, op->b)) < 0 || w->s[s].dev != old.dev)
		return;
	op_free(w, &f);
	if (w->blk[op->a % BLOCKS].used || w->fail_class || !w->pool[old.pool].used)
		return;
	/* The null stream may have to join the blocking streams, which takes a fence. */
	int fences = w->s[s].kind == SS_TL_NULL ? D_RECORD : -1;
	for (int i = 0; i < DEVICE_OPS; i++)
		calls += i == fences ? 0 : w->calls[i];
	allocate(w, op->a % BLOCKS, old.pool, old.dev, s, old.size);
	for (int i = 0; i < DEVICE_OPS; i++)
		calls -= i == fences ? 0 : w->calls[i];
	for (int i = 0; i < w->nstreams; i++) /* then it cannot join */
		if (fences >= 0 && (w->call.injected || (w->s[i].alive && w->s[i].capturing)))
			return;
	if (calls && w->resetting != old.dev + 1)
		fail(w, F_MISS,
		     "an allocation after a free of its size on its stream called "
		     "the driver");
}

static void free_bad(struct world *w, const struct op *op)
{
	uint64_t addr = w->stale[op->a % 16];
	int s = stream_at(w, op->b);
	enum ss_status st;

	if (!addr || s < 0 || w->s[s].capturing || w->depth)
		return;
	for (int i = 0; i < BLOCKS; i++)
		if (w->blk[i].used && w->blk[i].addr <= addr &&
		    addr < w->blk[i].addr + w->blk[i].size)
			return;
	if (op->c & 2)
		st = ss_free_classic(w->core, (void *)(uintptr_t)addr, NULL);
	else
		st = ss_free_async(w->core, (void *)(uintptr_t)addr, w->s[s].tl);
	if (st != SS_ERR_INVALID && st != SS_ERR_FOREIGN)
		fail(w, F_STATUS, "a free of %#lx, where no block is, gave status %d",
		     (unsigned long)addr, st);
}

void memory_finish(struct world *w)
{
	struct op f = {.kind = OP_FREE_CLASSIC, .flags = OPF_WAITED};

	for (int i = 0; i < BLOCKS; i++)
		if (w->blk[i].used)
			free_classic(w, i, &f);
	/* A failure that was injected for the frees must not make a synchronization fail. */
	w->call.injected = false;
	for (int round = 0; round < 2; round++)
		for (int d = 0; d < w->cfg.devices; d++) {
			struct op sync = {.kind = OP_DEVICE_SYNC, .b = (uint8_t)d};
			op_sync(w, &sync);
		}
	for (int i = 0; i < ALLP; i++)
		if (w->pool[i].used && !w->fail_class)
			pool_trim(w, i, 0);
	/* If giving back waits for the device, a trim is done at the next call that waits. */
	for (int d = 0; d < w->cfg.devices; d++) {
		w->call.natively_waits = d + 1;
		ss_decay_run(w->core, d, true);
	}
	w->call.natively_waits = 0;
	for (int d = 0; d < w->cfg.devices; d++)
		if (w->given[d] && !w->fail_class)
			fail(w, F_LEAK,
			     "device %d: %lu bytes stay reserved after all was freed, "
			     "finished and trimmed",
			     d, (unsigned long)w->given[d]);
	check_stats(w);
}

bool op_memory(struct world *w, const struct op *op)
{
	int slot = op->a % BLOCKS, s, d = op->b % w->cfg.devices;

	switch (op->kind) {
	case OP_ALLOC:
		if (w->blk[slot].used || (s = stream_at(w, op->b)) < 0 || w->s[s].capturing)
			return true;
		/* An operation inside this one may fill the slot; then it is not ours. */
		if (w->hook || w->depth)
			slot = slot / 2 * 2 + (w->depth ? 1 : 0);
		if (!w->blk[slot].used)
			allocate(w, slot, pool_pick(w, op->c, w->s[s].dev), w->s[s].dev, s, op->n);
		return true;
	case OP_ALLOC_CLASSIC:
		if (w->hook || w->depth)
			slot = slot / 2 * 2 + (w->depth ? 1 : 0);
		if (!w->blk[slot].used)
			allocate(w, slot, POOL_CLASSIC(d), d, -1, op->n);
		return true;
	case OP_FREE: op_free(w, op); return true;
	case OP_SWAP: swap(w, op); return true;
	case OP_FREE_CLASSIC:
		if (w->blk[slot].used)
			free_classic(w, slot, op);
		return true;
	case OP_FREE_BAD: free_bad(w, op); return true;
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * The driver that the core uses under the oracle. Fences are commands of the model. Memory is only
 * bookkeeping, and addresses and handles are reused as soon as possible. Operations of "other
 * threads" may run inside any call.
 */
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

const char *const device_ops[DEVICE_OPS] = {
	"segment_alloc",  "vmm_reserve",   "chunk_create",  "map",         "set_access",
	"segment_access", "fence_record",  "fence_wait",    "fence_query", "mem_info",
	"segment_free",   "vmm_unreserve", "chunk_release", "unmap",
};

/* Begins a call: counts it, runs operations of other threads, injects failures. */
enum ss_status device_enter(struct world *w, int op)
{
	w->calls[op]++;
	if (w->hook && w->hook_at == 0)
		run_hook(w);
	if (w->inject[op].on && (w->inject[op].always || --w->inject[op].nth == 0)) {
		w->inject[op].on = w->inject[op].always;
		w->call.injected = true;
		return w->inject[op].status;
	}
	return SS_OK;
}

enum ss_status device_leave(struct world *w, enum ss_status st)
{
	if (w->hook && w->hook_at == 1)
		run_hook(w);
	return st;
}

static int device_count(void *ctx)
{
	return ((struct world *)ctx)->cfg.devices;
}

static enum ss_status device_info(void *ctx, int dev, struct ss_device_info *out)
{
	struct world *w = ctx;

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "oracle");
	out->total_bytes = w->cfg.vram;
	out->chunk_bytes = w->cfg.vmm ? w->cfg.chunk : 0;
	out->query_spoils = w->cfg.query_spoils;
	out->access_prefix = w->cfg.access_prefix;
	memcpy(out->release_waits, w->cfg.release_waits, sizeof(out->release_waits));
	return dev < w->cfg.devices ? SS_OK : SS_ERR_NO_DEVICE;
}

static enum ss_status mem_info(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_MEM_INFO);

	if (st)
		return st;
	if (free_bytes)
		*free_bytes = w->cfg.vram - w->given[dev];
	if (total)
		*total = w->cfg.vram;
	return device_leave(w, SS_OK);
}

/* ---- memory ------------------------------------------------------------- */

static struct segment *segment_new(struct world *w)
{
	for (int i = 0; i < w->nseg; i++)
		if (!w->seg[i].used)
			return &w->seg[i];
	return w->nseg < SEGMENTS ? &w->seg[w->nseg++] : NULL;
}

static uint64_t address(struct world *w, uint64_t size)
{
	for (int i = w->nspare - 1; i >= 0; i--)
		if (w->spare_size[i] == size && rnd(&w->rng) % 4) {
			uint64_t addr = w->spare_addr[i];
			w->nspare--;
			w->spare_addr[i] = w->spare_addr[w->nspare];
			w->spare_size[i] = w->spare_size[w->nspare];
			return addr;
		}
	uint64_t addr = w->next_addr;
	w->next_addr += size;
	return addr;
}

static void address_back(struct world *w, uint64_t addr, uint64_t size)
{
	if (w->nspare == 64)
		w->nspare = 32;
	w->spare_addr[w->nspare] = addr;
	w->spare_size[w->nspare++] = size;
}

static bool give(struct world *w, int dev, uint64_t size)
{
	if (w->given[dev] + size > w->cfg.vram)
		return false;
	w->given[dev] += size;
	if (w->given[dev] > w->given_high[dev])
		w->given_high[dev] = w->given[dev];
	return true;
}

static struct segment *find(struct world *w, int dev, uint64_t addr, bool res, bool chunk)
{
	for (int i = 0; i < w->nseg; i++) {
		struct segment *g = &w->seg[i];
		if (g->used && g->reservation == res && g->chunk == chunk && g->dev == dev &&
		    g->addr == addr)
			return g;
	}
	return NULL;
}

static enum ss_status segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
				    uint64_t peers, void **ptr)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_SEGMENT_ALLOC);
	struct segment *g;

	if (st)
		return st;
	if (size == 0 || size % (2 << 20) || backing == SS_BACKING_VMM)
		fail(w, F_DRIVER, "segment of %zu bytes on backing %d", size, backing);
	if (!(g = segment_new(w)) || !give(w, dev, size))
		return SS_ERR_NOMEM;
	*g = (struct segment){.used = true,
			      .dev = dev,
			      .backing = backing,
			      .addr = address(w, size),
			      .size = size};
	*ptr = (void *)(uintptr_t)g->addr;
	return device_leave(w, SS_OK);
}

/* Is there a kernel that has not ended? Markers do not count. */
static bool busy(const struct world *w, const struct clk *c)
{
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].kern[c->n[i]] > w->done.n[i])
			return true;
	return false;
}

/* A real hipFree waits for the device. The core is not to blame for what other threads enqueue
 * after its own wait, or after it has found the device idle: no answer holds longer than until the
 * next launch. */
static void release_waits(struct world *w, int dev, enum ss_backing backing)
{
	struct clk all, before;

	device_clock(w, dev, true, &all);
	if (!w->cfg.release_waits[backing] || clk_done(w, &all))
		return;
	before = w->call.since ? w->call.since[dev] : w->call.hooked ? w->unhooked[dev] : all;
	if (w->call.injected)
		; /* a mapping that failed half way goes again, whatever it waits for */
	else if (!can_finish(w, &before))
		fail(w, F_BLOCKS, "giving memory back waits for a persistent kernel");
	else if (w->call.natively_waits != dev + 1 && !w->call.in_alloc && busy(w, &before))
		fail(w, F_RELEASE,
		     "giving memory back waits for the device in a call that "
		     "does not");
	if (!can_finish(w, &all))
		for (int i = 0; i < w->nstreams; i++)
			w->s[i].stuck = 0;
	finish(w, &all);
	know(w, &all, true);
}

static enum ss_status segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				   size_t size)
{
	struct world *w = ctx;
	struct segment *g;

	device_enter(w, D_SEGMENT_FREE);
	g = find(w, dev, (uint64_t)(uintptr_t)ptr, false, false);
	if (!g || g->size != size || g->backing != backing) {
		fail(w, F_DRIVER, "%p (%zu bytes) is given back but was never given", ptr, size);
		return SS_ERR_INVALID;
	}
	release_waits(w, dev, backing);
	check_given_back(w, dev, g->addr, size, w->cfg.release_waits[backing]);
	forget_range(w, g->addr, size);
	g->used = false;
	w->given[dev] -= size;
	address_back(w, g->addr, size);
	return device_leave(w, SS_OK);
}

static enum ss_status segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
				     size_t size, uint64_t peers)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_SEGMENT_ACCESS);

	return st ? st : device_leave(w, SS_OK);
}

static enum ss_status vmm_reserve(void *ctx, int dev, size_t size, void **va)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_RESERVE);
	struct segment *g = st ? NULL : segment_new(w);

	if (!g)
		return st ? st : SS_ERR_NOMEM;
	*g = (struct segment){.used = true,
			      .reservation = true,
			      .dev = dev,
			      .addr = address(w, size),
			      .size = size};
	*va = (void *)(uintptr_t)g->addr;
	return device_leave(w, SS_OK);
}

static enum ss_status vmm_unreserve(void *ctx, int dev, void *va, size_t size)
{
	struct world *w = ctx;
	struct segment *g;

	device_enter(w, D_UNRESERVE);
	g = find(w, dev, (uint64_t)(uintptr_t)va, true, false);
	if (!g || g->size != size) {
		fail(w, F_DRIVER, "%p is unreserved but was never reserved", va);
		return SS_ERR_INVALID;
	}
	for (int i = 0; i < w->nseg; i++)
		if (w->seg[i].used && w->seg[i].chunk && w->seg[i].addr >= g->addr &&
		    w->seg[i].addr < g->addr + size)
			fail(w, F_DRIVER, "%p is unreserved with memory mapped", va);
	g->used = false;
	address_back(w, g->addr, size);
	return device_leave(w, SS_OK);
}

static enum ss_status chunk_create(void *ctx, int dev, size_t size, void **chunk)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_CHUNK);
	struct segment *g;

	if (st)
		return st;
	if (size == 0 || size % w->cfg.chunk)
		fail(w, F_DRIVER, "chunk of %zu bytes", size);
	if (!(g = segment_new(w)) || !give(w, dev, size))
		return SS_ERR_NOMEM;
	*g = (struct segment){.used = true, .chunk = true, .dev = dev, .size = size};
	*chunk = g;
	return device_leave(w, SS_OK);
}

static enum ss_status chunk_release(void *ctx, int dev, void *chunk, size_t size)
{
	struct world *w = ctx;
	struct segment *g = chunk;

	device_enter(w, D_RELEASE);
	if (!g->used || !g->chunk || g->size != size || g->addr) {
		fail(w, F_DRIVER, "a chunk is released that is not ours or still mapped");
		return SS_ERR_INVALID;
	}
	g->used = false;
	w->given[dev] -= size;
	return device_leave(w, SS_OK);
}

static enum ss_status map(void *ctx, int dev, void *va, size_t size, void *chunk)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_MAP);
	struct segment *g = chunk;
	uint64_t addr = (uint64_t)(uintptr_t)va;

	if (st)
		return st;
	if (!g->used || !g->chunk || g->size != size || g->addr)
		fail(w, F_DRIVER, "map of a chunk that is not ours, or mapped");
	for (int i = 0; i < w->nseg; i++)
		if (w->seg[i].used && w->seg[i].chunk && w->seg[i].addr &&
		    w->seg[i].addr < addr + size && addr < w->seg[i].addr + w->seg[i].size)
			fail(w, F_DRIVER, "map over a mapping at %p", va);
	g->addr = addr;
	return device_leave(w, SS_OK);
}

static enum ss_status unmap(void *ctx, int dev, void *va, size_t size)
{
	struct world *w = ctx;
	struct segment *g;

	device_enter(w, D_UNMAP);
	g = find(w, dev, (uint64_t)(uintptr_t)va, false, true);
	if (!g || g->size != size) {
		fail(w, F_DRIVER, "unmap of %p, which is not mapped", va);
		return SS_ERR_INVALID;
	}
	release_waits(w, dev, SS_BACKING_VMM);
	/* What is live was saved, and all devices are idle. */
	if (!w->sleeping) {
		check_given_back(w, dev, g->addr, size, false);
		forget_range(w, g->addr, size);
	}
	g->addr = 0;
	return device_leave(w, SS_OK);
}

static enum ss_status set_access(void *ctx, int dev, void *va, size_t size, uint64_t peers)
{
	struct world *w = ctx;
	enum ss_status st = device_enter(w, D_SET_ACCESS);
	uint64_t from = (uint64_t)(uintptr_t)va, covered = 0;
	struct segment *g = find(w, dev, from, true, false);
	bool behind = false; /* another chunk of the same reservation */

	for (int i = 0; i < w->nseg && !g; i++)
		behind |= w->seg[i].used && w->seg[i].chunk &&
			  w->seg[i].addr + w->seg[i].size == from;
	/* A run of chunks is tried as a whole, from the reservation or from the last gap. Only the
	 * end of a run that was refused may be tried alone. */
	if (st) {
		w->refused_end = behind ? 0 : from + size;
		return st;
	}
	if (w->cfg.access_prefix && behind && from + size != w->refused_end)
		fail(w, F_DRIVER, "access from %p on, where no reservation begins", va);
	for (int i = 0; i < w->nseg; i++)
		if (w->seg[i].used && w->seg[i].chunk && w->seg[i].addr >= from &&
		    w->seg[i].addr < from + size)
			covered += w->seg[i].size;
	if (covered != size)
		fail(w, F_DRIVER, "access to %zu bytes at %p, of which %lu are mapped", size, va,
		     (unsigned long)covered);
	return st ? st : device_leave(w, SS_OK);
}

/* ---- the rest ----------------------------------------------------------- */

struct ss_driver device_driver(struct world *w)
{
	struct ss_driver drv = {
		.ctx = w,
		.device_count = device_count,
		.device_info = device_info,
		.mem_info = mem_info,
		.segment_alloc = segment_alloc,
		.segment_free = segment_free,
		.segment_access = segment_access,
		.vmm_reserve = vmm_reserve,
		.vmm_unreserve = vmm_unreserve,
		.chunk_create = chunk_create,
		.chunk_release = chunk_release,
		.map = map,
		.unmap = unmap,
		.set_access = set_access,
	};

	device_fences(&drv);
	return drv;
}

void *device_handle(struct world *w)
{
	if (w->nspare_handle)
		return (void *)(uintptr_t)w->spare_handle[--w->nspare_handle];
	return (void *)(uintptr_t)(0x1000 + 16 * w->next_handle++);
}

void device_handle_back(struct world *w, void *h)
{
	if (w->nspare_handle < 32)
		w->spare_handle[w->nspare_handle++] = (uint64_t)(uintptr_t)h;
}

void device_forget(struct world *w, int dev)
{
	for (int i = 0; i < w->nseg; i++)
		if (w->seg[i].used && w->seg[i].dev == dev) {
			if (!w->seg[i].chunk)
				forget_range(w, w->seg[i].addr, w->seg[i].size);
			w->seg[i].used = false;
		}
	w->given[dev] = 0;
	for (int i = 0; i < w->nfence; i++)
		if (w->fence[i].used && w->fence[i].dev == dev) {
			w->fence[i].used = false;
			w->fence[i].gone = true;
			w->live_fences--;
		}
}

void device_check_leaks(struct world *w)
{
	int segments = 0;

	for (int i = 0; i < w->nseg; i++)
		segments += w->seg[i].used;
	if (segments || w->given[0] || w->given[1])
		fail(w, F_LEAK, "%d segments (%lu and %lu bytes) were not given back", segments,
		     (unsigned long)w->given[0], (unsigned long)w->given[1]);
	if (w->live_fences)
		fail(w, F_LEAK, "%d fences were not released", w->live_fences);
}

/* SPDX-License-Identifier: MIT */
/*
 * Guarded segments. Each is a reservation of its own, and the addresses after its memory have none,
 * so that the device faults there. When the memory was released, the addresses stay reserved for a
 * while, so that they are not used again, and the device faults at a late access, too.
 *
 * Locks: the memory's lock, dropped for the driver; `guards->lock` for the addresses, a leaf, not
 * held across a driver call.
 */
#include "core/backing/segment.h"
#include "core/core.h"

/* ---- addresses without memory ----------------------------------------------- */

/* The most that a process keeps; the oldest are released first. */
#define MOST_BYTES (64ull << 30)
#define MOST_COUNT 4096u

/* The addresses belong to no segment from now on. No lock held. */
static void unmapped_add(struct ss_core *core, int dev, void *va, uint64_t size)
{
	struct ss_guards *k = &core->backing->guards;
	struct ss_gone *g = ss_host_alloc(core, sizeof(*g)), *old;

	if (!g) {
		core->drv.vmm_unreserve(core->drv.ctx, dev, va, size);
		return;
	}
	*g = (struct ss_gone){.va = va, .size = size, .dev = dev};

	pthread_mutex_lock(&k->lock);
	*k->newest = g;
	k->newest = &g->next;
	k->bytes += g->size;
	k->count++;
	while ((old = k->oldest) && (k->bytes > MOST_BYTES || k->count > MOST_COUNT)) {
		k->oldest = old->next;
		if (!k->oldest)
			k->newest = &k->oldest;
		k->bytes -= old->size;
		k->count--;
		pthread_mutex_unlock(&k->lock);
		core->drv.vmm_unreserve(core->drv.ctx, old->dev, old->va, old->size);
		ss_host_free(core, old, sizeof(*old));
		pthread_mutex_lock(&k->lock);
	}
	pthread_mutex_unlock(&k->lock);
}

bool ss_unmapped(struct ss_core *core, const void *ptr)
{
	struct ss_guards *k = &core->backing->guards;
	const struct ss_gone *g;

	pthread_mutex_lock(&k->lock);
	for (g = k->oldest; g && (uintptr_t)ptr - (uintptr_t)g->va >= g->size; g = g->next)
		;
	pthread_mutex_unlock(&k->lock);
	return g != NULL;
}

/* ---- one segment ------------------------------------------------------------------ */

/* The size that can be released in one piece, and so the smallest. */
static uint64_t unit_of(const struct ss_memory *m)
{
	return ss_max(m->core->info[m->dev].chunk_bytes, SS_FRAME);
}

enum ss_status ss_guard_open(struct ss_memory *m, void *va, uint64_t size)
{
	return SS_DRIVE_MAP(m, set_access, va, size, atomic_load(&m->peers));
}

/* Takes memory for va, and opens it. If *chunk is set in spite of a failure, the driver refuses
 * to take the chunk back, or would wait for the device. */
static enum ss_status fill(struct ss_memory *m, void *va, uint64_t size, void **chunk)
{
	struct ss_core *core = m->core;
	enum ss_status s = SS_DRIVE_ALLOC(m, chunk_create, size, chunk);
	bool back = true;

	if (s != SS_OK) {
		*chunk = NULL;
		return s;
	}
	s = SS_DRIVE_MAP(m, map, va, size, *chunk);
	if (s == SS_OK) {
		s = ss_guard_open(m, va, size);
		back = s == SS_OK || !core->info[m->dev].keep_unopened;
		if (s == SS_OK && core->drv.settle)
			s = SS_DRIVE_MAP(m, settle, va, size);
		back = back && !core->info[m->dev].unmap_waits_all;
		if (s != SS_OK && back)
			back = SS_DRIVE_FREE(m, unmap, va, size) == SS_OK;
	}
	if (s != SS_OK && back) {
		(void)SS_DRIVE_FREE(m, chunk_release, *chunk, size);
		*chunk = NULL;
	}
	return s;
}

enum ss_status ss_guard_return(struct ss_memory *m, void *va, uint64_t size, void *chunk)
{
	enum ss_status s = SS_DRIVE_FREE(m, unmap, va, size);

	if (s != SS_OK)
		return s;
	(void)SS_DRIVE_FREE(m, chunk_release, chunk, size);
	atomic_fetch_sub(&m->guarded, 1);
	unmapped_add(m->core, m->dev, va, size + unit_of(m));
	return SS_OK;
}

enum ss_status ss_guard_add(struct ss_memory *m, uint64_t bytes, struct ss_segment **out)
{
	uint64_t size = ss_round(bytes, unit_of(m)), peers = atomic_load(&m->peers);
	struct ss_core *core = m->core;
	void *va = NULL, *chunk = NULL;
	enum ss_status s;

	if (!ss_cap_take(m, size))
		return SS_ERR_NOMEM;
	s = SS_DRIVE_MAP(m, vmm_reserve, size + unit_of(m), &va);
	if (s == SS_OK)
		s = (uintptr_t)va % SS_FRAME ? SS_ERR_FAILED : fill(m, va, size, &chunk);
	if (s == SS_OK) {
		atomic_fetch_add(&m->guarded, 1);
		s = ss_segment_enter(m, va, size, chunk, peers, out);
		if (s != SS_OK && !core->info[m->dev].unmap_waits_all &&
		    ss_guard_return(m, va, size, chunk) == SS_OK)
			ss_cap_return(m, size);
		return s;
	}
	if (va && !chunk)
		core->drv.vmm_unreserve(core->drv.ctx, m->dev, va, size + unit_of(m));
	if (!chunk)
		ss_cap_return(m, size);
	return s;
}

void ss_guards_unmap(struct ss_memory *m)
{
	pthread_mutex_lock(&m->lock);
	for (struct ss_segment *seg = m->segments; seg; seg = seg->next) {
		if (!seg->chunk)
			continue;
		seg->opening = true; /* seg stays in the list, and so do the segments after it */
		pthread_mutex_unlock(&m->lock);
		m->core->drv.unmap(m->core->drv.ctx, m->dev, seg->native, seg->native_size);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}

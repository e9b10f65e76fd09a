/* SPDX-License-Identifier: MIT */
/*
 * The addresses of a pool on virtual memory, and the turn of the thread that may change the
 * mappings there.
 *
 * Locks: the memory's lock, dropped for the driver.
 */
#include <stdlib.h>

#include "core/backing/segment.h"
#include "core/backing/vmm.h"

#define ADDRESSES (1ull << 47) /* of a process */

/* ---- one thread changes the mappings -------------------------------------------- */

/* One thread maps at a time: with access_prefix there must be no gap below, and two threads
 * often lack the same memory. Up to 7.13 the wait adds no deadlock, because the waiter's own map
 * would wait for the same streams; docs/known-problems.md (V21) has later versions. */
bool ss_memory_claim(struct ss_memory *m, bool wait, bool *waited)
{
	bool mine, awake;

	pthread_mutex_lock(&m->lock);
	/* The runtime may call back from inside a map, and that call must not wait for itself. */
	if (m->mapping && pthread_equal(m->mapper, pthread_self()))
		wait = false;
	if (waited)
		*waited = wait && m->mapping;
	while (wait && m->mapping) {
		if (atomic_load(&m->sleeps) && m->core->watch.wake) {
			pthread_mutex_unlock(&m->lock);
			awake = m->core->watch.wake();
			pthread_mutex_lock(&m->lock);
			if (!m->mapping || !awake)
				break;
		}
		pthread_cond_wait(&m->mapped, &m->lock);
	}
	mine = !m->mapping;
	if (mine) {
		m->mapping = true;
		m->mapper = pthread_self();
	}
	pthread_mutex_unlock(&m->lock);
	return mine;
}

/* Gives access to new devices. The driver knows which devices are new. */
static void reopen(struct ss_memory *m)
{
	enum ss_status s = SS_OK;

	pthread_mutex_lock(&m->lock);
	if (atomic_load(&m->guarded))
		s = ss_segments_open(m);
	pthread_mutex_unlock(&m->lock);
	if (s == SS_OK && m->vmm)
		s = ss_chunks_open(m);
	if (s != SS_OK)
		atomic_store(&m->reopen, true);
}

void ss_memory_unclaim(struct ss_memory *m)
{
	if (atomic_exchange(&m->reopen, false))
		reopen(m);
	pthread_mutex_lock(&m->lock);
	m->mapping = false;
	pthread_cond_broadcast(&m->mapped);
	pthread_mutex_unlock(&m->lock);
}

/* ---- the reservation ---------------------------------------------------------------- */

/* Twice the addresses of the device's possible memory leave room for gaps; when they are used up
 * no further range follows. But the application and the runtime need addresses, too: with many
 * pools each gets fewer, and none of the second half. */
static enum ss_status reserve(struct ss_memory *m, uint64_t unit, uint64_t *size, void **va)
{
	struct ss_core *core = m->core;
	const struct ss_device_info *info = &core->info[m->dev];
	uint64_t once = ss_round(ss_max(info->total_bytes, info->most_bytes), SS_CHUNK_MOST);
	uint64_t taken = atomic_load(&core->backing->addresses);
	enum ss_status s = SS_ERR_NOMEM;

	for (uint64_t times = taken + 2 * once <= ADDRESSES / 4 ? 2 : 1; times && s == SS_ERR_NOMEM;
	     times--) {
		*size = times * once / unit * unit;
		if (taken + *size <= ADDRESSES / 2)
			s = SS_DRIVE_MAP(m, vmm_reserve, *size, va);
	}
	return s;
}

enum ss_status ss_reservation_new(struct ss_memory *m)
{
	struct ss_core *core = m->core;
	uint64_t chunk = core->info[m->dev].chunk_bytes, size;
	struct ss_vmm *v;
	enum ss_status s;
	void *va;

	v = ss_host_alloc(core, sizeof(*v));
	if (!v)
		return SS_ERR_FAILED;
	ss_index_init(&v->gaps, v->gap_list);
	/* A chunk is at least one frame, as the page tables are. */
	v->unit = ss_max(chunk, SS_FRAME);
	s = reserve(m, v->unit, &size, &va);
	if (s != SS_OK)
		goto fail;
	atomic_fetch_add(&core->backing->addresses, size);
	v->frame = calloc(size / v->unit, sizeof(*v->frame));
	v->seg = v->frame && (uintptr_t)va % SS_FRAME == 0 ?
			 ss_segment_new(core, m->pool, (uintptr_t)va, size) :
			 NULL;
	if (!v->seg) {
		s = SS_ERR_FAILED;
		goto fail_addresses;
	}
	v->seg->backing = SS_BACKING_VMM;
	v->seg->native = va;
	v->seg->native_size = size;
	pthread_mutex_lock(&m->lock);
	m->vmm = v;
	ss_segment_link(m, v->seg);
	ss_gap_insert(m, ss_segment_first(core, v->seg));
	pthread_mutex_unlock(&m->lock);
	ss_memory_record(m, 0, SS_TRACE_SEGMENT_ALLOC, (uintptr_t)va, size, SS_TRACE_S_RESERVED);
	return SS_OK;

fail_addresses:
	core->drv.vmm_unreserve(core->drv.ctx, m->dev, va, size);
	atomic_fetch_sub(&core->backing->addresses, size);
	free(v->frame);
fail:
	ss_host_free(core, v, sizeof(*v));
	return s;
}

void ss_reservation_end(struct ss_memory *m, bool release)
{
	struct ss_core *core = m->core;
	struct ss_vmm *v = m->vmm;
	uint64_t size;
	void *va;

	if (!v)
		return;
	va = v->seg->native;
	size = v->seg->native_size;
	pthread_mutex_lock(&m->lock);
	m->vmm = NULL;
	ss_segment_unlink(m, v->seg);
	ss_segment_forget(core, v->seg);
	pthread_mutex_unlock(&m->lock);
	ss_chunks_end(m, v, release);
	ss_memory_record(m, 0, SS_TRACE_SEGMENT_FREE, (uintptr_t)va, size, SS_TRACE_S_RESERVED);
	if (release && !v->aside)
		core->drv.vmm_unreserve(core->drv.ctx, m->dev, va, size);
	if (!release || !v->aside)
		atomic_fetch_sub(&core->backing->addresses, size);
	free(v->frame);
	ss_host_free(core, v, sizeof(*v));
}

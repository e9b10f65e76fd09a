/* SPDX-License-Identifier: MIT */
/*
 * Segments that the driver gave but would not open to the pool's devices, and that cannot be
 * released at once: a capture forbids it, or the release would wait for the device. The process
 * holds that memory, so it counts as reserved until the driver takes it. The next segment of the
 * same size is one of them; otherwise each attempt would leave one more behind.
 *
 * Locks: the memory's lock, dropped for the driver.
 */
#include "core/backing/segment.h"

void *ss_unreturned_take(struct ss_memory *m, uint64_t size, struct ss_unreturned **u)
{
	struct ss_unreturned **at = &m->unreturned;
	uint64_t when = 0;
	void *native = NULL;

	pthread_mutex_lock(&m->lock);
	while (*at && size && (*at)->size != size)
		at = &(*at)->next;
	if (*at) {
		*u = *at;
		*at = (*u)->next;
		native = (*u)->native;
		when = ss_reserved_add(m, -(*u)->size);
	}
	pthread_mutex_unlock(&m->lock);
	if (native)
		ss_memory_record(m, when, SS_TRACE_SEGMENT_FREE, (uintptr_t)native, (*u)->size, 0);
	return native;
}

void ss_unreturned_keep(struct ss_memory *m, struct ss_unreturned *u, void *native, uint64_t size)
{
	uint64_t when;

	u->native = native;
	u->size = size;
	pthread_mutex_lock(&m->lock);
	u->next = m->unreturned;
	m->unreturned = u;
	when = ss_reserved_add(m, size);
	pthread_mutex_unlock(&m->lock);
	ss_memory_record(m, when, SS_TRACE_SEGMENT_ALLOC, (uintptr_t)native, size, 0);
}

bool ss_unreturned_return(struct ss_memory *m, struct ss_unreturned *u, void *native, uint64_t size)
{
	if (SS_DRIVE_FREE(m, segment_free, m->backing, native, size) != SS_OK) {
		ss_unreturned_keep(m, u, native, size);
		return false;
	}
	ss_cap_return(m, size);
	ss_host_free(m->core, u, sizeof(*u));
	return true;
}

uint64_t ss_unreturned_retry(struct ss_memory *m)
{
	struct ss_unreturned *u;
	uint64_t given = 0;
	void *native;

	while ((native = ss_unreturned_take(m, 0, &u))) {
		uint64_t size = u->size;

		if (!ss_unreturned_return(m, u, native, size))
			break;
		given += size;
	}
	return given;
}

void ss_unreturned_drop(struct ss_memory *m, bool to_driver)
{
	struct ss_core *core = m->core;
	struct ss_unreturned *u;
	void *native;

	while ((native = ss_unreturned_take(m, 0, &u))) {
		if (to_driver)
			core->drv.segment_free(core->drv.ctx, m->dev, m->backing, native, u->size);
		ss_cap_return(m, u->size);
		ss_host_free(core, u, sizeof(*u));
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The memory of one pool as its users see it: its birth and end, growth and release, on any
 * backing.
 *
 * Locks: the memory's lock; none is held across a driver call.
 */
#include "core/backing/segment.h"
#include "core/backing/vmm.h"

static enum ss_backing possible(const struct ss_device_info *info, enum ss_backing asked)
{
	if (asked == SS_BACKING_AUTO)
		asked = info->best;
	if (asked == SS_BACKING_AUTO || (asked == SS_BACKING_VMM && !info->chunk_bytes) ||
	    (asked == SS_BACKING_HSA && info->no_hsa))
		return SS_BACKING_HIP;
	return asked;
}

void ss_memory_init(struct ss_memory *m, struct ss_core *core, struct ss_pool *pool, int dev,
		    enum ss_backing backing)
{
	/* Members that stay the same if the memory is used again are written once: a thread that
	 * remembers its last use may still read them. */
	if (!m->core) {
		pthread_mutex_init(&m->lock, NULL);
		pthread_cond_init(&m->mapped, NULL);
		m->core = core;
		m->pool = pool;
		m->dev = dev;
		ss_index_init(&m->completed, m->completed_list);
	}
	m->backing = possible(&core->info[dev], backing);
	m->dropped = false;
	m->reopen = m->sleeps = false;
	m->max_bytes = 0;
	m->peers = 1ull << dev;
	m->reserved_high = 0;
	m->keep = 0;
	m->grown = m->released_bytes = m->moved = m->exchanges = 0;
}

void ss_memory_finish(struct ss_memory *m)
{
	if (!m->core)
		return;
	pthread_cond_destroy(&m->mapped);
	pthread_mutex_destroy(&m->lock);
	m->core = NULL;
}

void ss_memory_drop(struct ss_memory *m, enum ss_drop how)
{
	m->dropped = true;
	pthread_mutex_lock(&m->lock);
	ss_index_clear(&m->completed);
	m->idle_bytes = 0;
	pthread_mutex_unlock(&m->lock);
	ss_reservation_end(m, how != SS_DROP_FORGET);
	ss_segments_drop(m, how);
}

enum ss_status ss_memory_grow(struct ss_memory *m, const struct ss_growth *growth)
{
	bool vmm = m->backing == SS_BACKING_VMM;
	enum ss_status s = ss_growth_begin(m);
	uint64_t asked;

	if (s != SS_OK)
		return s;
	asked = ss_headroom_before(m, growth->size);
	s = vmm ? ss_vmm_grow(m, growth) : ss_segments_grow(m, growth);
	/* There were no addresses, or the driver maps nothing. */
	if (vmm && s == SS_ERR_NOMEM && m->backing != SS_BACKING_VMM)
		s = ss_segments_grow(m, growth);
	if (s == SS_OK)
		ss_headroom_after(m, asked);
	else
		ss_device_room_changed(m->core);
	ss_growth_end(m);
	return ss_refused(s) ? SS_ERR_FAILED : s;
}

uint64_t ss_memory_short(struct ss_memory *m, const struct ss_growth *growth)
{
	if (m->backing == SS_BACKING_VMM)
		return ss_vmm_short(m, growth);
	if (ss_release_waits(m))
		return ss_round(growth->segment, SS_FRAME);
	return ss_minus(ss_round(growth->segment, SS_FRAME),
			ss_memory_releasable(m, growth->segment));
}

enum ss_status ss_memory_add_whole(struct ss_memory *m, uint64_t size, bool free)
{
	enum ss_status s = ss_growth_begin(m);

	if (s != SS_OK)
		return s;
	(void)ss_headroom_before(m, size);
	if (free)
		ss_segments_make_room(m, size, size, false);
	s = ss_segment_add(m, size);
	if (s == SS_ERR_NOMEM && free && ss_segments_could_fit(m, size) &&
	    ss_memory_release(m, 0, UINT64_MAX))
		s = ss_segment_add(m, size);
	ss_growth_end(m);
	return s;
}

enum ss_status ss_memory_add_guarded(struct ss_memory *m, uint64_t bytes, struct ss_segment **out)
{
	enum ss_status s;
	uint64_t asked;

	if (!m->core->info[m->dev].chunk_bytes)
		return SS_ERR_UNSUPPORTED;
	s = ss_growth_begin(m);
	if (s != SS_OK)
		return s;
	asked = ss_headroom_before(m, bytes);
	s = ss_guard_add(m, bytes, out);
	if (s == SS_OK)
		ss_headroom_after(m, asked);
	ss_growth_end(m);
	return s;
}

uint64_t ss_memory_release(struct ss_memory *m, uint64_t target, uint64_t older_than)
{
	uint64_t given;

	pthread_mutex_lock(&m->lock);
	if (m->gather)
		m->gather(m);
	pthread_mutex_unlock(&m->lock);
	ss_releasing_begin(m->core, m->dev);
	given = m->backing == SS_BACKING_VMM ?
			ss_vmm_release(m, target, older_than) :
			ss_segments_release(m, target, older_than == UINT64_MAX ? target : 0,
					    older_than);
	ss_releasing_end(m->core, m->dev, given);
	if (given)
		ss_nearly_full_set(m->core, m->dev, false);
	return given;
}

uint64_t ss_memory_idle_since(struct ss_memory *m)
{
	uint64_t since;

	pthread_mutex_lock(&m->lock);
	since = m->vmm ? ss_chunks_idle_since(m) : ss_segments_idle_since(m);
	pthread_mutex_unlock(&m->lock);
	return since;
}

uint64_t ss_memory_retry(struct ss_memory *m)
{
	uint64_t given = ss_unreturned_retry(m);
	bool opened;

	if (m->backing == SS_BACKING_VMM && ss_memory_claim(m, false, NULL)) {
		given += ss_chunks_retry(m, true, &opened);
		ss_memory_unclaim(m);
	}
	return given;
}

bool ss_memory_owes(const struct ss_memory *m)
{
	return m->unreturned || (m->vmm && m->core->info[m->dev].unmap_waits_all &&
				 (m->vmm->stuck || m->vmm->unreleased));
}

#define REOPEN_MS 1000

bool ss_memory_reopen(struct ss_memory *m)
{
	const struct ss_driver *drv = &m->core->drv;
	bool mine;

	if (!ss_memory_maps(m))
		return true;
	atomic_store(&m->reopen, true);
	for (int i = 0; !(mine = ss_memory_claim(m, false, NULL)) && i < REOPEN_MS; i++) {
		/* While the memory sleeps no device uses it; the wake opens it. */
		if (atomic_load(&m->sleeps))
			return true;
		drv->sleep_ms(drv->ctx, 1);
	}
	if (mine)
		ss_memory_unclaim(m);
	return !atomic_load(&m->reopen);
}

enum ss_status ss_memory_set_access(struct ss_memory *m, uint64_t give, uint64_t take)
{
	uint64_t before, more;
	enum ss_status s = SS_OK;

	if (!ss_memory_claim(m, true, NULL))
		return SS_ERR_FAILED;
	pthread_mutex_lock(&m->lock);
	before = atomic_load(&m->peers);
	/* The devices are added first, so that memory that is mapped meanwhile is opened to
	 * them, too. */
	atomic_store(&m->peers, (before & ~take) | give | 1ull << m->dev);
	more = atomic_load(&m->peers) & ~before;
	if (more)
		s = ss_segments_open(m);
	pthread_mutex_unlock(&m->lock);
	if (more && m->vmm && s == SS_OK)
		s = ss_vmm_open(m);
	if (s != SS_OK)
		atomic_store(&m->peers, before);
	ss_memory_unclaim(m);
	return s;
}

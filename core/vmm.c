/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory: a pool as one long reservation of addresses into which chunks are mapped.
 *
 * Growing fills the gap where the fewest bytes complete a long enough run (backing/gap.c), so a
 * pool stays in one piece. Before it asks the device for more memory it takes chunks of which every
 * byte is free and completed out of ranges that are too short, and maps them there instead
 * (backing/compact.c): reserved memory follows what is live, however sizes change.
 *
 * Chunks grow with the pool and with what is missing (2 MiB to 64 MiB): a few hundred handles, file
 * descriptors and mappings whatever the pool's size, little waste in the last one, and few calls to
 * move memory for a large block.
 *
 * Locks: the memory's lock, dropped for the driver. A range that a thread works on meanwhile is
 * in state QUEUED, so no other thread touches it.
 */
#include <stdio.h>

#include "core/backing/segment.h"
#include "core/backing/vmm.h"

#define POOL_PARTS 64 /* a new chunk is at most this part of the pool, */
#define RUN_PARTS 6   /* or this part of the bytes that are missing, whichever is more */
/* A pool has about so many chunks at most, since each may take a file descriptor */
#define MOST_CHUNKS 768
#define PLACES 3 /* other addresses that are tried after the driver refused one */
/* Bytes of a device that may be set aside before no pool maps more of it */
#define ASIDE_MOST (256ull << 20)
#define TURN_MS 20 /* for the turn of another thread, whose calls may wait for streams */

/* Releases as much as the runtime is known to really release (backing/retention.c). */
static uint64_t release_chunks(struct ss_memory *m, uint64_t target, uint64_t older_than)
{
	bool idle = !target && ss_chunks_all_idle(m, older_than);
	enum ss_release_how how = ss_retention_how(m, idle);
	uint64_t given = 0, more;
	struct ss_witness w;

	while (how != SS_RELEASE_NOTHING) {
		ss_retention_begin(m, &w);
		more = ss_chunks_release(m, target, older_than, how == SS_RELEASE_ONE);
		if (!more)
			break;
		given += more;
		if (how == SS_RELEASE_WHOLE && !m->vmm->chunks)
			ss_reservation_end(m, true);
		ss_retention_end(m, &w, more, how);
		if (how != SS_RELEASE_ONE)
			break;
		how = ss_retention_how(m, idle);
	}
	return given;
}

/* ---- growing ---------------------------------------------------------------------------- */

/* The largest chunk that is no more than `share`. */
static uint64_t chunk_of(const struct ss_memory *m, uint64_t share)
{
	uint64_t size = m->vmm->unit;

	while (size * 2 <= share && size * 2 <= SS_CHUNK_MOST)
		size *= 2;
	return size;
}

static uint64_t chunk_size(const struct ss_memory *m, uint64_t bytes)
{
	return chunk_of(m, ss_max(atomic_load(&m->reserved) / POOL_PARTS, bytes / RUN_PARTS));
}

static uint64_t aside(const struct ss_memory *m)
{
	return atomic_load(&ss_device_memory(m->core, m->dev)->set_aside);
}

/* Can the pool have so much? A growth by several chunks asks first, or one that must fail would
 * take all that the device has left before it does. Some devices have more than their free figure
 * says. So where that is too small the driver is asked for all of it at once, which takes nothing
 * if it fails. */
static bool can_have(struct ss_memory *m, uint64_t bytes)
{
	void *chunk;
	bool has;

	if (!ss_cap_take(m, bytes))
		return false;
	ss_cap_return(m, bytes);
	if (!ss_device_lacks(m->core, m->dev, bytes))
		return true;
	has = ss_cap_take(m, bytes);
	if (!has)
		return false;
	has = SS_DRIVE_ALLOC(m, chunk_create, bytes, &chunk) == SS_OK;
	if (!has || SS_DRIVE_FREE(m, chunk_release, chunk, bytes) == SS_OK)
		ss_cap_return(m, bytes);
	return has;
}

/* Memory into one gap. *more: the run needs another. */
static enum ss_status fill(struct ss_memory *m, const struct ss_growth *growth, bool *more)
{
	struct ss_run run = {.size = growth->size, .align = growth->align, .slot = growth->slot};
	/* If the driver opens only from the start of the reservation, a chunk below must not
	 * move. */
	bool prefix = m->core->info[m->dev].access_prefix, move = growth->move && !prefix;
	struct ss_chunk *list = NULL;
	struct ss_block *target;
	uint64_t unit, need, got = 0;
	enum ss_status s;

	/* The driver mapped a chunk and did not open it. It would do the same for the next pool. */
	if (!m->vmm && aside(m)) {
		m->backing = SS_BACKING_HIP;
		return SS_ERR_NOMEM;
	}
	if (!m->vmm && (s = ss_reservation_new(m)) != SS_OK) {
		/* Without addresses of its own it lives on whole segments. */
		if (s == SS_ERR_NOMEM)
			m->backing = SS_BACKING_HIP;
		return s;
	}
	pthread_mutex_lock(&m->lock);
	run.step = chunk_of(m, atomic_load(&m->reserved) / MOST_CHUNKS);
	ss_gap_find(m, &run, prefix);
	unit = chunk_size(m, run.bytes);
	need = ss_minus(run.bytes, move ? ss_chunks_movable(m, &run) : 0);
	pthread_mutex_unlock(&m->lock);
	if (!run.gap || (need > unit && !can_have(m, need)))
		return SS_ERR_NOMEM;
	/* Only this thread, which has claimed the memory, changes gaps. */
	target = run.gap;
	*more = run.more;
	pthread_mutex_lock(&m->lock);
	ss_gap_take(m, target);
	/* A chunk that moves may be larger than what is missing. */
	ss_gap_shorten(m, target, run.bytes + (move ? SS_CHUNK_MOST : 0));
	pthread_mutex_unlock(&m->lock);
	if (move)
		list = ss_chunks_gather(m, target, &run, run.bytes, &got);
	pthread_mutex_lock(&m->lock);
	/* If host memory is out, it stays as long as it is and is filled so. */
	ss_gap_shorten(m, target, ss_max(got, run.bytes));
	pthread_mutex_unlock(&m->lock);
	return ss_chunks_fill(m, target, list, unit);
}

/* A run needs several gaps where there must be none below it. If it does not get them all, a
 * failure leaves things as they were: nobody has looked at what it got, so no mark holds it. */
static enum ss_status grow(struct ss_memory *m, const struct ss_growth *growth)
{
	uint64_t reserved = atomic_load(&m->reserved);
	enum ss_status s;
	bool more = false;

	do
		s = fill(m, growth, &more);
	while (s == SS_OK && more);
	if (s != SS_OK && atomic_load(&m->reserved) > reserved && !ss_release_waits(m))
		release_chunks(m, reserved, UINT64_MAX);
	return s;
}

/* Said once for each device, since every pool would say it. */
static void say_refused(struct ss_memory *m)
{
	struct ss_core *core = m->core;

	if (!core->watch.log || atomic_exchange(&ss_device_memory(core, m->dev)->refused, true))
		return;
	fprintf(core->watch.log,
		"somashim: device %d: the runtime refuses to map memory for a pool; ", m->dev);
	if (aside(m))
		fprintf(core->watch.log,
			"%.1f MiB of it are set aside, because it cannot be unmapped, and "
			"new pools come from hip\n",
			(double)aside(m) / (1 << 20));
	else
		fprintf(core->watch.log, "%s\n",
			m->backing == SS_BACKING_HIP ? "the pool comes from hip" :
						       "an allocation may fail");
	fflush(core->watch.log);
}

/* Claims memory of which no map may wait: never waits for long, unless the memory sleeps. */
static enum ss_status claim_briefly(struct ss_memory *m, bool *waited)
{
	const struct ss_driver *drv = &m->core->drv;

	*waited = false;
	for (int ms = 0; ms < TURN_MS; ms++) {
		if (ss_memory_claim(m, false, NULL)) {
			if (m->map_begin(m))
				return SS_OK;
			ss_memory_unclaim(m);
			return SS_ERR_WOULD_WAIT;
		}
		*waited = true;
		if (!atomic_load(&m->sleeps) || !m->core->watch.wake)
			drv->sleep_ms(drv->ctx, 1);
		else if (m->core->watch.wake())
			ms = -1;
		else
			return SS_ERR_NOMEM;
	}
	return SS_ERR_WOULD_WAIT;
}

static enum ss_status grow_begin(struct ss_memory *m, bool *waited)
{
	if (m->map_begin)
		return claim_briefly(m, waited);
	return ss_memory_claim(m, true, waited) ? SS_OK : SS_ERR_NOMEM;
}

static void grow_end(struct ss_memory *m)
{
	if (m->map_end)
		m->map_end(m);
	ss_memory_unclaim(m);
}

enum ss_status ss_vmm_grow(struct ss_memory *m, const struct ss_growth *growth)
{
	bool waits = m->core->info[m->dev].unmap_waits_all;
	bool may_unmap = growth->move || !waits, waited, opened, refused;
	enum ss_status s = grow_begin(m, &waited);

	if (s != SS_OK)
		return s;
	ss_chunks_retry(m, may_unmap, &opened);
	/* Memory that another thread mapped meanwhile, or that could be opened now, may suffice, so
	 * the caller looks first. A chunk that the driver still refuses to open would be refused
	 * again, and each attempt would leave one more chunk mapped. */
	if (!opened && !may_unmap && m->vmm && m->vmm->stuck)
		s = SS_ERR_FAILED;
	else if (!opened && !waited)
		s = m->backing == SS_BACKING_VMM && aside(m) < ASIDE_MOST ? grow(m, growth) :
									    SS_ERR_NOMEM;
	/* A driver may refuse one address and accept another. */
	for (int i = 0;
	     i < PLACES && ss_refused(s) && m->vmm && m->vmm->stuck && !m->vmm->aside && !waits;
	     i++)
		s = grow(m, growth);
	refused = ss_refused(s);
	/* A driver that refuses the first chunk is taken to refuse all. */
	if (refused && !(m->vmm && ss_chunks_any_open(m->vmm))) {
		if (m->vmm && !may_unmap)
			ss_chunks_set_aside(m);
		ss_reservation_end(m, true);
		m->backing = SS_BACKING_HIP;
		s = SS_ERR_NOMEM;
	}
	grow_end(m);
	if (refused)
		say_refused(m);
	return s;
}

uint64_t ss_vmm_short(struct ss_memory *m, const struct ss_growth *growth)
{
	struct ss_run run = {.size = growth->size, .align = growth->align, .slot = growth->slot};

	if (!m->vmm)
		return growth->size;
	run.step = chunk_of(m, atomic_load(&m->reserved) / MOST_CHUNKS);
	ss_gap_find(m, &run, m->core->info[m->dev].access_prefix);
	if (!run.gap)
		return 0;
	/* If an unmap waits for the device, nothing moves while the device has work. */
	if (m->core->info[m->dev].access_prefix || ss_release_waits(m))
		return run.bytes;
	return ss_minus(run.bytes, ss_chunks_movable(m, &run));
}

/* ---- releasing ------------------------------------------------------------------------------ */

uint64_t ss_vmm_release(struct ss_memory *m, uint64_t target, uint64_t older_than)
{
	uint64_t given;
	bool opened;

	/* A thread that grows the pool now would only take the memory again. */
	if (atomic_load(&m->reserved) <= target || !ss_memory_claim(m, false, NULL))
		return 0;
	given = ss_chunks_retry(m, true, &opened);
	if (m->vmm)
		given += release_chunks(m, target, older_than);
	ss_memory_unclaim(m);
	return given;
}

/* ---- the whole pool ------------------------------------------------------------------------- */

/* Memory into every gap below the last chunk. */
static enum ss_status fill_gaps(struct ss_memory *m)
{
	enum ss_status s = SS_OK;

	while (s == SS_OK) {
		struct ss_block *b;

		pthread_mutex_lock(&m->lock);
		b = ss_gap_below(m);
		if (b)
			ss_gap_take(m, b);
		pthread_mutex_unlock(&m->lock);
		if (!b)
			break;
		s = ss_chunks_fill(m, b, NULL, SS_CHUNK_MOST);
	}
	return s;
}

enum ss_status ss_vmm_open(struct ss_memory *m)
{
	enum ss_status s = SS_OK;

	/* If the driver opens only from the start of the reservation, the gaps are filled first. */
	if (m->core->info[m->dev].access_prefix)
		s = fill_gaps(m);
	return s == SS_OK ? ss_chunks_open(m) : s;
}

void ss_memory_unmap_all(struct ss_memory *m)
{
	/* The tables stay for threads that still run. Memory that sleeps is claimed for good, and
	 * some of it may have stayed. */
	if (m->backing == SS_BACKING_VMM &&
	    (atomic_load(&m->sleeps) || ss_memory_claim(m, false, NULL)) && m->vmm)
		ss_chunks_unmap_all(m, m->vmm);
	ss_guards_unmap(m);
}

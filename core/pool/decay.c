/* SPDX-License-Identifier: MIT */
/*
 * When idle memory is released. If a threshold, a trim or the end of a pool asks for it, the next
 * synchronization releases the memory. Otherwise memory decays: a watcher (ss_decay_watch) releases
 * memory that was idle for SOMASHIM_DECAY_MS. A free tells the watcher of idle memory. The watcher
 * then looks, which dates the completed memory, and looks again when that memory is old enough.
 *
 * If a release waits for the device, the device must be idle first: the application has just waited
 * for all of it, or every stream, queried one by one, was idle. This file never waits and enqueues
 * nothing. If the device is busy when memory is due, the memory is overdue: the watcher asks again,
 * and synchronizations look as well, because the device may be idle at that moment.
 *
 * Locks: those of the functions that it calls, one at a time.
 */
#include "core/shelf/fast_path.h"
#include "core/pool/release.h"

#define LOOKS 4       /* per decay time; so idle memory stays up to a fourth of it longer */
#define RETRY_MS 10   /* ms: the shortest time until overdue memory is tried again, */
#define RETRY_TIMES 6 /* which doubles up to so many times */
/* Bytes released in one call, so that a thread that waits for the watcher does not wait long. */
#define AT_ONCE (1ull << 30)

/* The reasons for which synchronizations of a device are reported. */
enum {
	WANTED = 1,    /* any synchronization releases something */
	OVERDUE = 2,   /* memory is due, and the device was busy */
	UNWATCHED = 4, /* there is no watcher */
};

struct look {
	uint64_t now;
	bool ages;              /* memory is released for its age, too */
	bool device_idle;       /* all memory may be released */
	bool needs_idle_device; /* some due memory is released only while the device is idle */
	bool free_to_release;   /* some due memory is released without a wait */
	uint64_t byte_limit;    /* released for age from each pool at most; 0: all */
	uint64_t released;      /* bytes, for their age */
	uint64_t next_due;      /* ms: when more of the idle memory becomes due */
	bool overdue;           /* something is due and was not released */
};

/* The time between two looks, in ms. */
static uint64_t apart(const struct ss_core *core)
{
	return core->opt.decay_ms / LOOKS + 1;
}

static void release_of_pool(struct ss_pool *pool, struct look *k)
{
	bool may = k->device_idle ? ss_others_may_release(pool) :
				    ss_may_release(pool, SS_IDLE_UNASKED);
	uint64_t decay = ss_core_of(pool)->opt.decay_ms, target;
	bool trim;

	if (atomic_load(&pool->dying)) {
		if (k->device_idle && may && !ss_used(&pool->shelves))
			ss_pool_release(pool, 0, UINT64_MAX, SS_TRACE_TRIM_RESET);
		ss_pool_reap(pool);
		return;
	}
	if (!may || !ss_reserved(pool))
		return;
	ss_ipc_release(pool, false); /* whatever the threshold: no stream can use these bytes */
	ss_pool_lock(pool);
	trim = pool->trim_wanted;
	target = pool->trim_keep;
	pool->trim_wanted = false;
	ss_pool_unlock(pool);
	if (trim)
		ss_pool_release(pool, target, UINT64_MAX, SS_TRACE_TRIM_CALL);
	if (atomic_load(&pool->threshold_set)) {
		target = atomic_load(&pool->threshold);
		if (ss_reserved(pool) > target)
			ss_pool_release(pool, target, UINT64_MAX, SS_TRACE_TRIM_THRESHOLD);
		return;
	}
	/* Some runtimes take virtual memory back only if all of a pool is released. */
	target = k->byte_limit && pool->mem.backing != SS_BACKING_VMM ?
			 ss_minus(ss_reserved(pool), k->byte_limit) :
			 0;
	if (k->ages)
		k->released += ss_pool_release(pool, target, decay ? k->now - decay : UINT64_MAX,
					       SS_TRACE_TRIM_DECAY);
	ss_headroom_restore(&pool->mem);
}

/* Should memory of the pool be released, if it is idle? `ages`: also for its age. */
static bool wants_release(struct ss_pool *pool, bool ages)
{
	bool wants;

	if (atomic_load(&pool->dying) ||
	    (atomic_load(&pool->kept) && atomic_load(&pool->mem.guarded)))
		return true;
	if (atomic_load(&pool->threshold_set))
		wants = ss_reserved(pool) > atomic_load(&pool->threshold);
	else
		wants = ages || ss_device_low(ss_core_of(pool), pool->mem.dev);
	if (!wants) {
		ss_pool_lock(pool);
		wants = pool->trim_wanted;
		ss_pool_unlock(pool);
	}
	return wants;
}

/* Is anything idle in the pool that should be released? */
static void find_idle(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool);

	if (!reserved || reserved <= ss_used(&pool->shelves) || !wants_release(pool, k->ages))
		return;
	if (ss_may_release(pool, SS_IDLE_UNASKED))
		k->free_to_release = true;
	else
		k->needs_idle_device = true;
}

/* Releases memory that is due, as far as possible. Asks the streams whether frees have completed,
 * because an idle program makes no other call that asks. */
static void look(struct ss_core *core, int dev, struct look *k)
{
	if (!k->device_idle) {
		SS_POOLS_EACH(pool, core, dev)
			find_idle(pool, k);
		if (k->needs_idle_device || (k->ages && k->free_to_release))
			k->device_idle = ss_device_may_release(core, dev, SS_IDLE_QUERIED);
	}
	if (k->device_idle || k->free_to_release)
		SS_POOLS_EACH(pool, core, dev)
			release_of_pool(pool, k);
}

/* ---- by age ----------------------------------------------------------------------------- */

/* Computes when more of the pool will be due after a look. The threshold does not depend on age,
 * so memory above it has been released already. */
static void find_next(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool), since, due;
	struct ss_core *core = ss_core_of(pool);

	if (reserved < ss_used(&pool->shelves) + atomic_load(&pool->kept) + SS_FRAME ||
	    !wants_release(pool, true))
		return;
	/* A free may be pending in the pool, or another device may be busy. */
	if (!k->device_idle || !ss_others_may_release(pool)) {
		k->overdue = true;
		if (!ss_may_release(pool, SS_IDLE_UNASKED))
			return;
	}
	if (atomic_load(&pool->threshold_set) || atomic_load(&pool->dying))
		return;
	since = ss_memory_idle_since(&pool->mem);
	due = since + core->opt.decay_ms;
	if (since && due > k->now)
		k->next_due = ss_min(k->next_due, due);
	else if (since)
		k->overdue = true;
}

/* The watcher may ask as soon as anybody looks. Returns when that is. */
static uint64_t look_soon(struct ss_device_pools *d)
{
	uint64_t at = atomic_load(&d->next_look), again = atomic_load(&d->asks_again);

	while (again > at && !atomic_compare_exchange_weak(&d->asks_again, &again, at))
		;
	return at;
}

/* Looks for old memory, too, if no other thread does so; else only for memory that is due at
 * once. Returns the time in ms until the next look. */
static uint64_t look_by_age(struct ss_core *core, int dev, struct look *k)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	uint64_t retry = 0;

	k->next_due = UINT64_MAX;
	if (atomic_exchange(&d->looking, true)) {
		look(core, dev, k);
		return apart(core);
	}
	k->ages = true;
	atomic_store(&d->synchronized, false);
	atomic_store(&d->next_look, k->now + apart(core));
	look(core, dev, k);
	SS_POOLS_EACH(pool, core, dev)
		find_next(pool, k);
	if (k->overdue && k->released) {
		k->next_due = k->now; /* release the rest at once */
	} else {
		d->retries = k->overdue ? ss_min(d->retries + 1, RETRY_TIMES + 1) : 0;
		ss_order_report(core, dev, OVERDUE, k->overdue);
		/* After a bypass no query proves that the device is idle, but a synchronization
		 * may. */
		if (k->overdue && !ss_distrusted(core))
			retry = k->now + (ss_max(apart(core), RETRY_MS) << (d->retries - 1));
		if (retry)
			k->next_due = ss_min(k->next_due, retry);
	}
	atomic_store(&d->asks_again, ss_min(retry, k->next_due));
	if (atomic_load(&d->synchronized))
		k->next_due = ss_min(k->next_due, look_soon(d));
	atomic_store(&d->looking, false);
	return k->next_due == UINT64_MAX ? UINT64_MAX : k->next_due - k->now;
}

static bool has_memory(struct ss_core *core, int dev)
{
	return atomic_load_explicit(&ss_device_memory(core, dev)->reserved, memory_order_relaxed);
}

uint64_t ss_decay_next(struct ss_core *core, int dev)
{
	struct look k = {.now = ss_now_ms(core), .byte_limit = AT_ONCE};
	uint64_t again = atomic_load(&ss_device_pools(core, dev)->asks_again);

	if (!has_memory(core, dev))
		return UINT64_MAX;
	/* Frees in the meantime do not make the watcher ask the streams earlier. */
	if (again > k.now)
		return again - k.now;
	ss_fences_poll(core, NULL, -1);
	return look_by_age(core, dev, &k);
}

/* ---- the watcher ------------------------------------------------------------------------ */

void ss_decay_watch(struct ss_core *core, ss_decay_waker *wake, void *arg)
{
	if (wake)
		core->pools->wake_arg = arg;
	atomic_store(&core->pools->wake, wake);
	for (int dev = 0; dev < core->devices; dev++)
		ss_order_report(core, dev, UNWATCHED, !wake);
	if (wake)
		ss_decay_notify(core);
}

/* Makes the watcher look in `ms`; UINT64_MAX: nothing will be due. */
static void wake_in(struct ss_core *core, uint64_t ms)
{
	ss_decay_waker *wake = atomic_load(&core->pools->wake);

	if (wake && ms != UINT64_MAX)
		wake(core->pools->wake_arg, ms);
}

void ss_decay_notify(struct ss_core *core)
{
	if (!atomic_exchange(&core->fast->notifies, true))
		ss_hits_end(core);
}

void ss_decay_wake(struct ss_core *core)
{
	if (!atomic_load_explicit(&core->fast->notifies, memory_order_relaxed) ||
	    !atomic_exchange(&core->fast->notifies, false))
		return;
	ss_hits_end(core);
	wake_in(core, apart(core));
}

/* ---- calls of the application ------------------------------------------------------------- */

void ss_decay_each_sync(struct ss_core *core, int dev)
{
	ss_order_report(core, dev, WANTED, true);
}

void ss_decay_synchronized(struct ss_core *core, int dev, bool idle)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	unsigned why = ss_order_reported(core, dev);
	struct look k = {.now = ss_now_ms(core)};

	if (!has_memory(core, dev))
		return;
	/* A destroyed stream may still run. Only a device-wide wait waits for it. */
	k.device_idle = idle && !ss_zombies_poll(core, dev);
	if (why & (OVERDUE | UNWATCHED) &&
	    (!core->opt.decay_ms || k.now >= atomic_load(&d->next_look))) {
		wake_in(core, look_by_age(core, dev, &k));
	} else {
		/* It may be the last for a long time, and the device be idle from now on. */
		if (why & OVERDUE && !atomic_exchange(&d->synchronized, true))
			wake_in(core, ss_minus(look_soon(d), k.now));
		if (why & WANTED)
			look(core, dev, &k);
	}
}

void ss_decay_run(struct ss_core *core, int dev, bool device_idle)
{
	struct look k = {.ages = true, .device_idle = device_idle};

	if (dev < 0 || dev >= core->devices || !atomic_load(&ss_device_pools(core, dev)->def))
		return;
	k.now = ss_now_ms(core);
	SS_POOLS_EACH(pool, core, dev)
		release_of_pool(pool, &k);
}

void ss_freed_idle(struct ss_core *core, int dev)
{
	if (ss_device_low(core, dev))
		ss_decay_run(core, dev, !ss_zombies_poll(core, dev));
}

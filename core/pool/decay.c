/* SPDX-License-Identifier: MIT */
/*
 * When idle memory is released. Where a threshold, a trim or the end of a pool says so, the next
 * synchronization does it. Else memory decays: a watcher (ss_decay_watch) releases it when it was
 * idle for SOMASHIM_DECAY_MS. A free tells the watcher of idle memory; it then looks, which dates
 * what has completed, and looks again when that is old enough.
 *
 * Where a release waits for the device, the device has to be idle: the application has just waited
 * for all of it, or every stream, asked one by one, has nothing left to do. Nobody waits here, and
 * nothing is enqueued. If the device is busy when memory is due, the memory is overdue: the watcher
 * asks again, and synchronizations look as well, because the device may be idle just then.
 *
 * Locks: those of what it calls, one at a time.
 */
#include "core/shelf/fast_path.h"
#include "core/pool/release.h"

#define LOOKS 4       /* in the span of decay: idle memory stays a fourth of it longer at most */
#define RETRY_MS 10   /* until overdue memory is tried again, at least, */
#define RETRY_TIMES 6 /* and up to 2^6 times as long */
/* Bytes that go in one call: whoever waits for the watcher does not wait long */
#define AT_ONCE (1ull << 30)

/* Why synchronizations of a device are reported. */
enum {
	WANTED = 1,    /* something is to go at any of them */
	OVERDUE = 2,   /* memory is due, and the device was busy */
	UNWATCHED = 4, /* there is no watcher */
};

struct look {
	uint64_t now;
	bool ages;              /* memory goes for its age, too */
	bool device_idle;       /* all memory may go */
	bool needs_idle_device; /* something has to go whose release waits for the device, */
	bool free_to_release;   /* or whose release does not */
	uint64_t byte_limit;    /* that may go of each pool for its age; 0: all */
	uint64_t released;      /* bytes, for their age */
	uint64_t next_due;      /* ms: when more of what is idle now becomes due */
	bool overdue;           /* something is due that has not gone */
};

/* Looks are that far (ms) apart. */
static uint64_t apart(const struct ss_core *core)
{
	return core->opt.decay_ms / LOOKS + 1;
}

static void release_of_pool(struct ss_pool *pool, struct look *k)
{
	bool may = k->device_idle ? ss_others_may_give(pool) : ss_may_give(pool, SS_GIVE_UNASKED);
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
	ss_ipc_release(pool, false); /* whatever the threshold: nobody can use it */
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
	/* Some runtimes take virtual memory back only if all of a pool goes. */
	target = k->byte_limit && pool->mem.backing != SS_BACKING_VMM ?
			 ss_minus(ss_reserved(pool), k->byte_limit) :
			 0;
	if (k->ages)
		k->released += ss_pool_release(pool, target, decay ? k->now - decay : UINT64_MAX,
					       SS_TRACE_TRIM_DECAY);
	ss_headroom_restore(&pool->mem);
}

/* Should memory of the pool go, if it is idle? `ages`: also for its age. */
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

/* Is anything idle in the pool that should go? */
static void find_idle(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool);

	if (!reserved || reserved <= ss_used(&pool->shelves) || !wants_release(pool, k->ages))
		return;
	if (ss_may_give(pool, SS_GIVE_UNASKED))
		k->free_to_release = true;
	else
		k->needs_idle_device = true;
}

/* Releases what has to go and can. Whether frees have completed nobody else asks the streams. */
static void look(struct ss_core *core, int dev, struct look *k)
{
	if (!k->device_idle) {
		SS_POOLS_EACH(pool, core, dev)
			find_idle(pool, k);
		if (k->needs_idle_device || (k->ages && k->free_to_release))
			k->device_idle = ss_device_may_give(core, dev, SS_GIVE_QUERIED);
	}
	if (k->device_idle || k->free_to_release)
		SS_POOLS_EACH(pool, core, dev)
			release_of_pool(pool, k);
}

/* ---- by age ----------------------------------------------------------------------------- */

/* After a look: when will more of the pool be due? A threshold knows no age, so what may go by it
 * has gone. */
static void find_next(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool), since, due;
	struct ss_core *core = ss_core_of(pool);

	if (reserved < ss_used(&pool->shelves) + atomic_load(&pool->kept) + SS_FRAME ||
	    !wants_release(pool, true))
		return;
	/* Something in it may be free and not have completed, or another device be busy. */
	if (!k->device_idle || !ss_others_may_give(pool)) {
		k->overdue = true;
		if (!ss_may_give(pool, SS_GIVE_UNASKED))
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

/* Looks for old memory, too, if no other thread does; else only for what has to go at once. Returns
 * in how many ms to look again. */
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
		k->next_due = k->now; /* the rest goes at once */
	} else {
		d->retries = k->overdue ? ss_min(d->retries + 1, RETRY_TIMES + 1) : 0;
		ss_order_report(core, dev, OVERDUE, k->overdue);
		/* After a bypass no question tells that the device is idle. A synchronization
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
	/* Frees meanwhile do not make it ask the streams any earlier. */
	if (again > k.now)
		return again - k.now;
	ss_fence_poll(core, NULL, -1);
	return look_by_age(core, dev, &k);
}

/* ---- who is told ------------------------------------------------------------------------ */

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

/* Has the watcher look in `ms`; UINT64_MAX: nothing will be due. */
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
	/* A stream that was destroyed may still run. Only a device-wide wait waits for it. */
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

/* SPDX-License-Identifier: MIT */
/*
 * When idle memory goes back: at once where a threshold, a trim or the end of a pool says so, else
 * when it was idle for SOMASHIM_DECAY_MS. Calls of the application drive this: those that
 * synchronize, now and then one that frees, and those that reach the device anyway. If none comes,
 * a watcher does (ss_decay_watch). Where giving back waits for the device it has to be at its end:
 * the call waited for all of it natively, or every stream, asked one by one, turns out to have
 * nothing left to do. Nobody waits here, and nothing is enqueued.
 *
 * Looking for what is idle walks the arenas, and asking costs a call per stream, so decay looks a
 * few times in its span only. What a program frees between two looks is as old as its stream's last
 * synchronization says.
 *
 * Locks: those of what it calls, one at a time.
 */
#include "core/cache/fast_path.h"
#include "core/pool/release.h"

#define LOOKS 4 /* in the span of decay: idle memory stays a fourth of it longer at most */

struct look {
	uint64_t now;
	bool idle;            /* the device is at its end */
	bool decays;          /* it is time to look for old memory */
	bool waits;           /* something should go, and giving it back waits for the device */
	bool others;          /* something should go at no wait */
	uint64_t most, given; /* bytes that may go of each pool for their age; 0: all */
	uint64_t next;        /* ms: when more of what is idle now becomes due */
	bool late;            /* something is due that has not gone */
};

/* Decay looks that far (ms) apart. */
static uint64_t apart(const struct ss_core *core)
{
	return core->opt.decay_ms / LOOKS + 1;
}

static void decay_pool(struct ss_pool *pool, struct look *k)
{
	uint64_t decay = ss_core_of(pool)->opt.decay_ms, target;
	bool may = k->idle ? ss_others_may_give(pool) : ss_may_give(pool, SS_GIVE_UNASKED), trim;

	if (atomic_load(&pool->dying)) {
		if (k->idle && may && !ss_used(&pool->caches))
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
	target = k->most && pool->mem.backing != SS_BACKING_VMM ?
			 ss_minus(ss_reserved(pool), k->most) :
			 0;
	/* Not before anything can be as old: to look merges what streams keep for themselves. */
	if (k->decays && k->now - ss_core_of(pool)->begun >= decay)
		k->given += ss_pool_release(pool, target, decay ? k->now - decay : UINT64_MAX,
					    SS_TRACE_TRIM_DECAY);
	ss_headroom_restore(&pool->mem);
}

void ss_decay_run(struct ss_core *core, int dev, bool device_idle)
{
	struct look k = {.idle = device_idle, .decays = true};

	if (dev < 0 || dev >= core->devices || !atomic_load(&ss_device_pools(core, dev)->def))
		return;
	k.now = ss_now_ms(core);
	SS_POOLS_EACH(pool, core, dev)
		decay_pool(pool, &k);
}

void ss_freed_idle(struct ss_core *core, int dev)
{
	if (ss_device_low(core, dev))
		ss_decay_run(core, dev, !ss_zombies_poll(core, dev));
}

/* Should memory of the pool go, if it is idle? `decays`: also for its age. */
static bool wants_back(struct ss_pool *pool, bool decays)
{
	bool wants;

	if (atomic_load(&pool->dying) ||
	    (atomic_load(&pool->kept) && atomic_load(&pool->mem.guarded)))
		return true;
	if (atomic_load(&pool->threshold_set))
		wants = ss_reserved(pool) > atomic_load(&pool->threshold);
	else
		wants = decays || ss_device_low(ss_core_of(pool), pool->mem.dev);
	if (!wants) {
		ss_pool_lock(pool);
		wants = pool->trim_wanted;
		ss_pool_unlock(pool);
	}
	return wants;
}

/* Is anything idle in the pool that should go? The answer is in `waits` and `others`. */
static void look_for_idle(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool);

	if (!reserved || reserved <= ss_used(&pool->caches) || !wants_back(pool, k->decays))
		return;
	if (ss_may_give(pool, SS_GIVE_UNASKED))
		k->others = true;
	else
		k->waits = true;
}

void ss_decay_each_sync(struct ss_core *core, int dev)
{
	atomic_store(&ss_device_pools(core, dev)->each_sync, true);
	ss_order_report_each(core, dev);
}

/* `decays`: it is time for memory that is old; else only for what must go at once. */
static void look(struct ss_core *core, int dev, bool decays)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct look k = {.now = ss_now_ms(core), .decays = decays};

	if (!decays && !atomic_load(&d->each_sync))
		return;
	if (decays)
		atomic_store_explicit(&d->look, k.now + apart(core), memory_order_relaxed);
	SS_POOLS_EACH(pool, core, dev)
		look_for_idle(pool, &k);
	if (k.waits) {
		k.idle = ss_device_may_give(core, dev, SS_GIVE_QUERIED);
		if (decays && atomic_load(&d->busy))
			atomic_store_explicit(&d->look, k.now + 1, memory_order_relaxed);
	}
	if (k.idle || k.others)
		SS_POOLS_EACH(pool, core, dev)
			decay_pool(pool, &k);
}

static bool is_due(struct ss_core *core, int dev)
{
	return ss_now_ms(core) >=
	       atomic_load_explicit(&ss_device_pools(core, dev)->look, memory_order_relaxed);
}

void ss_decay_synchronized(struct ss_core *core, int dev, struct ss_timeline *tl, bool idle)
{
	if (!atomic_load_explicit(&ss_device_memory(core, dev)->reserved, memory_order_relaxed))
		return;
	/* What a destroyed stream still runs only a device-wide wait waits for. */
	if (idle)
		ss_decay_run(core, dev, !ss_zombies_poll(core, dev));
	else
		look(core, dev,
		     is_due(core, dev) || !core->opt.decay_ms ||
			     (tl && tl == atomic_load(&ss_device_pools(core, dev)->busy)));
}

void ss_decay_tick(struct ss_core *core, int dev)
{
	_Atomic uint64_t *next = &ss_device_pools(core, dev)->look;

	if (!core->opt.decay_ms || !is_due(core, dev) ||
	    !atomic_load_explicit(&ss_device_memory(core, dev)->reserved, memory_order_relaxed))
		return;
	/* At the first free nothing is old. */
	if (!atomic_load(next))
		atomic_store(next, ss_now_ms(core) + apart(core));
	else
		look(core, dev, true);
}

void ss_decay_poll(struct ss_core *core)
{
	for (int dev = 0; dev < core->devices; dev++)
		ss_decay_tick(core, dev);
}

/* ---- where no call comes -------------------------------------------------------------- */

#define RETRY_MS 10   /* until what could not go is tried again, at least, */
#define RETRY_TIMES 6 /* and up to 2^6 times as long */
/* Bytes that go in one call: whoever waits for it does not wait long */
#define AT_ONCE (1ull << 30)

void ss_decay_watch(struct ss_core *core, void (*begin)(void))
{
	core->pools->begin = begin;
	ss_decay_unwatched(core);
}

void ss_decay_unwatched(struct ss_core *core)
{
	atomic_store(&core->fast->unwatched, true);
	ss_hits_end(core);
}

void ss_decay_begin(struct ss_core *core)
{
	if (!atomic_load_explicit(&core->fast->unwatched, memory_order_relaxed) ||
	    !atomic_exchange(&core->fast->unwatched, false))
		return;
	ss_hits_end(core);
	core->pools->begin();
}

/* After a look: when will more of the pool be due? A threshold knows no age, so what may go by it
 * has gone. */
static void look_for_next(struct ss_pool *pool, struct look *k)
{
	uint64_t reserved = ss_reserved(pool), since, due;
	struct ss_core *core = ss_core_of(pool);

	if (reserved < ss_used(&pool->caches) + atomic_load(&pool->kept) + SS_FRAME ||
	    !wants_back(pool, true))
		return;
	if (!k->idle) {
		/* Something in it may be free and not have completed. After a bypass nobody can
		 * tell. */
		k->late |= !ss_distrusted(core);
		if (!ss_may_give(pool, SS_GIVE_UNASKED))
			return;
	}
	if (atomic_load(&pool->threshold_set) || atomic_load(&pool->dying))
		return;
	since = ss_memory_idle_since(&pool->mem);
	due = since + core->opt.decay_ms;
	if (since && due > k->now)
		k->next = ss_min(k->next, due);
	else if (since)
		k->late = true;
}

uint64_t ss_decay_next(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct look k = {
		.now = ss_now_ms(core), .decays = true, .most = AT_ONCE, .next = UINT64_MAX};
	uint64_t looks = atomic_load(&d->look) + apart(core), retry;

	if (!atomic_load(&ss_device_memory(core, dev)->reserved))
		return UINT64_MAX;
	/* A call of the application has looked lately, and the next one may be under way. */
	if (looks > k.now && !d->more)
		return looks - k.now;
	atomic_store(&d->look, k.now + apart(core));
	ss_fence_poll(core, NULL, -1);
	SS_POOLS_EACH(pool, core, dev)
		look_for_idle(pool, &k);
	/* That frees have completed nobody else asks. */
	if (k.waits || k.others)
		k.idle = ss_device_may_give(core, dev, SS_GIVE_QUERIED);
	if (k.idle || k.others)
		SS_POOLS_EACH(pool, core, dev)
			decay_pool(pool, &k);
	SS_POOLS_EACH(pool, core, dev)
		look_for_next(pool, &k);
	d->more = k.late && k.given;
	if (d->more)
		return 0;
	d->retries = k.late ? ss_min(d->retries + 1, RETRY_TIMES + 1) : 0;
	if (k.late) {
		retry = ss_max(apart(core), RETRY_MS) << (d->retries - 1);
		k.next = ss_min(k.next, k.now + retry);
	}
	return k.next == UINT64_MAX ? k.next : k.next - k.now;
}

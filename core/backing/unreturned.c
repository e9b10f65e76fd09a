/* SPDX-License-Identifier: MIT */
/*
 * Segments that the driver gave but would not open to the pool's devices, nor take back
 * there and then, as beside a capture. They are memory that the process holds, and
 * counted as that, until the driver takes them; and the next segment of the size is to be
 * one of them, or each attempt would leave one more behind.
 *
 * Locks: pool->lock, dropped for the driver.
 */
#include "core/grow.h"

struct ss_unfreed {
	void *native;
	uint64_t size;
	struct ss_unfreed *next;
};

struct ss_unfreed *ss_unfreed_new(struct ss_pool *pool)
{
	return ss_host_alloc(pool->core, sizeof(struct ss_unfreed));
}

void ss_unfreed_done(struct ss_pool *pool, struct ss_unfreed *u)
{
	ss_host_free(pool->core, u, sizeof(*u));
}

static void *out_of(struct ss_pool *pool, struct ss_unfreed **at, struct ss_unfreed **u)
{
	*u = *at;
	*at = (*u)->next;
	atomic_fetch_sub(&pool->reserved, (*u)->size);
	atomic_fetch_sub(&pool->core->dev[pool->dev].reserved, (*u)->size);
	return (*u)->native;
}

void *ss_unfreed_take(struct ss_pool *pool, uint64_t size, struct ss_unfreed **u)
{
	struct ss_unfreed **at = &pool->unfreed;
	void *native = NULL;

	pthread_mutex_lock(&pool->lock);
	while (*at && size && (*at)->size != size)
		at = &(*at)->next;
	if (*at)
		native = out_of(pool, at, u);
	pthread_mutex_unlock(&pool->lock);
	return native;
}

bool ss_unfreed_give(struct ss_pool *pool, struct ss_unfreed *u, void *native, uint64_t size)
{
	struct ss_core *core = pool->core;

	if (SS_DRIVE(core, core->drv.segment_free(core->drv.ctx, pool->dev, pool->backing, native,
						  size)) == SS_OK) {
		ss_cap_give(pool, size);
		ss_unfreed_done(pool, u);
		return true;
	}
	u->native = native;
	u->size = size;
	pthread_mutex_lock(&pool->lock);
	u->next = pool->unfreed;
	pool->unfreed = u;
	ss_account_reserved(pool, size);
	pthread_mutex_unlock(&pool->lock);
	return false;
}

uint64_t ss_unfreed_retry(struct ss_pool *pool)
{
	struct ss_unfreed *u;
	uint64_t given = 0;
	void *native;

	while ((native = ss_unfreed_take(pool, 0, &u))) {
		uint64_t size = u->size;

		if (!ss_unfreed_give(pool, u, native, size))
			break;
		given += size;
	}
	return given;
}

void ss_unfreed_drop(struct ss_pool *pool, bool give_back)
{
	struct ss_core *core = pool->core;
	struct ss_unfreed *u;

	pthread_mutex_lock(&pool->lock);
	while ((u = pool->unfreed)) {
		pool->unfreed = u->next;
		pthread_mutex_unlock(&pool->lock);
		if (give_back)
			core->drv.segment_free(core->drv.ctx, pool->dev, pool->backing, u->native,
					       u->size);
		ss_unfreed_done(pool, u);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
}

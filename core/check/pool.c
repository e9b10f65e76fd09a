/* SPDX-License-Identifier: MIT */
/* Handles of pools that were destroyed. Handles are never used twice, so no destroyed handle
 * becomes valid again. */
#include <stdlib.h>

#include "core/check/state.h"

#define POOLS_MAX 4096u /* destroyed pools that are remembered */

struct gone_pool {
	const void *handle;
	struct ss_check_site free;
	UT_hash_handle hh;
};

static void forget(struct ss_check *c, struct gone_pool *p)
{
	HASH_DEL(c->gone_pools, p);
	free(p);
}

void ss_check_pool_end(struct ss_check *c, const void *handle, const char *what, uint32_t stack)
{
	struct gone_pool *p = calloc(1, sizeof(*p)), *old;

	pthread_mutex_lock(&c->lock);
	HASH_FIND_PTR(c->gone_pools, &handle, old);
	if (p && !old) {
		p->handle = handle;
		p->free = (struct ss_check_site){.what = what, .stack = stack};
		if (HASH_COUNT(c->gone_pools) == POOLS_MAX)
			forget(c, c->gone_pools); /* the oldest */
		HASH_ADD_PTR(c->gone_pools, handle, p);
	}
	if (!p || !SS_HASH_HAS(p)) {
		c->counts.forgotten += !old;
		free(p);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_pool_use(struct ss_check *c, const void *handle, const char *what, uint32_t stack)
{
	struct ss_finding f = {.fault = SS_FAULT_DESTROYED_POOL, .address = (uintptr_t)handle};
	struct gone_pool *p;

	pthread_mutex_lock(&c->lock);
	HASH_FIND_PTR(c->gone_pools, &handle, p);
	if (p && c->opt.frees) {
		f.use = (struct ss_check_site){.what = what, .stack = stack};
		f.free = p->free;
		finding_add(c, &f);
	}
	pthread_mutex_unlock(&c->lock);
}

void pools_drop(struct ss_check *c)
{
	while (c->gone_pools)
		forget(c, c->gone_pools);
}

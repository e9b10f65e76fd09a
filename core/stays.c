/* SPDX-License-Identifier: MIT */
/*
 * Sizes that stay: a program that builds something up asks again and again for blocks that it
 * keeps, and beside each for some that it frees at once. Placed by best fit, what is kept takes
 * the room of what comes and goes, which then needs new memory; the holes between are too small
 * for either. So in a pool on virtual memory what stays has the upper half of the reservation
 * to itself, as long as there is other room for the rest.
 *
 * Known by size: asked for several times over a while, and none of them was ever freed. What was
 * freed once is never taken for such again, so a loop is mistaken for a while at most. The slow
 * path sees all that matters: a hit is a block whose size was freed before. Streams that keep
 * their bins, or merge by themselves, show it nothing; there nothing is said to stay.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/vmm.h"

#define LEAST_SIZE (256ull << 10) /* smaller blocks fill gaps */
#define TIMES 4                   /* asked for */
#define WHILE 128                 /* allocations from the first time to the last */

static struct ss_stay *slot_of(struct ss_vmm *v, uint64_t size)
{
	return &v->stay[(size / SS_GRAIN * 0x9e3779b97f4a7c15ull) >> 55];
}

void ss_stays_asked(struct ss_pool *pool, uint64_t size)
{
	struct ss_stay *s;

	if (!pool->vmm || size < LEAST_SIZE)
		return;
	s = slot_of(pool->vmm, size);
	/* Of two sizes that share a slot the later one has it. */
	if (s->size != size)
		*s = (struct ss_stay){.size = size, .first = pool->spent.allocs};
	s->last = pool->spent.allocs;
	s->count++;
	pool->vmm->stays_nothing = false;
}

void ss_stays_freed(struct ss_pool *pool, const struct ss_block *list)
{
	if (!pool->vmm)
		return;
	for (; list; list = list->left) {
		struct ss_stay *s = slot_of(pool->vmm, list->size);

		if (s->size == list->size)
			s->freed = true;
	}
}

void ss_stays_forget(struct ss_pool *pool)
{
	if (!pool->vmm || pool->vmm->stays_nothing)
		return;
	memset(pool->vmm->stay, 0, sizeof(pool->vmm->stay));
	pool->vmm->stays_nothing = true;
}

bool ss_stays(const struct ss_pool *pool, uint64_t size)
{
	const struct ss_stay *s;

	if (!pool->vmm)
		return false;
	s = slot_of(pool->vmm, size);
	return s->size == size && !s->freed && s->count >= TIMES && s->last - s->first >= WHILE;
}

uint64_t ss_stays_from(const struct ss_vmm *v)
{
	return v->seg->base + v->frames / 2 * v->unit;
}

/* SPDX-License-Identifier: MIT */
/*
 * The storage of block descriptors, which are never freed. Each has cache lines of its own, so its
 * former owner does not matter.
 *
 * Locks: the lock of the spare descriptors' owner; core->map->lock, a leaf.
 */
#include "core/base/lock.h"
#include "core/range/address_map.h"

_Static_assert(sizeof(struct ss_block) % SS_LINES == 0, "descriptors share a line");

/* A descriptor that was used before, or else the next of the newest slab. core->map->lock held. */
static struct ss_block *take(struct ss_map *map, struct ss_core *core)
{
	struct ss_block *b = map->unused, *slab;

	if (b) {
		map->unused = b->left;
		return b;
	}
	if (map->made == map->slab_count * SS_SLAB) {
		slab = map->slab_count < SS_MAX_SLABS ? ss_host_alloc(core, SS_SLAB_BYTES) : NULL;
		if (!slab)
			return NULL;
		__atomic_store_n(&map->slabs[map->slab_count++], slab, __ATOMIC_RELEASE);
	}
	b = ss_block_by_index(map, map->made);
	b->index = map->made++;
	return b;
}

struct ss_block *ss_block_new_slow(struct ss_core *core, struct ss_spares *own)
{
	struct ss_block *b;

	pthread_mutex_lock(&core->map->lock);
	while (own->count < SS_BATCH && (b = take(core->map, core))) {
		b->left = own->head;
		own->head = b;
		own->count++;
	}
	pthread_mutex_unlock(&core->map->lock);
	return own->head ? ss_block_new(core, own) : NULL;
}

void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep)
{
	pthread_mutex_lock(&core->map->lock);
	while (own->count > keep) {
		struct ss_block *b = ss_block_new(core, own);

		b->left = core->map->unused;
		core->map->unused = b;
	}
	pthread_mutex_unlock(&core->map->lock);
}

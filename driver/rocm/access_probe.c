/* SPDX-License-Identifier: MIT */
/*
 * Some releases refuse hipMemSetAccess on a later part of a range (quirks V1, V3). It is not known
 * which of the newer releases do, so a trial finds out before virtual memory is used. No lock: two
 * threads that try at the same time find the same.
 *
 * The newer releases wait in hipMemUnmap for all work of the device, and the trial runs inside
 * calls that natively wait for nothing. So its chunks stay mapped until the core unmaps memory: by
 * then the core has found the device idle.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/rocm/access_probe.h"
#include "driver/rocm/vmm.h"

#define PARTS 4

enum verdict { UNTRIED, TAKEN, REFUSED };

struct trial {
	int dev, mapped;
	uint64_t size; /* bytes of a part */
	char *va;
	void *chunk[PARTS];
	struct trial *next;
};

static _Atomic(struct trial *) mapped[SS_MAX_DEVICES]; /* trials that are still mapped */

static bool map_next(struct trial *t)
{
	char *at = t->va + (uint64_t)t->mapped * t->size;

	if (ss_rocm_vmm_create(NULL, t->dev, t->size, &t->chunk[t->mapped]) != SS_OK)
		return false;
	if (ss_rocm_vmm_map(NULL, t->dev, at, t->size, t->chunk[t->mapped]) != SS_OK) {
		ss_rocm_vmm_release(NULL, t->dev, t->chunk[t->mapped], t->size);
		return false;
	}
	t->mapped++;
	return true;
}

static enum ss_status open_range(const struct trial *t, int first, int count)
{
	return ss_rocm_vmm_access(NULL, t->dev, t->va + (uint64_t)first * t->size,
				  (uint64_t)count * t->size, 1ull << t->dev);
}

static void keep(struct trial *t)
{
	t->next = atomic_load(&mapped[t->dev]);
	while (!atomic_compare_exchange_weak(&mapped[t->dev], &t->next, t))
		;
}

void ss_rocm_access_trial_end(int dev)
{
	struct trial *t, *next;

	/* The unmaps below call this function again, which then finds nothing. */
	for (t = atomic_load(&mapped[dev]) ? atomic_exchange(&mapped[dev], NULL) : NULL; t;
	     t = next) {
		bool gone = true;

		next = t->next;
		for (int i = 0; i < t->mapped; i++)
			if (ss_rocm_vmm_unmap(NULL, dev, t->va + (uint64_t)i * t->size, t->size) ==
			    SS_OK)
				ss_rocm_vmm_release(NULL, dev, t->chunk[i], t->size);
			else
				gone = false;
		if (gone)
			ss_rocm_vmm_unreserve(NULL, dev, t->va, PARTS * t->size);
		free(t);
	}
}

static enum verdict try(int dev)
{
	struct trial *t = calloc(1, sizeof(*t));
	enum verdict found = TAKEN;
	bool open;
	void *va;

	if (t)
		*t = (struct trial){.dev = dev, .size = ss_rocm_vmm_min_chunk(dev)};
	if (!t || !t->size || ss_rocm_vmm_reserve(NULL, dev, PARTS * t->size, &va) != SS_OK) {
		free(t);
		return TAKEN;
	}
	t->va = va;
	open = map_next(t) ? open_range(t, 0, 1) == SS_OK : true;
	while (open && t->mapped && t->mapped < PARTS && map_next(t))
		if (open_range(t, t->mapped - 1, 1) != SS_OK) {
			found = REFUSED;
			open = open_range(t, 0, t->mapped) == SS_OK;
		}
	/* Some releases crash if memory without access is unmapped, so such memory stays mapped for
	 * good. */
	if (open)
		keep(t);
	else
		free(t);
	return found;
}

bool ss_rocm_access_parts(int dev)
{
	static _Atomic unsigned char known[SS_MAX_DEVICES];

	if (atomic_load(&known[dev]) == UNTRIED)
		atomic_store(&known[dev], (unsigned char)try(dev));
	return atomic_load(&known[dev]) == TAKEN;
}

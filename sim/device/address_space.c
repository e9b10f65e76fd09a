/* SPDX-License-Identifier: MIT */
/* A heap of address space: the free ranges, coalesced. */
#include <stdlib.h>

#include "device/address_space.h"
#include "device/macros.h"

void sim_address_space_add(struct sim_address_space *s, uintptr_t base, size_t size)
{
	struct sim_range *p = sim_range_floor(s->free, base);
	struct sim_range *n = sim_range_next(s->free, base);

	if (p && p->base + p->size == base) {
		sim_range_remove(&s->free, p);
		p->size += size;
	} else {
		p = calloc(1, sizeof *p);
		if (!p)
			abort();
		p->base = base;
		p->size = size;
	}
	if (n && p->base + p->size == n->base) {
		sim_range_remove(&s->free, n);
		p->size += n->size;
		free(n);
	}
	sim_range_insert(&s->free, p);
}

uintptr_t sim_address_space_take(struct sim_address_space *s, size_t size, size_t align)
{
	struct sim_range *n = sim_range_fit(s->free, size, align);
	uintptr_t base, at;
	size_t len;

	if (!n)
		return 0;
	base = n->base;
	len = n->size;
	at = SIM_ALIGN(base, align);
	sim_range_remove(&s->free, n);
	free(n);
	if (at > base)
		sim_address_space_add(s, base, at - base);
	if (at + size < base + len)
		sim_address_space_add(s, at + size, base + len - at - size);
	return at;
}

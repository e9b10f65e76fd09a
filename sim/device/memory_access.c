/* SPDX-License-Identifier: MIT */
/*
 * Access to mapped memory, with the quirks of hipMemSetAccess and the quirk map-settle.
 *
 * Locks: sim_vmm_lock. The address map's lock is taken inside it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/address_map.h"
#include "device/clock.h"
#include "device/host_access.h"
#include "device/macros.h"
#include "device/mapping.h"
#include "device/options.h"
#include "device/virtual_memory.h"

/* Quirk map-settle: for a while a fresh mapping is backed by pages that are thrown away
 * afterwards, so that loads give zeros and stores are lost. The first device work after that
 * time puts the real pages there, however late it comes. */
struct settle {
	uintptr_t base;
	uint64_t generation, due_us;
	struct settle *next;
};

static struct settle *unsettled;
static atomic_int unsettled_count;

void sim_vmm_settle(void)
{
	if (!atomic_load(&unsettled_count))
		return;
	pthread_mutex_lock(&sim_vmm_lock);
	for (struct settle **at = &unsettled, *s; (s = *at);) {
		struct sim_reservation *v = sim_reservation_of((void *)s->base, 1);
		struct sim_range *r = v ? sim_range_floor(v->maps, s->base) : NULL;
		struct sim_mapping *m = r ? container_of(r, struct sim_mapping, r) : NULL;

		if (s->due_us > sim_now_ns() / 1000) {
			at = &s->next;
			continue;
		}
		if (m && r->base == s->base && m->generation == s->generation && m->accessible)
			if (sim_mapping_back(m, PROT_READ | PROT_WRITE))
				sim_host_access((void *)m->r.base, m->r.size, m->host);
		*at = s->next;
		free(s);
		atomic_fetch_sub(&unsettled_count, 1);
	}
	pthread_mutex_unlock(&sim_vmm_lock);
}

/* Gives somebody access to the mapping, which nobody had. */
static void make_accessible(struct sim_mapping *m)
{
	struct settle *s;

	m->accessible = true;
	sim_mappings_accessible++;
	if (sim_opt.quirk[SIM_Q_MAP_SETTLE] && (s = malloc(sizeof *s))) {
		s->base = m->r.base;
		s->generation = m->generation;
		s->due_us = sim_now_ns() / 1000 + (uint64_t)sim_opt.settle_us;
		s->next = unsettled;
		unsettled = s;
		atomic_fetch_add(&unsettled_count, 1);
		mmap((void *)m->r.base, m->r.size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		return;
	}
	sim_host_access((void *)m->r.base, m->r.size, m->host);
}

static void spoil(void *p)
{
	sim_work_begin("a grant of access");
	memset(p, 0xee, SIM_PAGE);
	sim_work_end();
}

struct grant {
	uint32_t bit;
	int prot;
};

static void grant(struct sim_alloc *a, void *arg)
{
	struct grant *g = arg;

	a->access &= ~(g->bit);
	if (g->prot == 3)
		a->access |= g->bit;
	a->flags = (unsigned)g->prot;
}

int sim_vmm_access(void *p, size_t size, int device, int prot)
{
	uintptr_t at = (uintptr_t)p, end = at + size;
	struct grant g = {device < 0 ? 0 : 1u << device, prot};
	struct sim_mapping *last = NULL;
	struct sim_reservation *v;
	bool accessible_before = false;
	int e = -EINVAL;

	pthread_mutex_lock(&sim_vmm_lock);
	v = sim_reservation_of(p, size);
	if (!v)
		goto out;
	for (uintptr_t x = at; x < end;) {
		struct sim_range *r = sim_range_next(v->maps, x);

		if (!r || r->base != x || r->base + r->size > end)
			goto out;
		last = container_of(r, struct sim_mapping, r);
		if (device >= 0 && device != last->h->device && !sim_opt.peers)
			goto out;
		if (sim_opt.quirk[SIM_Q_SETACCESS_LOST] &&
		    (r->base - v->r.base) / SIM_HUGE_PAGE % 37 == 5)
			goto out;
		accessible_before |= x == at && last->accessible;
		x = r->base + r->size;
	}
	/* V1, as observed on 7.2.4: the range may not begin with accessible mappings and end
	 * with others. */
	if (sim_opt.quirk[SIM_Q_SETACCESS_WHOLE] && accessible_before && last && !last->accessible)
		goto out;
	/* V1 to V3: only a range that starts with the reservation works. */
	if (sim_opt.quirk[SIM_Q_SETACCESS_TAIL] && at != v->r.base)
		goto out;
	if (sim_opt.quirk[SIM_Q_SETACCESS_SOME] &&
	    (sim_mapping_generation * 2654435761u >> 8) % 3 == 0) {
		sim_mapping_generation++;
		goto out;
	}
	if (sim_opt.quirk[SIM_Q_SETACCESS_HOST] && device < 0)
		goto out;
	for (uintptr_t x = at; x < end;) {
		struct sim_range *r = sim_range_next(v->maps, x);
		struct sim_mapping *m = container_of(r, struct sim_mapping, r);
		struct sim_alloc a;

		sim_update((void *)r->base, grant, &g);
		sim_find((void *)r->base, &a);
		if (device < 0 && m->host != !!prot) {
			m->host = prot;
			if (m->accessible)
				sim_host_access((void *)r->base, r->size, m->host);
		}
		if (prot && !m->accessible) {
			make_accessible(m);
		} else if (!prot && !a.access && m->accessible) {
			mprotect((void *)r->base, r->size, PROT_NONE);
			m->accessible = false;
			sim_mappings_accessible--;
		}
		/* V13: a grant to a peer that comes after the owner's spoils the contents. */
		if (sim_opt.quirk[SIM_Q_PEER_SETACCESS] && prot && device >= 0 &&
		    device != a.device && (a.access & 1u << a.device))
			spoil((void *)r->base);
		x = r->base + r->size;
	}
	e = 0;
out:
	pthread_mutex_unlock(&sim_vmm_lock);
	return e;
}

int sim_vmm_get_access(const void *p, int device, int *prot)
{
	struct sim_alloc a;

	if (!sim_find(p, &a) || a.kind != SIM_MAPPED)
		return -EINVAL;
	*prot = a.access & 1u << device ? 3 : 0;
	return 0;
}

struct sim_phys *sim_phys_at(const void *p)
{
	struct sim_alloc a;

	return sim_find(p, &a) && a.kind == SIM_MAPPED ? a.owner : NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reservations and mappings: a reservation is PROT_NONE, a mapping is an mmap of a memfd.
 *
 * Locks: sim_vmm_lock. The address map's lock and a device's lock are taken inside it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "device/arena.h"
#include "device/fault.h"
#include "device/kept_memory.h"
#include "device/mapping.h"
#include "device/options.h"
#include "device/virtual_memory.h"

pthread_mutex_t sim_vmm_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t sim_mapping_generation;
int sim_mappings_accessible;

static struct sim_range *reservations;

/* Quirk exit-mapped: at its end, after its devices are gone, the runtime takes away the
 * access to every mapping, and crashes if there is one. */
__attribute__((destructor)) static void exit_mapped(void)
{
	if (sim_opt.quirk[SIM_Q_EXIT_MAPPED] && sim_mappings_accessible) {
		fprintf(stderr, "somasim: %d mappings at exit\n", sim_mappings_accessible);
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
}

struct sim_reservation *sim_reservation_of(const void *p, size_t size)
{
	struct sim_range *r = sim_range_floor(reservations, (uintptr_t)p);

	if (!r || (uintptr_t)p - r->base >= r->size || size > r->size - ((uintptr_t)p - r->base))
		return NULL;
	return container_of(r, struct sim_reservation, r);
}

bool sim_vmm_reserved(const void *p)
{
	bool yes;

	pthread_mutex_lock(&sim_vmm_lock);
	yes = sim_reservation_of(p, 1) != NULL;
	pthread_mutex_unlock(&sim_vmm_lock);
	return yes;
}

int sim_vmm_reserve(void **out, size_t size, size_t align, void *hint)
{
	struct sim_reservation *v = calloc(1, sizeof *v);
	size_t raw = size + align;
	char *p;

	if (!v)
		return -ENOMEM;
	if (align < SIM_HUGE_PAGE)
		align = SIM_HUGE_PAGE;
	raw = size + align;
	p = mmap(hint, raw, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(v);
		return -ENOMEM;
	}
	v->raw = p;
	v->raw_size = raw;
	v->r.base = SIM_ALIGN((uintptr_t)p, align);
	v->r.size = size;
	pthread_mutex_lock(&sim_vmm_lock);
	sim_watch_faults();
	sim_range_insert(&reservations, &v->r);
	pthread_mutex_unlock(&sim_vmm_lock);
	*out = (void *)v->r.base;
	return 0;
}

int sim_vmm_unreserve(void *p, size_t size)
{
	struct sim_reservation *v;

	pthread_mutex_lock(&sim_vmm_lock);
	v = sim_reservation_of(p, 1);
	if (!v || v->r.base != (uintptr_t)p || (size && v->r.size != size) || v->maps) {
		pthread_mutex_unlock(&sim_vmm_lock);
		return -EINVAL;
	}
	sim_range_remove(&reservations, &v->r);
	if (v->kept)
		sim_uncharge(v->kept_device, v->kept);
	munmap(v->raw, v->raw_size);
	pthread_mutex_unlock(&sim_vmm_lock);
	free(v);
	return 0;
}

bool sim_mapping_back(struct sim_mapping *m, int prot)
{
	struct sim_phys *h = m->h;

	return mmap((void *)m->r.base, m->r.size, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		    h->fd >= 0 ? h->fd : sim_devices[h->device].physfd,
		    h->fd >= 0 ? 0 : (off_t)h->offset) != MAP_FAILED;
}

int sim_vmm_map(void *p, size_t size, struct sim_phys *h, bool hip)
{
	struct sim_alloc a = {.kind = SIM_MAPPED, .hip = hip, .slot = -1};
	struct sim_reservation *v;
	struct sim_mapping *m = calloc(1, sizeof *m);
	struct sim_range *f;
	int e = -EINVAL;

	pthread_mutex_lock(&sim_vmm_lock);
	v = sim_reservation_of(p, size);
	h = sim_phys_valid(h);
	if (!m || !v || !h || size > h->size || (uintptr_t)p % SIM_PAGE)
		goto out;
	f = sim_range_floor(v->maps, (uintptr_t)p + size - 1);
	if (f && f->base + f->size > (uintptr_t)p)
		goto out;
	m->r.base = (uintptr_t)p;
	m->r.size = size;
	m->h = h;
	m->generation = ++sim_mapping_generation;
	if (!sim_mapping_back(m, PROT_NONE)) {
		e = -ENOMEM;
		goto out;
	}
	sim_range_insert(&v->maps, &m->r);
	h->maps++;
	h->last_mapped = (uintptr_t)p;
	a.r.base = (uintptr_t)p;
	a.r.size = a.size = size;
	a.device = h->device;
	a.id = sim_next_id();
	a.owner = h;
	sim_map_add(&a);
	m = NULL;
	e = 0;
out:
	pthread_mutex_unlock(&sim_vmm_lock);
	free(m);
	return e;
}

int sim_vmm_unmap(void *p, size_t size, bool all)
{
	uintptr_t at = (uintptr_t)p, end = at + size;
	struct sim_reservation *v;
	struct sim_range *r;
	int n = 0, e = -EINVAL;

	pthread_mutex_lock(&sim_vmm_lock);
	v = sim_reservation_of(p, size);
	if (!v)
		goto out;
	/* The range must consist of whole mappings, without a gap. */
	for (uintptr_t x = at; x < end; n++) {
		r = sim_range_next(v->maps, x);
		if (!r || r->base != x || r->base + r->size > end)
			goto out;
		if (sim_opt.quirk[SIM_Q_UNMAP_UNOPENED] &&
		    !container_of(r, struct sim_mapping, r)->accessible)
			goto unopened;
		x = r->base + r->size;
	}
	if (!n)
		goto out;
	if (sim_opt.quirk[SIM_Q_UNMAP_PARTIAL] || !all)
		n = 1;
	while (n-- && at < end) {
		struct sim_alloc a;
		struct sim_mapping *m;

		r = sim_range_next(v->maps, at);
		m = container_of(r, struct sim_mapping, r);
		at = r->base + r->size;
		if (sim_opt.quirk[SIM_Q_PHYS_KEPT]) {
			mprotect((void *)r->base, r->size, PROT_NONE);
			sim_left_add(&m->h->left, r->base, r->size);
		} else {
			mmap((void *)r->base, r->size, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		}
		sim_range_remove(&v->maps, r);
		sim_map_remove((void *)r->base, &a);
		m->h->maps--;
		sim_mappings_accessible -= m->accessible;
		sim_phys_drop(m->h);
		free(m);
	}
	e = 0;
	goto out;
unopened:
	if (sim_opt.hip < 70) {
		fprintf(stderr, "somasim: unmapped, and nobody has access to it\n");
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
out:
	pthread_mutex_unlock(&sim_vmm_lock);
	return e;
}

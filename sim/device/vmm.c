/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: reservations are PROT_NONE, physical handles are
 * ranges of a memfd, mapping is real mmap, access is mprotect plus a mask per
 * device. Device work on unmapped or inaccessible memory is a page fault that
 * ends the process, as on a GPU.
 *
 * Lock order: vmm_lock, then the address map, then a device's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/vmm.h"

__thread const char *sim_device_work __attribute__((tls_model("initial-exec")));

pthread_mutex_t vmm_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_range *reservations;
static uint64_t next_gen;
static struct sigaction old_segv, old_bus;

/* Mappings that somebody has access to. */
static uint64_t open_count;

/* Quirk exit-mapped: the runtime takes access away from each at its end, after the devices
 * that had it. */
__attribute__((destructor)) static void end(void)
{
	if (sim_opt.quirk[SIM_Q_EXIT_MAPPED] && open_count) {
		fprintf(stderr, "somasim: %" PRIu64 " mappings at exit\n", open_count);
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
}

/* ---- faults ---- */

void sim_fault(const void *addr, const char *who, const char *why)
{
	char line[200];
	int n = snprintf(line, sizeof line, "somasim: device page fault at %p by %s (%s)\n", addr, who, why);

	if (write(2, line, (size_t)n) < 0)
		n = 0;                        /* nowhere to say it */
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	struct sigaction *old = sig == SIGSEGV ? &old_segv : &old_bus;

	if (sim_device_work)
		sim_fault(info->si_addr, sim_device_work, "not mapped");
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, ctx);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(sig);
	else
		signal(sig, SIG_DFL);
}

/* Only a process that reserves address space gets a handler. */
static void watch_faults(void)
{
	static bool done;
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (done)
		return;
	done = true;
	sa.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &sa, &old_segv);
	sigaction(SIGBUS, &sa, &old_bus);
}

/* ---- reservations ---- */

struct reservation *sim_reservation_of(const void *p, size_t size)
{
	struct sim_range *r = sim_range_floor(reservations, (uintptr_t)p);

	if (!r || (uintptr_t)p - r->base >= r->size || size > r->size - ((uintptr_t)p - r->base))
		return NULL;
	return container_of(r, struct reservation, r);
}

bool sim_vmm_reserved(const void *p)
{
	bool yes;

	pthread_mutex_lock(&vmm_lock);
	yes = sim_reservation_of(p, 1) != NULL;
	pthread_mutex_unlock(&vmm_lock);
	return yes;
}

int sim_vmm_reserve(void **out, size_t size, size_t align, void *hint)
{
	struct reservation *v = calloc(1, sizeof *v);
	size_t raw = size + align;
	char *p;

	if (!v)
		return -ENOMEM;
	if (align < SIM_BIG)
		align = SIM_BIG;
	raw = size + align;
	p = mmap(hint, raw, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(v);
		return -ENOMEM;
	}
	v->raw = p;
	v->rawsize = raw;
	v->r.base = SIM_ALIGN((uintptr_t)p, align);
	v->r.size = size;
	pthread_mutex_lock(&vmm_lock);
	watch_faults();
	sim_range_insert(&reservations, &v->r);
	pthread_mutex_unlock(&vmm_lock);
	*out = (void *)v->r.base;
	return 0;
}

int sim_vmm_unreserve(void *p, size_t size)
{
	struct reservation *v;

	pthread_mutex_lock(&vmm_lock);
	v = sim_reservation_of(p, 1);
	if (!v || v->r.base != (uintptr_t)p || (size && v->r.size != size) || v->maps) {
		pthread_mutex_unlock(&vmm_lock);
		return -EINVAL;
	}
	sim_range_remove(&reservations, &v->r);
	if (v->kept)
		sim_uncharge(v->kept_device, v->kept);
	munmap(v->raw, v->rawsize);
	pthread_mutex_unlock(&vmm_lock);
	free(v);
	return 0;
}

static bool map_real(struct mapping *m, int prot)
{
	struct sim_phys *h = m->h;

	return mmap((void *)m->r.base, m->r.size, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		    h->fd >= 0 ? h->fd : sim_devices[h->device].physfd,
		    h->fd >= 0 ? 0 : (off_t)h->offset) != MAP_FAILED;
}

int sim_vmm_map(void *p, size_t size, struct sim_phys *h, bool hip)
{
	struct sim_alloc a = { .kind = SIM_MAPPED, .hip = hip, .slot = -1 };
	struct reservation *v;
	struct mapping *m = calloc(1, sizeof *m);
	struct sim_range *f;
	int e = -EINVAL;

	pthread_mutex_lock(&vmm_lock);
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
	m->gen = ++next_gen;
	if (!map_real(m, PROT_NONE)) {
		e = -ENOMEM;
		goto out;
	}
	sim_range_insert(&v->maps, &m->r);
	h->maps++;
	h->where = (uintptr_t)p;
	a.r.base = (uintptr_t)p;
	a.r.size = a.size = size;
	a.device = h->device;
	a.id = sim_next_id();
	a.owner = h;
	sim_map_add(&a);
	m = NULL;
	e = 0;
out:
	pthread_mutex_unlock(&vmm_lock);
	free(m);
	return e;
}

int sim_vmm_unmap(void *p, size_t size, bool exact)
{
	uintptr_t at = (uintptr_t)p, end = at + size;
	struct reservation *v;
	struct sim_range *r;
	int n = 0, e = -EINVAL;

	pthread_mutex_lock(&vmm_lock);
	v = sim_reservation_of(p, size);
	if (!v)
		goto out;
	/* Exactly whole handles, and every one of them, or nothing. */
	for (uintptr_t x = at; x < end; n++) {
		r = sim_range_next(v->maps, x);
		if (!r || r->base != x || r->base + r->size > end)
			goto out;
		x = r->base + r->size;
	}
	if (!n)
		goto out;
	if (sim_opt.quirk[SIM_Q_UNMAP_PARTIAL] || !exact)
		n = 1;
	while (n-- && at < end) {
		struct sim_alloc a;
		struct mapping *m;

		r = sim_range_next(v->maps, at);
		m = container_of(r, struct mapping, r);
		at = r->base + r->size;
		mmap((void *)r->base, r->size, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		sim_range_remove(&v->maps, r);
		sim_map_remove((void *)r->base, &a);
		m->h->maps--;
		open_count -= m->prot;
		sim_phys_drop(m->h);
		free(m);
	}
	e = 0;
out:
	pthread_mutex_unlock(&vmm_lock);
	return e;
}

/* Quirk map-settle: for a while the range is backed by pages that nobody will
 * ever see again: loads give zeros, stores are lost. The first command after that
 * finds the real ones, however late this thread or that is. */
struct settle {
	uintptr_t base;
	uint64_t gen, due_us;
	struct settle *next;
};

static struct settle *unsettled;
static atomic_int unsettled_count;

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void sim_vmm_settle(void)
{
	if (!atomic_load(&unsettled_count))
		return;
	pthread_mutex_lock(&vmm_lock);
	for (struct settle **at = &unsettled, *s; (s = *at);) {
		struct reservation *v = sim_reservation_of((void *)s->base, 1);
		struct sim_range *r = v ? sim_range_floor(v->maps, s->base) : NULL;
		struct mapping *m = r ? container_of(r, struct mapping, r) : NULL;

		if (s->due_us > now_us()) {
			at = &s->next;
			continue;
		}
		if (m && r->base == s->base && m->gen == s->gen && m->prot)
			map_real(m, PROT_READ | PROT_WRITE);
		*at = s->next;
		free(s);
		atomic_fetch_sub(&unsettled_count, 1);
	}
	pthread_mutex_unlock(&vmm_lock);
}

static void open_mapping(struct mapping *m)
{
	struct settle *s;

	m->prot = true;
	open_count++;
	if (sim_opt.quirk[SIM_Q_MAP_SETTLE] && (s = malloc(sizeof *s))) {
		s->base = m->r.base;
		s->gen = m->gen;
		s->due_us = now_us() + (uint64_t)sim_opt.settle_us;
		s->next = unsettled;
		unsettled = s;
		atomic_fetch_add(&unsettled_count, 1);
		mmap((void *)m->r.base, m->r.size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		return;
	}
	mprotect((void *)m->r.base, m->r.size, PROT_READ | PROT_WRITE);
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
	struct grant g = { device < 0 ? 0 : 1u << device, prot };
	struct mapping *last = NULL;
	struct reservation *v;
	bool open_before = false;
	int e = -EINVAL;

	pthread_mutex_lock(&vmm_lock);
	v = sim_reservation_of(p, size);
	if (!v)
		goto out;
	for (uintptr_t x = at; x < end;) {
		struct sim_range *r = sim_range_next(v->maps, x);

		if (!r || r->base != x || r->base + r->size > end)
			goto out;
		last = container_of(r, struct mapping, r);
		if (sim_opt.quirk[SIM_Q_SETACCESS_LOST] && (r->base - v->r.base) / SIM_BIG % 37 == 5)
			goto out;
		open_before |= x == at && last->prot;
		x = r->base + r->size;
	}
	/* V1, as seen on 7.2.4: what is accessible already may not be part of it. */
	if (sim_opt.quirk[SIM_Q_SETACCESS_WHOLE] && open_before && last && !last->prot)
		goto out;
	/* V1 to V3: anything but a range that starts at the reservation. */
	if (sim_opt.quirk[SIM_Q_SETACCESS_TAIL] && at != v->r.base)
		goto out;
	if (sim_opt.quirk[SIM_Q_SETACCESS_SOME] && (next_gen * 2654435761u >> 8) % 3 == 0) {
		next_gen++;
		goto out;
	}
	if (sim_opt.quirk[SIM_Q_SETACCESS_HOST] && device < 0)
		goto out;
	for (uintptr_t x = at; x < end;) {
		struct sim_range *r = sim_range_next(v->maps, x);
		struct mapping *m = container_of(r, struct mapping, r);
		struct sim_alloc a;

		sim_update((void *)r->base, grant, &g);
		sim_find((void *)r->base, &a);
		if (prot && !m->prot) {
			open_mapping(m);
		} else if (!prot && !a.access && m->prot) {
			mprotect((void *)r->base, r->size, PROT_NONE);
			m->prot = false;
			open_count--;
		}
		/* V13: a grant to a peer after the owner's spoils the mapping. */
		if (sim_opt.quirk[SIM_Q_PEER_SETACCESS] && prot && device >= 0 && device != a.device &&
		    (a.access & 1u << a.device))
			memset((void *)r->base, 0xee, SIM_PAGE);
		x = r->base + r->size;
	}
	e = 0;
out:
	pthread_mutex_unlock(&vmm_lock);
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

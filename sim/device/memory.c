/* SPDX-License-Identifier: MIT */
/*
 * Device memory: one sparse memfd per device, mapped once, and the map from
 * address to allocation. Address space is wider than VRAM, so that (as behind
 * real page tables) only bytes are scarce.
 *
 * Lock order: map_lock, then a device's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/sim.h"

struct sim_device sim_devices[SIM_MAX_DEVICES];

static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_range *map;
static _Atomic uint64_t next_id = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;

/* Low descriptors belong to the program: daemons and shells close and reuse
 * them by number. */
static int high_fd(int fd)
{
	int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200);

	if (up < 0)
		return fd;
	close(fd);
	return up;
}

static void init(void)
{
	size_t factor = sim_opt.devices > 4 ? 2 : 4;

	for (int i = 0; i < sim_opt.devices; i++) {
		struct sim_device *d = &sim_devices[i];

		d->index = i;
		pthread_mutex_init(&d->lock, NULL);
		d->total = sim_opt.vram;
		d->span = sim_opt.vram * factor;
		d->fd = high_fd(memfd_create("somasim-vram", MFD_CLOEXEC));
		d->physfd = high_fd(memfd_create("somasim-phys", MFD_CLOEXEC));
		if (d->fd < 0 || d->physfd < 0 ||
		    ftruncate(d->fd, (off_t)d->span) || ftruncate(d->physfd, (off_t)d->span)) {
			perror("somasim: device memory");
			return;
		}
		/* A 2 MiB aligned arena lets big blocks be aligned too. */
		char *p = mmap(NULL, d->span + SIM_BIG, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			perror("somasim: device address space");
			return;
		}
		p = (char *)SIM_ALIGN((uintptr_t)p, SIM_BIG);
		if (mmap(p, d->span, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, d->fd, 0) == MAP_FAILED) {
			perror("somasim: device arena");
			return;
		}
		d->arena = p;
		sim_space_add(&d->space, (uintptr_t)p, d->span);
		/* Offset 0 is never handed out: 0 means "no room". */
		sim_space_add(&d->phys, SIM_BIG, d->span - SIM_BIG);
	}
	ready = true;
}

bool sim_memory_init(void)
{
	pthread_once(&once, init);
	return ready;
}

uint64_t sim_next_id(void)
{
	return atomic_fetch_add(&next_id, 1);
}

bool sim_charge(int device, uint64_t bytes)
{
	struct sim_device *d = &sim_devices[device];
	uint64_t used = atomic_load(&d->used);

	do {
		if (bytes > d->total || used > d->total - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(&d->used, &used, used + bytes));
	return true;
}

void sim_uncharge(int device, uint64_t bytes)
{
	atomic_fetch_sub(&sim_devices[device].used, bytes);
}

uint64_t sim_free_bytes(int device)
{
	if (!sim_memory_init())
		return 0;
	return sim_devices[device].total - atomic_load(&sim_devices[device].used);
}

static void insert(struct sim_alloc *a)
{
	pthread_rwlock_wrlock(&map_lock);
	sim_range_insert(&map, &a->r);
	pthread_rwlock_unlock(&map_lock);
}

/* A pattern that no program mistakes for zeros, where stale reads happen. */
static void poison(void *p, size_t span)
{
	uint64_t s = sim_opt.seed ^ (uintptr_t)p, *w = p;

	for (size_t i = 0; i < SIM_PAGE / 8; i++)
		w[i] = sim_mix(&s);
	w = (uint64_t *)((char *)p + span - SIM_PAGE);
	for (size_t i = 0; i < SIM_PAGE / 8; i++)
		w[i] = sim_mix(&s);
}

void *sim_device_alloc(int device, size_t size, unsigned flags)
{
	struct sim_device *d = &sim_devices[device];
	size_t span = SIM_ALIGN(size, SIM_PAGE);
	struct sim_alloc *a;
	uintptr_t at;

	if (!sim_memory_init() || span < size || !span)
		return NULL;
	if (!sim_charge(device, span)) {
		sim_ipc_sweep(device);
		if (!sim_charge(device, span))
			return NULL;
	}
	a = calloc(1, sizeof *a);
	pthread_mutex_lock(&d->lock);
	at = a ? sim_space_take(&d->space, span, span >= SIM_BIG ? SIM_BIG : SIM_PAGE) : 0;
	pthread_mutex_unlock(&d->lock);
	if (!at) {
		free(a);
		sim_uncharge(device, span);
		return NULL;
	}
	a->r.base = at;
	a->r.size = span;
	a->size = size;
	a->kind = SIM_DEVICE;
	a->device = device;
	a->flags = flags;
	a->id = sim_next_id();
	a->access = 1u << device;
	a->slot = -1;
	a->refs = 1;
	if (sim_opt.poison)
		poison((void *)at, span);
	insert(a);
	return (void *)at;
}

void *sim_host_alloc(size_t size, unsigned flags, enum sim_kind kind, int device)
{
	struct sim_alloc *a = calloc(1, sizeof *a);
	size_t span = SIM_ALIGN(size, SIM_PAGE);
	void *p;

	if (!a || span < size || !span) {
		free(a);
		return NULL;
	}
	p = mmap(NULL, span, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(a);
		return NULL;
	}
	a->r.base = (uintptr_t)p;
	a->r.size = span;
	a->size = size;
	a->kind = kind;
	a->device = device;
	a->flags = flags;
	a->id = sim_next_id();
	a->access = ~0u;
	a->slot = -1;
	a->refs = 1;
	insert(a);
	return p;
}

bool sim_map_add(const struct sim_alloc *from)
{
	struct sim_alloc *a = malloc(sizeof *a);
	struct sim_range *f;
	bool ok;

	if (!a)
		return false;
	*a = *from;
	pthread_rwlock_wrlock(&map_lock);
	f = sim_range_floor(map, a->r.base + a->r.size - 1);
	ok = !f || f->base + f->size <= a->r.base;
	if (ok)
		sim_range_insert(&map, &a->r);
	pthread_rwlock_unlock(&map_lock);
	if (!ok)
		free(a);
	return ok;
}

/* Containing lookup; caller holds the map lock. */
static struct sim_alloc *containing(const void *p)
{
	struct sim_range *r = sim_range_floor(map, (uintptr_t)p);

	if (!r || (uintptr_t)p - r->base >= r->size)
		return NULL;
	return container_of(r, struct sim_alloc, r);
}

bool sim_map_remove(const void *base, struct sim_alloc *out)
{
	struct sim_alloc *a;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(base);
	if (a && a->r.base == (uintptr_t)base)
		sim_range_remove(&map, &a->r);
	else
		a = NULL;
	pthread_rwlock_unlock(&map_lock);
	if (!a)
		return false;
	*out = *a;
	free(a);
	return true;
}

bool sim_map_each(uintptr_t *cursor, struct sim_alloc *out)
{
	struct sim_range *r;

	pthread_rwlock_rdlock(&map_lock);
	r = sim_range_next(map, *cursor);
	if (r) {
		*out = *container_of(r, struct sim_alloc, r);
		*cursor = r->base + 1;
	}
	pthread_rwlock_unlock(&map_lock);
	return r != NULL;
}

bool sim_find(const void *p, struct sim_alloc *out)
{
	struct sim_alloc *a;

	pthread_rwlock_rdlock(&map_lock);
	a = containing(p);
	if (a)
		*out = *a;
	pthread_rwlock_unlock(&map_lock);
	return a != NULL;
}

bool sim_update(const void *p, void (*fn)(struct sim_alloc *a, void *arg), void *arg)
{
	struct sim_alloc *a;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(p);
	if (a)
		fn(a, arg);
	pthread_rwlock_unlock(&map_lock);
	return a != NULL;
}

static void give_back(struct sim_alloc *a)
{
	struct sim_device *d = &sim_devices[a->device];
	off_t off = (off_t)(a->r.base - (uintptr_t)d->arena);

	/* The next owner must not see old bytes, and the host gets its pages. */
	fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, (off_t)a->r.size);
	pthread_mutex_lock(&d->lock);
	sim_space_add(&d->space, a->r.base, a->r.size);
	pthread_mutex_unlock(&d->lock);
	sim_uncharge(a->device, a->r.size);
}

/* Exported memory outlives its free until the last importer closes. */
struct zombie {
	struct sim_alloc a;
	struct zombie *next;
};
static pthread_mutex_t zombie_lock = PTHREAD_MUTEX_INITIALIZER;
static struct zombie *zombies;
static atomic_int nzombies;

void sim_ipc_sweep(int device)
{
	if (!atomic_load(&nzombies))
		return;
	pthread_mutex_lock(&zombie_lock);
	for (struct zombie **z = &zombies; *z;) {
		struct zombie *n = *z;

		if (n->a.device != device || sim_ipc_pinned(device, n->a.slot)) {
			z = &n->next;
			continue;
		}
		*z = n->next;
		atomic_fetch_sub(&nzombies, 1);
		give_back(&n->a);
		free(n);
	}
	pthread_mutex_unlock(&zombie_lock);
}

bool sim_free(const void *p, bool interior)
{
	struct sim_alloc *a, copy;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(p);
	if (a && (a->kind == SIM_LOCKED || a->kind == SIM_SIGNAL || a->kind == SIM_IMPORT ||
		  a->kind == SIM_MAPPED || (!interior && a->r.base != (uintptr_t)p)))
		a = NULL;
	if (a)
		sim_range_remove(&map, &a->r);
	pthread_rwlock_unlock(&map_lock);
	if (!a)
		return false;
	copy = *a;
	free(a);
	if (copy.kind != SIM_DEVICE) {
		munmap((void *)copy.r.base, copy.r.size);
		return true;
	}
	if (copy.slot >= 0) {
		struct zombie *z;

		sim_ipc_freed(copy.device, copy.slot);
		if ((sim_opt.quirk[SIM_Q_IPC_PINNED] || sim_ipc_pinned(copy.device, copy.slot)) &&
		    (z = calloc(1, sizeof *z))) {
			z->a = copy;
			pthread_mutex_lock(&zombie_lock);
			z->next = zombies;
			zombies = z;
			atomic_fetch_add(&nzombies, 1);
			pthread_mutex_unlock(&zombie_lock);
			return true;
		}
	}
	give_back(&copy);
	return true;
}

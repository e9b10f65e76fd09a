/* SPDX-License-Identifier: MIT */
/*
 * Device memory and pinned host memory: the arenas, their accounting, allocation and free.
 *
 * Locks: a device's lock guards its address spaces, exports_lock the list of exported memory
 * that was freed. A device's lock may be taken inside exports_lock.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/arena.h"
#include "device/ipc.h"
#include "device/options.h"
#include "device/start.h"
#include "device/random.h"
#include "device/shared_use.h"

struct sim_device sim_devices[SIM_MAX_DEVICES];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;

int sim_high_fd(int fd)
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

		pthread_mutex_init(&d->lock, NULL);
		d->total = sim_opt.vram;
		d->used = &d->own;
		d->span = sim_opt.vram * factor;
		d->fd = sim_high_fd(memfd_create("somasim-vram", MFD_CLOEXEC));
		d->physfd = sim_high_fd(memfd_create("somasim-phys", MFD_CLOEXEC));
		if (d->fd < 0 || d->physfd < 0 || ftruncate(d->fd, (off_t)d->span) ||
		    ftruncate(d->physfd, (off_t)d->span)) {
			perror("somasim: device memory");
			return;
		}
		/* The arena is aligned so that large blocks can be. */
		char *p = mmap(NULL, d->span + SIM_HUGE_PAGE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			perror("somasim: device address space");
			return;
		}
		p = (char *)SIM_ALIGN((uintptr_t)p, SIM_HUGE_PAGE);
		if (mmap(p, d->span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
			 d->fd, 0) == MAP_FAILED) {
			perror("somasim: device arena");
			return;
		}
		d->arena = p;
		sim_address_space_add(&d->space, (uintptr_t)p, d->span);
		/* Offset 0 is never handed out, since 0 means that nothing fits. */
		sim_address_space_add(&d->phys, SIM_HUGE_PAGE, d->span - SIM_HUGE_PAGE);
	}
	ready = sim_shared_init();
}

bool sim_arena_init(void)
{
	pthread_once(&once, init);
	return ready;
}

static void start(void)
{
	(void)sim_arena_init();
}

__attribute__((constructor(102))) static void arena_hook(void)
{
	sim_on_start = start;
}

void (*_Atomic sim_look_kept)(void);

static void look(void)
{
	void (*f)(void) = atomic_load(&sim_look_kept);

	if (f)
		f();
}

static bool charge(struct sim_device *d, uint64_t bytes)
{
	uint64_t others = sim_shared_begin((int)(d - sim_devices)), used = atomic_load(d->used);
	bool fits;

	do {
		fits = used + others <= d->total - bytes;
	} while (fits && !atomic_compare_exchange_weak(d->used, &used, used + bytes));
	sim_shared_end();
	return fits;
}

bool sim_charge(int device, uint64_t bytes)
{
	struct sim_device *d = &sim_devices[device];

	if (bytes > d->total)
		return false;
	if (charge(d, bytes))
		return true;
	look();
	return charge(d, bytes);
}

void sim_uncharge(int device, uint64_t bytes)
{
	atomic_fetch_sub(sim_devices[device].used, bytes);
}

uint64_t sim_free_bytes(int device)
{
	uint64_t used;

	if (!sim_arena_init())
		return 0;
	look();
	used = sim_shared_begin(device) + atomic_load(sim_devices[device].used);
	sim_shared_end();
	return used < sim_devices[device].total ? sim_devices[device].total - used : 0;
}

/* Option SOMASIM_POISON: fills the first and the last page, where a program that reads memory
 * before it has written it is most likely to look. */
static void poison(void *p, size_t span)
{
	uint64_t s = sim_opt.seed ^ (uintptr_t)p, *w = p;

	for (size_t i = 0; i < SIM_PAGE / 8; i++)
		w[i] = sim_random(&s);
	w = (uint64_t *)((char *)p + span - SIM_PAGE);
	for (size_t i = 0; i < SIM_PAGE / 8; i++)
		w[i] = sim_random(&s);
}

/* The entry of a new allocation in the address map. */
static struct sim_alloc entry(enum sim_kind kind, uintptr_t base, size_t span, size_t size)
{
	return (struct sim_alloc){
		.r = {.base = base, .size = span},
		.size = size,
		.kind = kind,
		.id = sim_next_id(),
		.slot = -1,
	};
}

static void give_back(const struct sim_alloc *a)
{
	struct sim_device *d = &sim_devices[a->device];
	off_t off = (off_t)(a->r.base - (uintptr_t)d->arena);

	/* The next owner must not see old bytes, and the host gets its pages back. */
	fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, (off_t)a->r.size);
	pthread_mutex_lock(&d->lock);
	sim_address_space_add(&d->space, a->r.base, a->r.size);
	pthread_mutex_unlock(&d->lock);
	sim_uncharge(a->device, a->r.size);
}

void *sim_device_alloc(int device, size_t size, unsigned flags)
{
	struct sim_device *d = &sim_devices[device];
	size_t span = SIM_ALIGN(size, SIM_PAGE);
	struct sim_alloc a;
	uintptr_t at;

	if (!sim_arena_init() || span < size || !span)
		return NULL;
	if (!sim_charge(device, span)) {
		sim_exports_sweep(device);
		if (!sim_charge(device, span))
			return NULL;
	}
	pthread_mutex_lock(&d->lock);
	at = sim_address_space_take(&d->space, span,
				    span >= SIM_HUGE_PAGE ? SIM_HUGE_PAGE : SIM_PAGE);
	pthread_mutex_unlock(&d->lock);
	if (!at) {
		sim_uncharge(device, span);
		return NULL;
	}
	a = entry(SIM_DEVICE, at, span, size);
	a.device = device;
	a.flags = flags;
	a.access = 1u << device;
	if (sim_opt.poison)
		poison((void *)at, span);
	if (!sim_map_insert(&a)) {
		give_back(&a);
		return NULL;
	}
	return (void *)at;
}

void *sim_host_alloc(size_t size, unsigned flags, enum sim_kind kind, int device)
{
	size_t span = SIM_ALIGN(size, SIM_PAGE);
	struct sim_alloc a;
	void *p;

	if (span < size || !span)
		return NULL;
	p = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	a = entry(kind, (uintptr_t)p, span, size);
	a.device = device;
	a.flags = flags;
	a.access = ~0u;
	if (!sim_map_insert(&a)) {
		munmap(p, span);
		return NULL;
	}
	return p;
}

/* Exported memory that was freed here, but that another process still has open. */
struct export
{
	struct sim_alloc a;
	struct export *next;
};
static pthread_mutex_t exports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct export *exports;
static atomic_int export_count;

void sim_exports_sweep(int device)
{
	if (!atomic_load(&export_count))
		return;
	pthread_mutex_lock(&exports_lock);
	for (struct export **at = &exports; *at;) {
		struct export *x = *at;

		if (x->a.device != device || sim_ipc_is_open(device, x->a.slot)) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		atomic_fetch_sub(&export_count, 1);
		give_back(&x->a);
		free(x);
	}
	pthread_mutex_unlock(&exports_lock);
}

/* True: the memory stays in use, for the sake of another process. */
static bool keep_export(const struct sim_alloc *a)
{
	struct export *x;

	sim_ipc_revoke(a->device, a->slot);
	if (!sim_ipc_is_open(a->device, a->slot) || !(x = calloc(1, sizeof *x)))
		return false;
	x->a = *a;
	pthread_mutex_lock(&exports_lock);
	x->next = exports;
	exports = x;
	atomic_fetch_add(&export_count, 1);
	pthread_mutex_unlock(&exports_lock);
	return true;
}

bool sim_free(const void *p, bool interior)
{
	struct sim_alloc a;

	if (!sim_map_take(p, interior, &a))
		return false;
	if (a.kind != SIM_DEVICE)
		munmap((void *)a.r.base, a.r.size);
	else if (a.slot < 0 || !keep_export(&a))
		give_back(&a);
	return true;
}

/* ---- test control, found by dlsym ---- */

uint64_t somasim_device_free_bytes(int device);

uint64_t somasim_device_free_bytes(int device)
{
	if (device < 0 || device >= sim_opt.devices)
		return 0;
	sim_exports_sweep(device);
	return sim_free_bytes(device);
}

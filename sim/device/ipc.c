/* SPDX-License-Identifier: MIT */
/*
 * Device memory between processes. The importer opens the exporter's memfd through
 * /proc/<pid>/fd and maps the allocation. One small shared table per device says what is
 * exported and who has it open, so that memory which its exporter has freed is not handed
 * out again while an importer uses it.
 *
 * Locks: ipc_lock guards this process's lists. The shared table is all atomics, because a
 * process may die at any point. The address map's lock is taken inside ipc_lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "device/arena.h"
#include "device/ipc.h"
#include "device/options.h"

#define MAGIC 0x534d4950u
#define SLOTS 2048
#define HOLDERS 24

enum slot_state { SLOT_UNUSED, SLOT_LIVE, SLOT_FREED };

/* One exported allocation, in the shared table. */
struct slot {
	_Atomic uint64_t token; /* 0: never exported, or freed */
	_Atomic uint64_t offset, size;
	_Atomic uint32_t state;           /* a slot_state */
	_Atomic uint32_t holder[HOLDERS]; /* process numbers of the importers, 0 = none */
};

static pthread_mutex_t ipc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd;
	struct slot *slots;
} ctl[SIM_MAX_DEVICES]; /* this process's tables of exports */

struct import {
	void *base;
	size_t size;
	struct slot *slots, *slot;
	int holder; /* index of this process in slot->holder */
	uint64_t token;
	uint32_t pid;
	int refs;
	bool share;
	struct import *next;
};
static struct import *imports;

int sim_open_peer_fd(uint32_t pid, int fd)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Creates the table of exports of a device. Caller holds ipc_lock. */
static bool ctl_init(int device)
{
	void *p;
	int fd;

	if (ctl[device].slots)
		return true;
	fd = sim_high_fd(memfd_create("somasim-ipc", MFD_CLOEXEC));
	if (fd < 0 || ftruncate(fd, SLOTS * sizeof(struct slot)))
		return false;
	p = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return false;
	}
	ctl[device].fd = fd;
	ctl[device].slots = p;
	return true;
}

/* True if a living process has it open. Forgets those that have died. */
static bool is_held(struct slot *s)
{
	bool any = false;

	for (int i = 0; i < HOLDERS; i++) {
		uint32_t pid = atomic_load(&s->holder[i]);

		if (!pid)
			continue;
		if (kill((pid_t)pid, 0) && errno == ESRCH)
			atomic_store(&s->holder[i], 0);
		else
			any = true;
	}
	return any;
}

struct export_arg {
	int slot;
	uint64_t token;
};

static void set_slot(struct sim_alloc *a, void *arg)
{
	struct export_arg *e = arg;

	if (a->slot < 0) {
		a->slot = e->slot;
		a->token = e->token;
	}
}

int sim_ipc_export(const struct sim_alloc *a, struct sim_ipc_handle *h)
{
	struct sim_device *d = &sim_devices[a->device];
	struct export_arg e = {-1, 0};

	if (a->kind != SIM_DEVICE)
		return -EINVAL;
	memset(h, 0, sizeof *h);
	pthread_mutex_lock(&ipc_lock);
	if (!ctl_init(a->device)) {
		pthread_mutex_unlock(&ipc_lock);
		return -ENOMEM;
	}
	if (a->slot >= 0) {
		e.slot = a->slot;
		e.token = a->token;
	} else {
		for (int i = 0; i < SLOTS; i++) {
			struct slot *s = &ctl[a->device].slots[i];
			uint32_t st = atomic_load(&s->state);

			if (st == SLOT_LIVE || (st == SLOT_FREED && is_held(s)))
				continue;
			e.slot = i;
			break;
		}
		if (e.slot < 0 || getrandom(&e.token, 8, 0) != 8) {
			pthread_mutex_unlock(&ipc_lock);
			return -ENOMEM;
		}
		struct slot *s = &ctl[a->device].slots[e.slot];

		atomic_store(&s->offset, a->r.base - (uintptr_t)d->arena);
		atomic_store(&s->size, a->r.size);
		atomic_store(&s->token, e.token | 1);
		atomic_store(&s->state, SLOT_LIVE);
		e.token |= 1;
		sim_update((void *)a->r.base, set_slot, &e);
	}
	pthread_mutex_unlock(&ipc_lock);
	h->magic = MAGIC;
	h->pid = (uint32_t)getpid();
	h->fd = (uint16_t)d->fd;
	h->ctl = (uint16_t)ctl[a->device].fd;
	h->slot = (uint32_t)e.slot | (uint32_t)a->device << 16;
	h->token = e.token;
	h->offset = a->r.base - (uintptr_t)d->arena;
	return 0;
}

bool sim_ipc_is_open(int device, int slot)
{
	return sim_opt.quirk[SIM_Q_IPC_PINNED] ||
	       (ctl[device].slots && is_held(&ctl[device].slots[slot]));
}

void sim_ipc_revoke(int device, int slot)
{
	if (ctl[device].slots) {
		atomic_store(&ctl[device].slots[slot].token, 0);
		atomic_store(&ctl[device].slots[slot].state, SLOT_FREED);
	}
}

/* Maps the memory of another process and enters this process as its holder. */
static void *map_peer(const struct sim_ipc_handle *h, size_t size, struct import *im)
{
	struct slot *slots, *s;
	int fd = -1, cfd = -1;
	void *p = MAP_FAILED;
	unsigned index = h->slot & 0xffff;

	if (h->magic != MAGIC || index >= SLOTS || !h->token)
		return NULL;
	fd = sim_open_peer_fd(h->pid, h->fd);
	cfd = sim_open_peer_fd(h->pid, h->ctl);
	if (fd < 0 || cfd < 0)
		goto out;
	if (lseek(cfd, 0, SEEK_END) < (off_t)(SLOTS * sizeof(struct slot)))
		goto out;
	slots = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, cfd, 0);
	if (slots == MAP_FAILED)
		goto out;
	s = &slots[index];
	/* The importer enters itself first and checks the state second; the exporter changes
	 * the state first and looks for importers second. So one of them sees the other. */
	for (im->holder = 0; im->holder < HOLDERS; im->holder++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&s->holder[im->holder], &none,
						   (uint32_t)getpid()))
			break;
	}
	if (im->holder < HOLDERS && atomic_load(&s->state) == SLOT_LIVE &&
	    atomic_load(&s->token) == h->token && atomic_load(&s->offset) == h->offset) {
		size_t len = atomic_load(&s->size);

		if (SIM_ALIGN(size, SIM_PAGE) <= len &&
		    lseek(fd, 0, SEEK_END) >= (off_t)(h->offset + len)) {
			/* Large memory is aligned here as it is in the exporter. */
			char *v = mmap(NULL, len + SIM_HUGE_PAGE, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

			if (v != MAP_FAILED) {
				size_t align = len >= SIM_HUGE_PAGE ? SIM_HUGE_PAGE : SIM_PAGE;
				char *at = (char *)SIM_ALIGN((uintptr_t)v, align);

				p = mmap(at, len, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
					 (off_t)h->offset);
				if (at > v)
					munmap(v, (size_t)(at - v));
				munmap(at + len, SIM_HUGE_PAGE - (size_t)(at - v));
			}
			im->size = len;
		}
	}
	if (p == MAP_FAILED) {
		if (im->holder < HOLDERS)
			atomic_store(&s->holder[im->holder], 0);
		munmap(slots, SLOTS * sizeof(struct slot));
	} else {
		im->slots = slots;
		im->slot = s;
	}
out:
	if (fd >= 0)
		close(fd);
	if (cfd >= 0)
		close(cfd);
	return p == MAP_FAILED ? NULL : p;
}

static void set_device(struct sim_alloc *a, void *arg)
{
	a->device = *(int *)arg;
}

void *sim_ipc_import(const struct sim_ipc_handle *h, size_t size, int device, bool share)
{
	struct import *im;
	struct sim_alloc a = {.kind = SIM_IMPORT};
	void *p;

	pthread_mutex_lock(&ipc_lock);
	if (share)
		for (im = imports; im; im = im->next)
			if (im->share && im->token == h->token && im->pid == h->pid) {
				im->refs++;
				/* The mapping belongs to the device that opened it last. */
				sim_update(im->base, set_device, &device);
				pthread_mutex_unlock(&ipc_lock);
				return im->base;
			}
	im = calloc(1, sizeof *im);
	p = im ? map_peer(h, size, im) : NULL;
	if (!p) {
		free(im);
		pthread_mutex_unlock(&ipc_lock);
		return NULL;
	}
	im->base = p;
	im->token = h->token;
	im->pid = h->pid;
	im->refs = 1;
	im->share = share;
	im->next = imports;
	imports = im;
	a.r.base = (uintptr_t)p;
	a.r.size = im->size;
	a.size = size ? size : im->size;
	a.device = device;
	a.hip = true;
	a.id = sim_next_id();
	a.access = ~0u;
	a.slot = -1;
	/* The lock is held: no other thread may see the import without its map entry. */
	sim_map_add(&a);
	pthread_mutex_unlock(&ipc_lock);
	return p;
}

bool sim_ipc_close(void *p, bool any)
{
	struct sim_alloc a;
	struct import **at, *im = NULL;

	if (!sim_find(p, &a) || a.kind != SIM_IMPORT || (!any && a.r.base != (uintptr_t)p))
		return false;
	pthread_mutex_lock(&ipc_lock);
	for (at = &imports; *at; at = &(*at)->next)
		if ((*at)->base == (void *)a.r.base)
			break;
	if (*at && --(*at)->refs == 0) {
		im = *at;
		*at = im->next;
	}
	pthread_mutex_unlock(&ipc_lock);
	if (!im)
		return true;
	sim_map_remove(im->base, &a);
	munmap(im->base, im->size);
	atomic_store(&im->slot->holder[im->holder], 0);
	munmap(im->slots, SLOTS * sizeof(struct slot));
	free(im);
	return true;
}

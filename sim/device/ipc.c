/* SPDX-License-Identifier: MIT */
/*
 * Device memory between processes. The importer opens the exporter's VRAM
 * memfd through /proc/<pid>/fd and maps the segment; a small shared page per
 * device says which segments are exported and who holds them, so that memory
 * freed by its exporter is not handed out again under an importer.
 *
 * Locks: ipc_lock guards the local tables; the shared page is atomics only,
 * because a peer may die at any point.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "device/sim.h"

#define MAGIC 0x534d4950u
#define SLOTS 2048
#define HOLDERS 24

struct slot {
	_Atomic uint64_t token;   /* 0: never exported or freed */
	_Atomic uint64_t offset, size;
	_Atomic uint32_t state;   /* 0 unused, 1 live, 2 freed by its owner */
	_Atomic uint32_t holder[HOLDERS];
};

static pthread_mutex_t ipc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd;
	struct slot *slots;
} ctl[SIM_MAX_DEVICES];

struct import {
	void *base;
	size_t size;
	struct slot *slots, *slot;
	int holder;
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

static bool ctl_init(int device)
{
	void *p;

	if (ctl[device].slots)
		return true;
	int fd = memfd_create("somasim-ipc", MFD_CLOEXEC);
	int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200);

	if (up >= 0) {
		close(fd);
		fd = up;
	}
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

static bool held(struct slot *s)
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
	struct export_arg e = { -1, 0 };

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

			if (st == 1 || (st == 2 && held(s)))
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
		atomic_store(&s->state, 1);
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

bool sim_ipc_pinned(int device, int slot)
{
	return sim_opt.quirk[SIM_Q_IPC_PINNED] || (ctl[device].slots && held(&ctl[device].slots[slot]));
}

void sim_ipc_freed(int device, int slot)
{
	if (ctl[device].slots) {
		atomic_store(&ctl[device].slots[slot].token, 0);
		atomic_store(&ctl[device].slots[slot].state, 2);
	}
}

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
	/* Register first, look second: the exporter frees in the other order. */
	for (im->holder = 0; im->holder < HOLDERS; im->holder++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&s->holder[im->holder], &none, (uint32_t)getpid()))
			break;
	}
	if (im->holder < HOLDERS && atomic_load(&s->state) == 1 &&
	    atomic_load(&s->token) == h->token && atomic_load(&s->offset) == h->offset) {
		size_t len = atomic_load(&s->size);

		if (SIM_ALIGN(size, SIM_PAGE) <= len && lseek(fd, 0, SEEK_END) >= (off_t)(h->offset + len)) {
			/* A segment opens where one would: 2 MiB aligned. */
			char *v = mmap(NULL, len + SIM_BIG, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

			if (v != MAP_FAILED) {
				char *at = (char *)SIM_ALIGN((uintptr_t)v, len >= SIM_BIG ? SIM_BIG : SIM_PAGE);

				p = mmap(at, len, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, (off_t)h->offset);
				if (at > v)
					munmap(v, (size_t)(at - v));
				munmap(at + len, SIM_BIG - (size_t)(at - v));
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
	struct sim_alloc a = { .kind = SIM_IMPORT };
	void *p;

	pthread_mutex_lock(&ipc_lock);
	if (share)
		for (im = imports; im; im = im->next)
			if (im->share && im->token == h->token && im->pid == h->pid) {
				im->refs++;
				/* The mapping is of the device that opened it last. */
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
	sim_map_add(&a); /* before another thread can be given the same mapping */
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

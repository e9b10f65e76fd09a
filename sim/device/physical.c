/* SPDX-License-Identifier: MIT */
/*
 * Handles of physical memory: ranges of the device's memfd, or a memfd of their own if they
 * can be exported.
 *
 * Locks: sim_vmm_lock. A device's lock is taken inside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/arena.h"
#include "device/kept_memory.h"
#include "device/mapping.h"
#include "device/options.h"
#include "device/physical.h"

static struct sim_phys *handles;

struct sim_phys *sim_phys_valid(struct sim_phys *h)
{
	for (struct sim_phys *p = handles; p; p = p->next)
		if (p == h)
			return p;
	return NULL;
}

struct sim_phys *sim_phys_create(int device, size_t size, bool exportable)
{
	struct sim_device *d = &sim_devices[device];
	struct sim_phys *h;

	if (!sim_arena_init())
		return NULL;
	if (sim_opt.quirk[SIM_Q_CREATE_CAP] && size > sim_opt.create_cap)
		return NULL;
	if (sim_opt.quirk[SIM_Q_CREATE_CHUNK] && size > (256u << 20))
		return NULL;
	h = calloc(1, sizeof *h);
	if (!h || !sim_charge(device, size)) {
		free(h);
		return NULL;
	}
	h->refs = 1;
	h->device = device;
	h->size = size;
	h->exportable = exportable;
	h->fd = -1;
	if (exportable || sim_opt.quirk[SIM_Q_FD_PER_HANDLE]) {
		h->fd = memfd_create("somasim-handle", MFD_CLOEXEC);
		if (h->fd < 0 || ftruncate(h->fd, (off_t)size)) {
			if (h->fd >= 0)
				close(h->fd);
			sim_uncharge(device, size);
			free(h);
			return NULL;
		}
	} else {
		pthread_mutex_lock(&d->lock);
		h->offset = sim_address_space_take(&d->phys, size, SIM_PAGE);
		pthread_mutex_unlock(&d->lock);
		if (!h->offset) {
			sim_uncharge(device, size);
			free(h);
			return NULL;
		}
	}
	pthread_mutex_lock(&sim_vmm_lock);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&sim_vmm_lock);
	return h;
}

struct sim_phys *sim_phys_import(int fd)
{
	struct sim_phys *h = calloc(1, sizeof *h);
	struct stat st;

	if (!h || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (h->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) {
		free(h);
		return NULL;
	}
	h->refs = 1;
	h->size = (size_t)st.st_size;
	h->exportable = h->imported = true;
	pthread_mutex_lock(&sim_vmm_lock);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&sim_vmm_lock);
	return h;
}

int sim_phys_export(struct sim_phys *h)
{
	int fd = -EINVAL;

	pthread_mutex_lock(&sim_vmm_lock);
	if (sim_phys_valid(h) && h->exportable)
		fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&sim_vmm_lock);
	return fd;
}

void sim_phys_drop(struct sim_phys *h)
{
	struct sim_reservation *last;
	struct sim_device *d = &sim_devices[h->device];

	if (h->refs > 0 || h->maps > 0)
		return;
	for (struct sim_phys **p = &handles; *p; p = &(*p)->next)
		if (*p == h) {
			*p = h->next;
			break;
		}
	if (h->fd >= 0) {
		close(h->fd);
	} else {
		fallocate(d->physfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)h->offset,
			  (off_t)h->size);
		pthread_mutex_lock(&d->lock);
		sim_address_space_add(&d->phys, h->offset, h->size);
		pthread_mutex_unlock(&d->lock);
	}
	if (!h->imported) {
		last = h->last_mapped ? sim_reservation_of((void *)h->last_mapped, 1) : NULL;
		if (h->left) {
			sim_kept_add(h->left, h->device, h->size);
			h->left = NULL;
		} else if (sim_opt.quirk[SIM_Q_PHYS_BOUND] && last) {
			last->kept += h->size;
			last->kept_device = h->device;
		} else if (!sim_opt.quirk[SIM_Q_RELEASE_LEAKS]) {
			sim_uncharge(h->device, h->size);
		}
	}
	sim_left_free(&h->left);
	free(h);
}

bool sim_phys_retain(struct sim_phys *h)
{
	pthread_mutex_lock(&sim_vmm_lock);
	h = sim_phys_valid(h);
	if (h)
		h->refs++;
	pthread_mutex_unlock(&sim_vmm_lock);
	return h != NULL;
}

bool sim_phys_release(struct sim_phys *h)
{
	bool ok = false;

	pthread_mutex_lock(&sim_vmm_lock);
	if (sim_phys_valid(h) && h->refs > 0) {
		h->refs--;
		sim_phys_drop(h);
		ok = true;
	}
	pthread_mutex_unlock(&sim_vmm_lock);
	return ok;
}

bool sim_phys_info(struct sim_phys *h, int *device, size_t *size, bool *exportable)
{
	pthread_mutex_lock(&sim_vmm_lock);
	h = sim_phys_valid(h);
	if (h) {
		*device = h->device;
		*size = h->size;
		*exportable = h->exportable;
	}
	pthread_mutex_unlock(&sim_vmm_lock);
	return h != NULL;
}

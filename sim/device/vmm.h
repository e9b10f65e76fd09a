/* SPDX-License-Identifier: MIT */
/* VMM, inside: shared by vmm.c (reservations) and phys.c (handles). */
#ifndef VMM_SIM_H
#define VMM_SIM_H

#include "device/sim.h"

struct sim_phys {
	uint64_t magic;
	int refs;             /* handles */
	int maps;
	int device;
	size_t size;
	int fd;               /* own memfd, or -1: a range of the device's */
	uint64_t offset;
	bool exportable, imported;
	uintptr_t where;              /* last mapped at */
	struct sim_phys *next;
};

struct mapping {
	struct sim_range r;
	struct sim_phys *h;
	bool prot;
	uint64_t gen;
};

struct reservation {
	struct sim_range r;
	struct sim_range *maps;
	uint64_t kept;        /* quirk phys-kept: bytes per device stay charged */
	int kept_device;
	void *raw;
	size_t rawsize;
};

#define PHYS_MAGIC 0x7068797373696d31ULL

extern pthread_mutex_t vmm_lock;     /* guards all of it */
struct sim_phys *sim_phys_valid(struct sim_phys *h);
void sim_phys_drop(struct sim_phys *h);
struct reservation *sim_reservation_of(const void *p, size_t size);

#endif

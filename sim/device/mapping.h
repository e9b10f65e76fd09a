/* SPDX-License-Identifier: MIT */
/*
 * Reservations, mappings and physical handles as virtual_memory.c, memory_access.c and
 * physical.c see them. sim_vmm_lock guards all of it; the functions are called with it held.
 */
#ifndef SIM_MAPPING_H
#define SIM_MAPPING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/range.h"

struct sim_left;

struct sim_phys {
	int refs;
	int maps; /* mappings of it */
	int device;
	size_t size;
	int fd;          /* its own memfd, or -1: a range of the device's */
	uint64_t offset; /* of that range */
	bool exportable, imported;
	uintptr_t last_mapped; /* address of the last mapping, 0 = none */
	struct sim_left *left; /* quirk phys-kept: where its file is mapped still */
	struct sim_phys *next;
};

struct sim_mapping {
	struct sim_range r;
	struct sim_phys *h;
	bool accessible;     /* somebody has access */
	bool host;           /* so has the host */
	uint64_t generation; /* tells it from an earlier mapping at its address */
};

struct sim_reservation {
	struct sim_range r;
	struct sim_range *maps;
	uint64_t kept; /* quirk phys-bound: bytes that stay charged */
	int kept_device;
	void *raw; /* what was mapped, before alignment */
	size_t raw_size;
};

extern pthread_mutex_t sim_vmm_lock;
extern uint64_t sim_mapping_generation; /* of the newest mapping */
extern int sim_mappings_accessible;     /* mappings that somebody has access to */

/* The reservation that contains size bytes at p, or NULL. */
struct sim_reservation *sim_reservation_of(const void *p, size_t size);

/* h if it is a live handle, else NULL. */
struct sim_phys *sim_phys_valid(struct sim_phys *h);

/* Frees the handle if it has no references and is not mapped. */
void sim_phys_drop(struct sim_phys *h);

/* Maps the handle's pages at the mapping's addresses with a PROT_ mask. */
bool sim_mapping_back(struct sim_mapping *m, int prot);

#endif

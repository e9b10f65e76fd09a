/* SPDX-License-Identifier: MIT */
/*
 * Device memory: one sparse memfd per device, mapped once (its arena). Address space is wider than
 * the memory, as behind real page tables, so only bytes are scarce. Bytes that were never written
 * cost nothing; freed bytes are released to the host, and read as zeros. All functions are
 * thread-safe.
 */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/address_map.h"
#include "device/address_space.h"
#include "device/macros.h"

struct sim_device {
	int fd; /* memfd of the arena; importers open it */
	char *arena;
	size_t span;          /* bytes of address space */
	pthread_mutex_t lock; /* guards the two address spaces */
	struct sim_address_space space;
	uint64_t total;
	_Atomic uint64_t own, *used;   /* bytes; *used is own, or lies in SOMASIM_SHARED */
	int physfd;                    /* memfd of physical handles that cannot be exported */
	struct sim_address_space phys; /* offsets into physfd */
};

extern struct sim_device sim_devices[SIM_MAX_DEVICES];

/* Creates the arenas, once. False: the host has no memory or descriptors. */
bool sim_arena_init(void);

/* Moves a descriptor to a high number: daemons and shells close and reuse low ones. Returns
 * the new number, or fd itself if that fails or fd is negative. */
int sim_high_fd(int fd);

/* Called before the two calls below look at the memory in use: uncharges memory that nothing keeps
 * any more. NULL: there is no such memory. Set by kept_memory.c, which lies above. */
extern void (*_Atomic sim_look_kept)(void);

/* Accounts bytes of device memory as used. False: they are not free. */
bool sim_charge(int device, uint64_t bytes);
void sim_uncharge(int device, uint64_t bytes);
uint64_t sim_free_bytes(int device);

/* The caller owns the result and frees it with sim_free. NULL: out of memory. */
void *sim_device_alloc(int device, size_t size, unsigned flags);
void *sim_host_alloc(size_t size, unsigned flags, enum sim_kind kind, int device);

/* Frees the allocation that starts at p, or contains it if interior is set. False: there is
 * none. Exported memory stays in use until the last importer has closed it. */
bool sim_free(const void *p, bool interior);

/* Frees exported memory that was freed here and that no other process has open any more. */
void sim_exports_sweep(int device);

#endif

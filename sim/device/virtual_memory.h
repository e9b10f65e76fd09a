/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: reserved ranges of addresses, physical memory mapped into them,
 * and access to what is mapped. Sizes are bytes and multiples of SIM_PAGE. Functions that
 * return int return 0, -EINVAL or -ENOMEM. All are thread-safe.
 */
#ifndef SIM_VIRTUAL_MEMORY_H
#define SIM_VIRTUAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct sim_phys;

int sim_vmm_reserve(void **out, size_t size, size_t align, void *hint);
int sim_vmm_unreserve(void *p, size_t size);
bool sim_vmm_reserved(const void *p);

/* Maps the start of a handle at p, without access for anybody. */
int sim_vmm_map(void *p, size_t size, struct sim_phys *h, bool hip);

/* Unmaps a range of whole mappings. Unless all is set, only the first one goes, as HIP 6.4
 * does it. */
int sim_vmm_unmap(void *p, size_t size, bool all);

/* Gives a device (-1: the host) access to whole mappings: prot is 3 (read and write), or
 * less for none. */
int sim_vmm_access(void *p, size_t size, int device, int prot);
int sim_vmm_get_access(const void *p, int device, int *prot);

/* The handle that is mapped at p, or NULL. */
struct sim_phys *sim_phys_at(const void *p);

/* Called before each piece of device work: ends the quirk map-settle for the mappings whose
 * time has come. */
void sim_vmm_settle(void);

#endif

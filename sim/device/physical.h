/* SPDX-License-Identifier: MIT */
/*
 * Handles of physical memory. A handle lives as long as it has references or is mapped.
 * Functions accept any pointer and refuse what is not a live handle. All are thread-safe.
 */
#ifndef SIM_PHYSICAL_H
#define SIM_PHYSICAL_H

#include <stdbool.h>
#include <stddef.h>

struct sim_phys;

/* The caller owns one reference. NULL: no memory, or a quirk refuses the size. */
struct sim_phys *sim_phys_create(int device, size_t size, bool exportable);

/* The caller keeps fd. NULL: it is not a descriptor of physical memory. */
struct sim_phys *sim_phys_import(int fd);

/* A descriptor that the caller closes, or -EINVAL. */
int sim_phys_export(struct sim_phys *h);

bool sim_phys_retain(struct sim_phys *h);
bool sim_phys_release(struct sim_phys *h);
bool sim_phys_info(struct sim_phys *h, int *device, size_t *size, bool *exportable);

#endif

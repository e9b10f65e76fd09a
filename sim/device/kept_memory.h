/* SPDX-License-Identifier: MIT */
/* Quirk phys-kept: memory that a mapping of the device's file keeps after its release. */
#ifndef SIM_KEPT_MEMORY_H
#define SIM_KEPT_MEMORY_H

#include "device/mapping.h"

/* The handle with this list was unmapped at `base`, and its file stays there. sim_vmm_lock held. */
void sim_left_add(struct sim_left **list, uintptr_t base, size_t size);
void sim_left_free(struct sim_left **list);
/* A handle is gone, and its bytes stay charged until nothing of the list is left. Takes the list.
 * sim_vmm_lock held. */
void sim_kept_add(struct sim_left *left, int device, size_t size);

#endif

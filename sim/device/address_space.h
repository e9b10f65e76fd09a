/* SPDX-License-Identifier: MIT */
/* A heap of address space: first fit over free ranges. The caller does the locking. */
#ifndef SIM_ADDRESS_SPACE_H
#define SIM_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "device/range.h"

struct sim_address_space {
	struct sim_range *free;
};

/* Gives a range to the heap and joins it with its free neighbours. */
void sim_address_space_add(struct sim_address_space *s, uintptr_t base, size_t size);

/* Takes size bytes at a multiple of align. Returns 0 if nothing fits. */
uintptr_t sim_address_space_take(struct sim_address_space *s, size_t size, size_t align);

#endif

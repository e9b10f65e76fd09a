/* SPDX-License-Identifier: MIT */
/* hipMalloc and hipFree for the other entry points. */
#ifndef SIM_HIP_MEMORY_H
#define SIM_HIP_MEMORY_H

#include <stddef.h>

#include <hip/hip_runtime_api.h>

struct sim_alloc;

/* Allocates device memory. *ptr is NULL for size 0 and unchanged on failure. */
hipError_t device_malloc(void **ptr, size_t size, unsigned flags, int device);

/* Frees memory of any kind, after waiting for its device (of all devices for host memory). */
hipError_t memory_free(void *ptr);

/* Waits for the work that may use an allocation. */
void wait_for_owner(const struct sim_alloc *a);

#endif

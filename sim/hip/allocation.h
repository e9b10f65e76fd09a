/* SPDX-License-Identifier: MIT */
/* Device memory as HIP knows it: lookup, allocation through HSA, owners. Thread-safe. */
#ifndef SIM_HIP_ALLOCATION_H
#define SIM_HIP_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "device/address_map.h"

/* The part that frees an allocation (sim_alloc.ownertype). */
enum owner { OWNER_NONE, OWNER_POOL, OWNER_GRAPH };

/* Copies the allocation that contains p, if HIP knows it: its own memory and raw HSA memory,
 * but not what HSA registered or mapped. */
bool hip_find(const void *p, struct sim_alloc *a);

/* True: p is host memory that HIP does not know. */
bool host_pageable(const void *p);

/* Marks memory as HIP's, which every device in the mask may touch. */
void hip_adopt(void *p, size_t size, unsigned flags, uint32_t access);

/* Allocates and frees through HSA's exports, as the real library does, so that a library that
 * replaces these exports sees it. NULL: out of memory. */
void *hip_device_alloc(int device, size_t size, unsigned flags);
void hip_device_free(void *base);

#endif

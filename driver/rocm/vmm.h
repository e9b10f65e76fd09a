/* SPDX-License-Identifier: MIT */
/* Virtual memory: the operations of core/driver.h on reservations and chunks. */
#ifndef SS_ROCM_VMM_H
#define SS_ROCM_VMM_H

#include "core/driver.h"

/* The devices that can reach the memory of `dev`, itself included. */
uint64_t ss_rocm_vmm_reach(int dev);
/* Can the host load from memory that is mapped for `dev`? Tries it once if no quirk forbids it. */
bool ss_rocm_vmm_host(int dev);
/* The smallest chunk in bytes: a power of two, or a multiple of 2 MiB; 0 if no size would
 * do. Call it while a scope of the device is open. */
uint64_t ss_rocm_vmm_min_chunk(int dev);
enum ss_status ss_rocm_vmm_reserve(void *ctx, int dev, size_t size, void **va);
enum ss_status ss_rocm_vmm_unreserve(void *ctx, int dev, void *va, size_t size);
enum ss_status ss_rocm_vmm_create(void *ctx, int dev, size_t size, void **chunk);
enum ss_status ss_rocm_vmm_release(void *ctx, int dev, void *chunk, size_t size);
enum ss_status ss_rocm_vmm_map(void *ctx, int dev, void *va, size_t size, void *chunk);
enum ss_status ss_rocm_vmm_unmap(void *ctx, int dev, void *va, size_t size);
enum ss_status ss_rocm_vmm_access(void *ctx, int dev, void *va, size_t size, uint64_t peers);

#endif

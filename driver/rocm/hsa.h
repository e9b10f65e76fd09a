/* SPDX-License-Identifier: MIT */
/* Device memory from ROCr, below HIP. */
#ifndef SS_ROCM_HSA_H
#define SS_ROCM_HSA_H

#include "driver/rocm/calls.h"

/* Fills r->hsa for the first `devices` devices. Needs r->f. */
void ss_rocm_hsa_start(struct ss_rocm *r, int devices);
/* Are the agent and the memory pool of the device known? */
bool ss_rocm_hsa_ready(int dev);
/* `dev` and its peers always have access; `peers` get access, too. */
enum ss_status ss_rocm_hsa_alloc(int dev, size_t size, uint64_t peers, void **ptr);
enum ss_status ss_rocm_hsa_free(void *ptr);
/* SS_ERR_UNSUPPORTED if HSA does not know one of the devices. */
enum ss_status ss_rocm_hsa_access(int dev, void *ptr, uint64_t peers);
void ss_rocm_hsa_add_peers(int dev, uint64_t peers);

#endif

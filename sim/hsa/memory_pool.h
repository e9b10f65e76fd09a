/* SPDX-License-Identifier: MIT */
/* Memory pools as numbers of devices. */
#ifndef SIM_HSA_MEMORY_POOL_H
#define SIM_HSA_MEMORY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

/* The device of a pool; -1: the CPU, -2: no pool. */
int hsa_pool_device(hsa_amd_memory_pool_t pool);

/* The handle of the pool from which HIP allocates a device's memory. Visible, since HIP is
 * another library. */
__attribute__((visibility("default"))) uint64_t sim_pool_handle(int device, bool fine);

#endif

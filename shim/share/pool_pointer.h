/* SPDX-License-Identifier: MIT */
/* Memory of pools that other processes exported by pointer, and the reset of a device. */
#ifndef SS_SHIM_POOL_POINTER_H
#define SS_SHIM_POOL_POINTER_H

/* Forgets the runtime's own pools of `dev`, which is being reset and frees them. */
void ss_pool_pointer_reset(int dev);

#endif

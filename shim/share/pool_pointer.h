/* SPDX-License-Identifier: MIT */
#ifndef SS_SHIM_POOL_POINTER_H
#define SS_SHIM_POOL_POINTER_H

/* dev is being reset, and pools of the runtime with it. */
void ss_pool_pointer_reset(int dev);

#endif

/* SPDX-License-Identifier: MIT */
/* Pools of the runtime's own that the program holds beside ours. */
#ifndef SS_SHIM_NATIVE_POOLS_H
#define SS_SHIM_NATIVE_POOLS_H

#include <hip/hip_runtime_api.h>

#include "shim/process/service.h"

/* `pool` is no live pool of ours. Did the runtime make this handle, as far as we know? */
bool ss_pool_is_native(hipMemPool_t pool);
void ss_pool_native_add(hipMemPool_t pool);
void ss_pool_native_remove(hipMemPool_t pool);

/* The native pool that the program made current on dev, or NULL. */
hipMemPool_t ss_pool_native_current(int dev);
void ss_pool_native_set_current(int dev, hipMemPool_t pool);
/* Forgets the current native pool: dev was reset, or a pool of ours is current there. */
void ss_pool_native_reset(int dev);
/* Did the program ever make a native pool current, on any device? */
extern atomic_bool ss_native_current_set SS_HIDDEN;
static inline bool ss_pools_native(void)
{
	return unlikely(atomic_load_explicit(&ss_native_current_set, memory_order_relaxed));
}

/* Answers for a handle that is no live pool of ours: by the real call if the handle is the
 * runtime's, else by the documented error. */
#define NOT_OURS(pool, name, ...) \
	(ss_pool_is_native(pool) ? ss_result(REAL(name, __VA_ARGS__)) \
				 : ss_fail(hipErrorInvalidValue))

#endif

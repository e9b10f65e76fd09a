/* SPDX-License-Identifier: MIT */
/*
 * The handles of the runtime's own pools that passed through us, and which of them is current. The
 * runtime checks a pool's handle in hipMemPoolDestroy only and follows any pointer in other calls,
 * so the shim must pass on only handles that the runtime made.
 *
 * Locks: natives_lock (the list of handles). Leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "driver/rocm/releases.h"
#include "driver/rocm/resolve.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/check/checker.h"

static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;
static hipMemPool_t *natives;
static size_t native_count, native_max;
static _Atomic(hipMemPool_t) native_current[SS_MAX_DEVICES];
atomic_bool ss_native_current_set;

void ss_pool_native_add(hipMemPool_t pool)
{
	/* The pool may hold managed or host memory, which the host sees without a call. */
	ss_observer_add(-1, SS_OBSERVER_MANAGED);
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count; i++)
		if (natives[i] == pool)
			goto known;
	if (native_count == native_max) {
		size_t max = native_max ? native_max * 2 : 16;
		hipMemPool_t *grown = realloc(natives, max * sizeof(*grown));

		if (grown) {
			natives = grown;
			native_max = max;
		}
	}
	if (native_count < native_max)
		natives[native_count++] = pool;
known:
	pthread_mutex_unlock(&natives_lock);
}

void ss_pool_native_remove(hipMemPool_t pool)
{
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count; i++)
		if (natives[i] == pool) {
			natives[i] = natives[--native_count];
			break;
		}
	pthread_mutex_unlock(&natives_lock);
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		hipMemPool_t was = pool;

		atomic_compare_exchange_strong(&native_current[dev], &was, NULL);
	}
}

bool ss_pool_is_native(hipMemPool_t pool)
{
	bool known = false;

	if (!pool || ss_pool_is_handle(pool)) {
		if (unlikely(ss_checking) && pool)
			ss_check_pool_used(pool);
		return false;
	}
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count && !known; i++)
		known = natives[i] == pool;
	pthread_mutex_unlock(&natives_lock);
	/* If calls bypass us, handles may bypass us as well. Handles may also bypass us in a
	 * runtime that is newer than this library, which may have unknown calls that return
	 * pools. */
	return known || ss_distrusted(ss_core) ||
	       ss_release_unknown(ss_runtime()->major, ss_runtime()->minor);
}

/* ---- the current pool --------------------------------------------------- */

hipMemPool_t ss_pool_native_current(int dev)
{
	return atomic_load_explicit(&native_current[dev], memory_order_relaxed);
}

void ss_pool_native_reset(int dev)
{
	atomic_store(&native_current[dev], NULL);
}

void ss_pool_native_set_current(int dev, hipMemPool_t pool)
{
	atomic_store(&native_current[dev], pool);
	if (!atomic_exchange(&ss_native_current_set, true))
		ss_slow_reasons_add(1);
}

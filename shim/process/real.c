/* SPDX-License-Identifier: MIT */
/*
 * Finds the real functions of our exports, once.
 *
 * Locks: publish_lock, while the result is stored. The loader is asked without this lock, because a
 * thread may call from a constructor that runs under the loader's lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "driver/rocm/resolve.h"
#include "shim/process/real.h"

struct ss_real ss_real;

static const struct {
	const char *name;
	size_t offset;
} names[] = {
#define NAME(x) #x
#define E(kind, extra, name, node, since, params, args) \
	{ NAME(name), offsetof(struct ss_real, name) },
	SS_ENTRIES(E)
#undef E
#define H(ret, name, params) { #name, offsetof(struct ss_real, name) },
	SS_HELPERS(H)
#undef H
};

static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool resolved;

bool ss_real_resolve(void)
{
	struct ss_real found;

	if (atomic_load_explicit(&resolved, memory_order_acquire))
		return true;
	if (!ss_runtime_find())
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *p = ss_runtime_symbol(names[i].name);

		memcpy((char *)&found + names[i].offset, &p, sizeof(p));
	}
	pthread_mutex_lock(&publish_lock);
	if (!atomic_load(&resolved)) {
		ss_real = found;
		atomic_store_explicit(&resolved, true, memory_order_release);
	}
	pthread_mutex_unlock(&publish_lock);
	return true;
}

bool ss_real_resolved(void)
{
	return atomic_load_explicit(&resolved, memory_order_acquire);
}

hipError_t ss_real_missing(void)
{
	if (ss_real_resolved())
		return hipErrorNotSupported;
	return ss_runtime_no_memory() ? hipErrorOutOfMemory : hipErrorNotInitialized;
}

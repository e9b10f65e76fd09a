/* SPDX-License-Identifier: MIT */
/*
 * The functions that the shim stands in front of, found once.
 *
 * No lock (see driver/resolve.c): two threads that come first at once store the
 * same pointers twice.
 */
#include <stddef.h>

#include "shim/shim.h"

struct ss_real ss_real;

static const struct { const char *name; size_t offset; } names[] = {
#define NAME(x) #x
#define E(kind, extra, name, node, since, params, args) \
	{ NAME(name), offsetof(struct ss_real, name) },
	SS_ENTRIES(E)
#undef E
#define H(ret, name, params) { #name, offsetof(struct ss_real, name) },
	SS_HELPERS(H)
#undef H
};

static _Atomic bool resolved;

bool ss_real_resolve(void)
{
	if (atomic_load_explicit(&resolved, memory_order_acquire))
		return true;
	if (!ss_runtime_find())
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void **at = (void **)((char *)&ss_real + names[i].offset);

		__atomic_store_n(at, ss_runtime_symbol(names[i].name), __ATOMIC_RELAXED);
	}
	atomic_store_explicit(&resolved, true, memory_order_release);
	return true;
}

hipError_t ss_real_missing(void)
{
	return atomic_load_explicit(&resolved, memory_order_acquire) ? hipErrorNotSupported
								     : hipErrorNotInitialized;
}

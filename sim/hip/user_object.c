/* SPDX-License-Identifier: MIT */
/* User objects: reference counts with a destructor. */
#include <stdatomic.h>
#include <stdlib.h>

#include "hip/entry_points.h"

struct object {
	atomic_long refs;
	hipHostFn_t destroy;
	void *ptr;
};

hipError_t i_hipUserObjectCreate(void **out, void *ptr, hipHostFn_t destroy, unsigned refs,
				 unsigned flags)
{
	struct object *o;

	if (!out || !destroy || !refs || refs > 0x7fffffff || flags != 1)
		return hipErrorInvalidValue;
	o = calloc(1, sizeof *o);
	if (!o)
		return hipErrorOutOfMemory;
	atomic_init(&o->refs, refs);
	o->destroy = destroy;
	o->ptr = ptr;
	*out = o;
	return hipSuccess;
}

hipError_t i_hipUserObjectRetain(void *object, unsigned n)
{
	if (!object || !n)
		return hipErrorInvalidValue;
	atomic_fetch_add(&((struct object *)object)->refs, n);
	return hipSuccess;
}

hipError_t i_hipUserObjectRelease(void *object, unsigned n)
{
	struct object *o = object;

	if (!o || !n)
		return hipErrorInvalidValue;
	if (atomic_fetch_sub(&o->refs, n) == (long)n) {
		o->destroy(o->ptr);
		free(o);
	}
	return hipSuccess;
}

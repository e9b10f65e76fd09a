/* SPDX-License-Identifier: MIT */
/* Arrays that grow by one. Their room is at least the next power of two, so only the count is kept.
 * Arrays may also shrink. */
#ifndef SS_TRACE_GROW_H
#define SS_TRACE_GROW_H

#include <stdlib.h>

/* The array with room for one element more than `count`. NULL: out of memory, and `array` is as it
 * was. */
static inline void *ss_grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return realloc(array, (count ? count * 2 : 1) * size);
}

#endif

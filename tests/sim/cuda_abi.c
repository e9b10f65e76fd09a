/* SPDX-License-Identifier: MIT */
/* Compiled where NVIDIA's header is: the numbers, layouts and calls of sim/cuda are those of CUDA's
 * driver. Nothing is run. */
#include <stddef.h>

#define __CUDA_API_VERSION_INTERNAL /* older versions of calls, too, each by its own name */
#include <cuda.h>

#define V(name, value) _Static_assert((long)(name) == (value), #name);
#define L(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field);
#define Z(type, size) _Static_assert(sizeof(type) == (size), #type);
#include "cuda/driver_abi.h"
#undef V
#undef L
#undef Z

#define C(name, version, params) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name##version), CUresult params), #name);
#include "cuda/driver_calls.h"
#undef C

int main(void)
{
	return 0;
}

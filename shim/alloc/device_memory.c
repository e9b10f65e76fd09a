/* SPDX-License-Identifier: MIT */
/* What a program is told about a device's memory: free bytes, pool support, kernel
 * heap. No lock. */
#include "shim/alloc/device_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

/* The layout since 5.3. 5.2, whose header this may be compiled with, has another order of
 * members, and no such memory. */
int ss_device_of_prop(const void *prop)
{
	const struct { int type, handle, location, id; } *p = prop;

	return p && p->location == hipMemLocationTypeDevice && p->id < ss_device_count() ? p->id : -1;
}

/* Idle memory of our pools counts as free. */
hipError_t do_hipMemGetInfo(size_t *free_bytes, size_t *total)
{
	size_t f = 0, t = 0;
	uint64_t fa, ta;
	hipError_t err;
	int dev;

	err = REAL(hipMemGetInfo, &f, &t);
	if (err != hipSuccess)
		return ss_result(err);
	fa = f;
	ta = t;
	dev = ss_current_device(&err);
	if (dev >= 0)
		ss_mem_info(ss_core, dev, &fa, &ta);
	if (free_bytes)
		*free_bytes = fa;
	if (total)
		*total = ta;
	return ss_result(hipSuccess);
}

/* 5.x has pools but reports that it has not. */
hipError_t do_hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attr, int dev)
{
	hipError_t err = REAL(hipDeviceGetAttribute, value, attr, dev);

	if (err == hipSuccess && attr == hipDeviceAttributeMemoryPoolsSupported && value)
		*value = 1;
	return ss_result(err);
}

/* The heap of kernels that call malloc() is taken when the first of them is launched, and the
 * runtime does not report that there is no room for it. So make room here. */
hipError_t do_hipDeviceSetLimit(enum hipLimit_t which, size_t size)
{
	hipError_t err = REAL(hipDeviceSetLimit, which, size);

	if (err == hipSuccess && which == hipLimitMallocHeapSize)
		ss_give_room(ss_core, ss_current_device(NULL), size, !ss_capture_live());
	return ss_result(err);
}

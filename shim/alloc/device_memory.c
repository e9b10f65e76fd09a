/* SPDX-License-Identifier: MIT */
/*
 * Answers HIP's questions about the memory of a device: free and total bytes, whether it supports
 * pools, and the heap of its kernels. No lock.
 */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "shim/alloc/device_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

/* The layout since 5.3. Release 5.2, whose header may be the one in use here, has another order of
 * members, and no such memory. */
int ss_device_of_prop(const void *prop)
{
	const struct {
		int type, handle, location, id;
	} *p = prop;

	return p && p->location == hipMemLocationTypeDevice && p->id < ss_device_count() ? p->id :
											   -1;
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

/* Under a limit every figure of a device's memory is the limit: programs size themselves by any of
 * them. */
hipError_t do_hipDeviceTotalMem(size_t *bytes, hipDevice_t dev)
{
	hipError_t err = REAL(hipDeviceTotalMem, bytes, dev);

	if (err == hipSuccess && bytes)
		*bytes = ss_limit_of(ss_core, dev, *bytes);
	return ss_result(err);
}

/* Offset of totalGlobalMem in the two layouts of hipDeviceProp_t; the header has one of them. */
#define TOTAL_R0000 256
#define TOTAL_R0600 288
_Static_assert(offsetof(hipDeviceProp_t, totalGlobalMem) ==
		       (HIP_VERSION_MAJOR < 6 ? TOTAL_R0000 : TOTAL_R0600),
	       "the layout");

static hipError_t limit_at(void *prop, size_t offset, int dev, hipError_t err)
{
	size_t total;

	if (err == hipSuccess && prop) {
		memcpy(&total, (char *)prop + offset, sizeof(total));
		total = ss_limit_of(ss_core, dev, total);
		memcpy((char *)prop + offset, &total, sizeof(total));
	}
	return ss_result(err);
}

/* This symbol has the old layout in every release. */
hipError_t do_hipGetDeviceProperties(SS_OLD_PROPERTIES *prop, int dev)
{
	return limit_at(prop, TOTAL_R0000, dev, REAL(hipGetDeviceProperties, prop, dev));
}

hipError_t do_hipGetDevicePropertiesR0000(void *prop, int dev)
{
	return limit_at(prop, TOTAL_R0000, dev, REAL(hipGetDevicePropertiesR0000, prop, dev));
}

hipError_t do_hipGetDevicePropertiesR0600(SS_PROPERTIES *prop, int dev)
{
	return limit_at(prop, TOTAL_R0600, dev, REAL(hipGetDevicePropertiesR0600, prop, dev));
}

/* Release 5.x has pools but reports that it has none. The total memory does not fit an int, but a
 * limit may. */
hipError_t do_hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attr, int dev)
{
	hipError_t err = REAL(hipDeviceGetAttribute, value, attr, dev);
	size_t total;

	if (err == hipSuccess && attr == hipDeviceAttributeTotalGlobalMem && value &&
	    ss_limited() && REAL(hipDeviceTotalMem, &total, dev) == hipSuccess &&
	    ss_limit_of(ss_core, dev, total) < total) {
		total = ss_limit_of(ss_core, dev, total);
		*value = total < INT_MAX ? (int)total : INT_MAX;
	}

	if (err == hipSuccess && attr == hipDeviceAttributeMemoryPoolsSupported && value)
		*value = 1;
	return ss_result(err);
}

/* The runtime takes the heap of kernels that call malloc() when the first of them is launched, and
 * does not report a lack of memory for it. So make room here. */
hipError_t do_hipDeviceSetLimit(enum hipLimit_t which, size_t size)
{
	hipError_t err = REAL(hipDeviceSetLimit, which, size);

	if (err == hipSuccess && which == hipLimitMallocHeapSize)
		ss_make_room(ss_core, ss_current_device(NULL), size, !ss_capture_live());
	return ss_result(err);
}

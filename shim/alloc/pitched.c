/* SPDX-License-Identifier: MIT */
/* Pitched allocations: hipMalloc with the row length rounded up to the device's pitch.
 * No lock. */
#include <stdint.h>

#include "shim/alloc/classic.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

/* The runtime rounds to imagePitchAlignment, which it exposes as this attribute. */
static size_t pitch_unit(void)
{
	int unit = 0, dev = ss_current_device(NULL);

	if (dev < 0 ||
	    REAL(hipDeviceGetAttribute, &unit, hipDeviceAttributeTexturePitchAlignment, dev) !=
		    hipSuccess ||
	    unit <= 0 || (unit & (unit - 1)))
		unit = 256;
	return (size_t)unit;
}

/* As the runtime's ihipMallocPitch: an empty extent gives success and NULL. */
static hipError_t pitched(void **ptr, size_t *pitch, size_t width, size_t height, size_t depth)
{
	size_t unit, bytes, row;
	hipError_t err;

	if (!ptr || !pitch)
		return ss_fail(hipErrorInvalidValue);
	if (!width || !height || !depth)
		return ss_malloc(ptr, 0, true);
	unit = pitch_unit();
	if (width > SIZE_MAX - unit)
		return ss_fail(hipErrorInvalidValue);
	row = (width + unit - 1) & ~(unit - 1);
	if (__builtin_mul_overflow(row, height, &bytes) ||
	    __builtin_mul_overflow(bytes, depth, &bytes))
		return ss_fail(hipErrorOutOfMemory);
	err = ss_malloc(ptr, bytes, true);
	if (err == hipSuccess)
		*pitch = row;
	return err;
}

hipError_t do_hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	return pitched(ptr, pitch, width, height, 1);
}

hipError_t do_hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height,
			       unsigned int element)
{
	if (!width || !height || (element != 4 && element != 8 && element != 16))
		return ss_fail(hipErrorInvalidValue);
	return pitched((void **)ptr, pitch, width, height, 1);
}

hipError_t do_hipMalloc3D(hipPitchedPtr *ptr, hipExtent extent)
{
	hipError_t err;
	size_t pitch = 0;

	if (!ptr)
		return ss_fail(hipErrorInvalidValue);
	err = pitched(&ptr->ptr, &pitch, extent.width, extent.height, extent.depth);
	if (err == hipSuccess) {
		ptr->pitch = pitch;
		ptr->xsize = extent.width;
		ptr->ysize = extent.height;
	}
	return err;
}

/* SPDX-License-Identifier: MIT */
/* Pinned host memory. The driver waits for streams when it takes or frees this memory. */
#include "cuda/context.h"

static hipError_t pinned(void **ptr, size_t size, unsigned flags)
{
	unsigned f = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;

	if (!ptr || ((flags & hipHostMallocCoherent) && (flags & hipHostMallocNonCoherent)))
		return hipErrorInvalidValue;
	if (!size) {
		*ptr = NULL;
		return hipSuccess;
	}
	if (flags & hipHostMallocWriteCombined)
		f |= CU_MEMHOSTALLOC_WRITECOMBINED;
	return to_hip(CU(cuMemHostAlloc, ptr, size, f));
}

hipError_t i_hipHostMalloc(void **ptr, size_t size, unsigned flags)
{
	ENTER();
	return pinned(ptr, size, flags);
}

hipError_t i_hipHostAlloc(void **ptr, size_t size, unsigned flags)
{
	return i_hipHostMalloc(ptr, size, flags);
}

hipError_t i_hipMallocHost(void **ptr, size_t size)
{
	return i_hipHostMalloc(ptr, size, 0);
}

hipError_t i_hipMemAllocHost(void **ptr, size_t size)
{
	return i_hipHostMalloc(ptr, size, 0);
}

hipError_t i_hipHostFree(void *ptr)
{
	ENTER();
	return ptr ? to_hip(CU(cuMemFreeHost, ptr)) : hipSuccess;
}

hipError_t i_hipFreeHost(void *ptr)
{
	return i_hipHostFree(ptr);
}

hipError_t i_hipHostRegister(void *host, size_t size, unsigned flags)
{
	ENTER();
	if (!host || !size || flags > 15)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemHostRegister, host, size,
			 CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

hipError_t i_hipHostUnregister(void *host)
{
	ENTER();
	if (!host)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemHostUnregister, host));
}

hipError_t i_hipHostGetDevicePointer(void **out, void *host, unsigned flags)
{
	CUdeviceptr d = 0;

	ENTER();
	if (!out || !host || flags)
		return hipErrorInvalidValue;
	return given(out, &d, CU(cuMemHostGetDevicePointer, &d, host, 0));
}

hipError_t i_hipHostGetFlags(unsigned *flags, void *host)
{
	ENTER();
	if (!flags || !host)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemHostGetFlags, flags, host));
}

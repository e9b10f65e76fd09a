/* SPDX-License-Identifier: MIT */
/* Device memory: hipMalloc and its kin, hipFree, the figure of free memory, managed memory. */
#include "cuda/context.h"
#include "cuda/pointer.h"

hipError_t i_hipMalloc(void **ptr, size_t size)
{
	CUdeviceptr d = 0;

	ENTER();
	if (!ptr)
		return hipErrorInvalidValue;
	if (!size) {
		*ptr = NULL;
		return capture_allows();
	}
	return given(ptr, &d, CU(cuMemAlloc, &d, size));
}

/* A word that streams wait for and that the host writes. */
static hipError_t signal_memory(void **ptr, size_t size)
{
	CUresult r;

	if (size != 8)
		return hipErrorInvalidValue;
	r = RELAXED(CU(cuMemHostAlloc, ptr, size,
		       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	if (!r)
		*(volatile uint64_t *)*ptr = 1;
	return to_hip(r);
}

/* HIP allows it during captures. */
hipError_t i_hipExtMallocWithFlags(void **ptr, size_t size, unsigned flags)
{
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	if (!ptr || flags > (V6 ? 4u : 3u))
		return hipErrorInvalidValue;
	if (flags == hipMallocSignalMemory)
		return signal_memory(ptr, size);
	if (!size) {
		*ptr = NULL;
		return hipSuccess;
	}
	r = RELAXED(CU(cuMemAlloc, &d, size));
	return given(ptr, &d, r);
}

/* The driver waits for the device when it frees memory, except memory of a pool. HIP up to 6.x
 * waits in that case, too. */
hipError_t i_hipFree(void *ptr)
{
	struct pointer_facts f;

	ENTER();
	if (!ptr)
		return V6 ? capture_allows() : hipSuccess;
	f = pointer_facts(ptr);
	if (f.type == CU_MEMORYTYPE_HOST && !f.managed) {
		(void)CU(cuCtxSynchronize);
		return to_hip(CU(cuMemFreeHost, ptr));
	}
	if (f.pool && !V7) {
		CUresult r = CU(cuCtxSynchronize);

		if (r)
			return to_hip(r);
	}
	return to_hip(CU(cuMemFree, address(ptr)));
}

hipError_t i_hipMemGetInfo(size_t *avail, size_t *total)
{
	size_t a = 0, t = 0;
	CUresult r;

	ENTER();
	r = CU(cuMemGetInfo, &a, &t);
	if (!r && avail)
		*avail = a;
	if (!r && total)
		*total = t;
	return to_hip(r);
}

static hipError_t pitched(void **ptr, size_t *pitch, size_t width, size_t rows, unsigned element)
{
	CUdeviceptr d = 0;

	if (!ptr || !pitch)
		return hipErrorInvalidValue;
	if (!width || !rows) {
		*ptr = NULL;
		return hipSuccess;
	}
	return given(ptr, &d, CU(cuMemAllocPitch, &d, pitch, width, rows, element));
}

hipError_t i_hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	ENTER();
	return pitched(ptr, pitch, width, height, 4);
}

hipError_t i_hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height,
			      unsigned element)
{
	ENTER();
	if (!width || !height || (element != 4 && element != 8 && element != 16))
		return hipErrorInvalidValue;
	return pitched((void **)ptr, pitch, width, height, element);
}

hipError_t i_hipMalloc3D(hipPitchedPtr *out, hipExtent extent)
{
	hipError_t e;

	ENTER();
	if (!out)
		return hipErrorInvalidValue;
	e = pitched(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth, 4);
	if (!e) {
		out->xsize = extent.width;
		out->ysize = extent.height;
	}
	return e;
}

/* ---- managed memory ---- */

hipError_t i_hipMallocManaged(void **ptr, size_t size, unsigned flags)
{
	CUdeviceptr d = 0;

	ENTER();
	if (!ptr || !size || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
		return hipErrorInvalidValue;
	return given(ptr, &d, CU(cuMemAllocManaged, &d, size, flags));
}

hipError_t i_hipMemPrefetchAsync(const void *p, size_t n, int device, hipStream_t s)
{
	ENTER_STREAM(s);
	return to_hip(CU(cuMemPrefetchAsync, address(p), n, device, (CUstream)s));
}

/* AMD's own advice means nothing to the driver. */
hipError_t i_hipMemAdvise(const void *p, size_t n, hipMemoryAdvise advice, int device)
{
	ENTER();
	if ((unsigned)advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return hipSuccess;
	return to_hip(CU(cuMemAdvise, address(p), n, (CUmem_advise)advice, device));
}

hipError_t i_hipStreamAttachMemAsync(hipStream_t s, void *p, size_t n, unsigned flags)
{
	ENTER_STREAM(s);
	if (!p)
		return hipErrorInvalidValue;
	return to_hip(CU(cuStreamAttachMemAsync, (CUstream)s, address(p), n, flags));
}

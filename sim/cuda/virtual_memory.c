/* SPDX-License-Identifier: MIT */
/* Virtual memory. The layout of hipMemAllocationProp is that since 5.3, which is CUDA's. */
#include <string.h>

#include "cuda/context.h"

struct prop {
	int type, handle_type;
	struct {
		int type, id;
	} location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
};

static CUmemAllocationProp prop_of(const hipMemAllocationProp *p)
{
	const struct prop *in = (const struct prop *)(const void *)p;
	CUmemAllocationProp c;

	memset(&c, 0, sizeof(c));
	c.type = (CUmemAllocationType)in->type;
	c.requestedHandleTypes = (CUmemAllocationHandleType)in->handle_type;
	c.location.type = (CUmemLocationType)in->location.type;
	c.location.id = in->location.id;
	c.allocFlags.gpuDirectRDMACapable = in->rdma;
	return c;
}

#define HANDLE(h) ((CUmemGenericAllocationHandle)(uintptr_t)(h))

hipError_t i_hipMemGetAllocationGranularity(size_t *n, const hipMemAllocationProp *p,
					    hipMemAllocationGranularity_flags o)
{
	CUmemAllocationProp c;

	ENTER();
	if (!n || !p)
		return hipErrorInvalidValue;
	c = prop_of(p);
	return to_hip(
		CU(cuMemGetAllocationGranularity, n, &c, (CUmemAllocationGranularity_flags)o));
}

hipError_t i_hipMemAddressReserve(void **ptr, size_t size, size_t align, void *addr,
				  unsigned long long flags)
{
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	if (!ptr)
		return hipErrorInvalidValue;
	r = RELAXED(CU(cuMemAddressReserve, &d, size, align, address(addr), flags));
	return given(ptr, &d, r);
}

hipError_t i_hipMemAddressFree(void *p, size_t size)
{
	ENTER();
	if (!p)
		return hipErrorInvalidValue;
	return to_hip(RELAXED(CU(cuMemAddressFree, address(p), size)));
}

hipError_t i_hipMemCreate(hipMemGenericAllocationHandle_t *out, size_t size,
			  const hipMemAllocationProp *p, unsigned long long flags)
{
	CUmemGenericAllocationHandle h = 0;
	CUmemAllocationProp c;
	CUresult r;

	ENTER();
	if (!out || !p)
		return hipErrorInvalidValue;
	c = prop_of(p);
	r = RELAXED(CU(cuMemCreate, &h, size, &c, flags));
	if (!r)
		*out = (hipMemGenericAllocationHandle_t)(uintptr_t)h;
	return to_hip(r);
}

hipError_t i_hipMemRelease(hipMemGenericAllocationHandle_t h)
{
	ENTER();
	if (!h)
		return hipErrorInvalidValue;
	return to_hip(RELAXED(CU(cuMemRelease, HANDLE(h))));
}

hipError_t i_hipMemMap(void *p, size_t size, size_t offset, hipMemGenericAllocationHandle_t h,
		       unsigned long long flags)
{
	ENTER();
	if (!p || !h)
		return hipErrorInvalidValue;
	return to_hip(RELAXED(CU(cuMemMap, address(p), size, offset, HANDLE(h), flags)));
}

hipError_t i_hipMemUnmap(void *p, size_t size)
{
	ENTER();
	if (!p)
		return hipErrorInvalidValue;
	return to_hip(RELAXED(CU(cuMemUnmap, address(p), size)));
}

hipError_t i_hipMemSetAccess(void *p, size_t size, const hipMemAccessDesc *desc, size_t n)
{
	ENTER();
	if (!p || !desc || !n)
		return hipErrorInvalidValue;
	return to_hip(
		RELAXED(CU(cuMemSetAccess, address(p), size, (const CUmemAccessDesc *)desc, n)));
}

hipError_t i_hipMemGetAccess(unsigned long long *flags, const hipMemLocation *at, void *p)
{
	ENTER();
	if (!flags || !at || !p)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemGetAccess, flags, (const CUmemLocation *)at, address(p)));
}

hipError_t i_hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *out, void *p)
{
	CUmemGenericAllocationHandle h = 0;
	CUresult r;

	ENTER();
	if (!out || !p)
		return hipErrorInvalidValue;
	r = CU(cuMemRetainAllocationHandle, &h, p);
	if (!r)
		*out = (hipMemGenericAllocationHandle_t)(uintptr_t)h;
	return to_hip(r);
}

hipError_t i_hipMemExportToShareableHandle(void *out, hipMemGenericAllocationHandle_t h,
					   hipMemAllocationHandleType type,
					   unsigned long long flags)
{
	ENTER();
	if (!out || !h)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemExportToShareableHandle, out, HANDLE(h),
			 (CUmemAllocationHandleType)type, flags));
}

hipError_t i_hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *out, void *os,
					     hipMemAllocationHandleType type)
{
	CUmemGenericAllocationHandle h = 0;
	CUresult r;

	ENTER();
	if (!out)
		return hipErrorInvalidValue;
	r = CU(cuMemImportFromShareableHandle, &h, os, (CUmemAllocationHandleType)type);
	if (!r)
		*out = (hipMemGenericAllocationHandle_t)(uintptr_t)h;
	return to_hip(r);
}

/* A descriptor of memory for other drivers. HIP has only one kind. */
hipError_t i_hipMemGetHandleForAddressRange(void *out, hipDeviceptr_t p, size_t n, int type,
					    unsigned long long flags)
{
	ENTER();
	if (!out || !p || !n || flags)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemGetHandleForAddressRange, out, address(p), n, (unsigned)type, flags));
}

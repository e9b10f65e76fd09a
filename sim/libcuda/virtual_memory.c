/* SPDX-License-Identifier: MIT */
/* Virtual memory. The structures of HIP are CUDA's. The calls are refused beside a global capture,
 * which HIP allows. */
#include "hip/capture_guard.h"
#include "libcuda/call.h"

#define HANDLE(h) ((hipMemGenericAllocationHandle_t)(uintptr_t)(h))
#define PROP(p) ((const hipMemAllocationProp *)(const void *)(p))
#define GUARDED(call) (guard_unsafe() ? hipErrorStreamCaptureUnsupported : (call))

CUresult cuMemGetAllocationGranularity(size_t *n, const CUmemAllocationProp *p,
				       CUmemAllocationGranularity_flags which)
{
	RUN(cuMemGetAllocationGranularity, NEEDS_INIT,
	    i_hipMemGetAllocationGranularity(n, PROP(p), (hipMemAllocationGranularity_flags)which));
}

CUresult cuMemAddressReserve(CUdeviceptr *p, size_t n, size_t align, CUdeviceptr at,
			     unsigned long long flags)
{
	RUN(cuMemAddressReserve, NEEDS_INIT,
	    GUARDED(i_hipMemAddressReserve((void **)p, n, align, memory(at), flags)));
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t n)
{
	RUN(cuMemAddressFree, NEEDS_INIT, GUARDED(i_hipMemAddressFree(memory(p), n)));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p,
		     unsigned long long flags)
{
	RUN(cuMemCreate, NEEDS_INIT,
	    GUARDED(i_hipMemCreate((hipMemGenericAllocationHandle_t *)h, n, PROP(p), flags)));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	RUN(cuMemRelease, NEEDS_INIT, GUARDED(i_hipMemRelease(HANDLE(h))));
}

CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h,
		  unsigned long long flags)
{
	RUN(cuMemMap, NEEDS_INIT, GUARDED(i_hipMemMap(memory(p), n, offset, HANDLE(h), flags)));
}

CUresult cuMemUnmap(CUdeviceptr p, size_t n)
{
	RUN(cuMemUnmap, NEEDS_INIT, GUARDED(i_hipMemUnmap(memory(p), n)));
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *list, size_t count)
{
	RUN(cuMemSetAccess, NEEDS_INIT,
	    GUARDED(i_hipMemSetAccess(memory(p), n, (const hipMemAccessDesc *)(const void *)list,
				      count)));
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *at, CUdeviceptr p)
{
	RUN(cuMemGetAccess, NEEDS_INIT,
	    i_hipMemGetAccess(flags, (const hipMemLocation *)(const void *)at, memory(p)));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *h, void *p)
{
	RUN(cuMemRetainAllocationHandle, NEEDS_INIT,
	    i_hipMemRetainAllocationHandle((hipMemGenericAllocationHandle_t *)h, p));
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle h,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	RUN(cuMemExportToShareableHandle, NEEDS_INIT,
	    i_hipMemExportToShareableHandle(out, HANDLE(h), (hipMemAllocationHandleType)type,
					    flags));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *h, void *os,
					CUmemAllocationHandleType type)
{
	RUN(cuMemImportFromShareableHandle, NEEDS_INIT,
	    i_hipMemImportFromShareableHandle((hipMemGenericAllocationHandle_t *)h, os,
					      (hipMemAllocationHandleType)type));
}

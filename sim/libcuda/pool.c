/* SPDX-License-Identifier: MIT */
/* Pools. The structures of HIP 6.0 are CUDA's. */
#include "hip/allocation.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/handle.h"
#include "hip/pool.h"
#include "libcuda/call.h"

/* An allocation is legal on a stream that captures, and refused on other streams during a global
 * capture. */
static hipError_t guard(hipStream_t s)
{
	struct stream *st = stream_of(s);

	return st && stream_capturing(st) ? hipSuccess : guard_unsafe();
}

static hipError_t alloc(void **p, size_t n, hipMemPool_t pool, hipStream_t s)
{
	hipError_t e = guard(s);

	if (e || !n)
		return e ? e : hipErrorInvalidValue;
	return pool ? i_hipMallocFromPoolAsync(p, n, pool, s) : i_hipMallocAsync(p, n, s);
}

CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
	RUN(cuMemAllocAsync, NEEDS_CONTEXT, alloc((void **)p, n, NULL, stream_arg(s)));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
	RUN(cuMemAllocFromPoolAsync, NEEDS_CONTEXT,
	    alloc((void **)p, n, (hipMemPool_t)pool, stream_arg(s)));
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
	RUN(cuMemFreeAsync, NEEDS_CONTEXT, i_hipFreeAsync(memory(p), stream_arg(s)));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	RUN(cuMemPoolCreate, NEEDS_INIT,
	    i_hipMemPoolCreate((hipMemPool_t *)pool, (const hipMemPoolProps *)(const void *)props));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	RUN(cuMemPoolDestroy, NEEDS_INIT, i_hipMemPoolDestroy((hipMemPool_t)pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	RUN(cuMemPoolTrimTo, NEEDS_INIT, i_hipMemPoolTrimTo((hipMemPool_t)pool, keep));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void *v)
{
	RUN(cuMemPoolSetAttribute, NEEDS_INIT,
	    i_hipMemPoolSetAttribute((hipMemPool_t)pool, (hipMemPoolAttr)a, v));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void *v)
{
	RUN(cuMemPoolGetAttribute, NEEDS_INIT,
	    i_hipMemPoolGetAttribute((hipMemPool_t)pool, (hipMemPoolAttr)a, v));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t n)
{
	RUN(cuMemPoolSetAccess, NEEDS_INIT,
	    i_hipMemPoolSetAccess((hipMemPool_t)pool, (const hipMemAccessDesc *)(const void *)list,
				  n));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *at)
{
	RUN(cuMemPoolGetAccess, NEEDS_INIT,
	    i_hipMemPoolGetAccess((hipMemAccessFlags *)flags, (hipMemPool_t)pool,
				  (hipMemLocation *)(void *)at));
}

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	RUN(cuMemPoolExportToShareableHandle, NEEDS_INIT,
	    i_hipMemPoolExportToShareableHandle(out, (hipMemPool_t)pool,
						(hipMemAllocationHandleType)type, (unsigned)flags));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *h,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	RUN(cuMemPoolImportFromShareableHandle, NEEDS_INIT,
	    i_hipMemPoolImportFromShareableHandle(
		    (hipMemPool_t *)pool, h, (hipMemAllocationHandleType)type, (unsigned)flags));
}

/* Only memory of an exported pool has export data. */
static hipError_t export_pointer(hipMemPoolPtrExportData *data, void *p)
{
	bool exported = false;
	struct sim_alloc a;

	if (hip_find(p, &a) && a.ownertype == OWNER_POOL) {
		pthread_mutex_lock(&pool_lock);
		exported = ((struct block *)a.owner)->pool->exported;
		pthread_mutex_unlock(&pool_lock);
	}
	return exported ? i_hipMemPoolExportPointer(data, p) : hipErrorInvalidValue;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr p)
{
	RUN(cuMemPoolExportPointer, NEEDS_INIT,
	    export_pointer((hipMemPoolPtrExportData *)(void *)data, memory(p)));
}

CUresult cuMemPoolImportPointer(CUdeviceptr *p, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	RUN(cuMemPoolImportPointer, NEEDS_INIT,
	    i_hipMemPoolImportPointer((void **)p, (hipMemPool_t)pool,
				      (hipMemPoolPtrExportData *)(void *)data));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice d)
{
	RUN(cuDeviceGetDefaultMemPool, NEEDS_INIT,
	    i_hipDeviceGetDefaultMemPool((hipMemPool_t *)pool, d));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice d)
{
	RUN(cuDeviceGetMemPool, NEEDS_INIT, i_hipDeviceGetMemPool((hipMemPool_t *)pool, d));
}

CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool)
{
	RUN(cuDeviceSetMemPool, NEEDS_INIT, i_hipDeviceSetMemPool(d, (hipMemPool_t)pool));
}

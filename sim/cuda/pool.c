/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory, which the driver's own pools serve. */
#include <string.h>
#include <unistd.h>

#include "cuda/context.h"
#include "cuda/pointer.h"

hipError_t i_hipMallocAsync(void **ptr, size_t size, hipStream_t s)
{
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	if (!ptr)
		return hipErrorInvalidValue;
	if (!stream_known(s))
		return hipErrorInvalidHandle;
	*ptr = NULL;
	if (!size)
		return hipSuccess;
	r = CU(cuMemAllocAsync, &d, size, (CUstream)s);
	return given(ptr, &d, r);
}

hipError_t i_hipFreeAsync(void *ptr, hipStream_t s)
{
	ENTER();
	if (!ptr)
		return V7 ? hipSuccess : hipErrorInvalidValue;
	if (!stream_known(s))
		return hipErrorInvalidHandle;
	return to_hip(CU(cuMemFreeAsync, address(ptr), (CUstream)s));
}

hipError_t i_hipMallocFromPoolAsync(void **ptr, size_t size, hipMemPool_t pool, hipStream_t s)
{
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	if (!ptr)
		return hipErrorInvalidValue;
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	if (!stream_known(s))
		return hipErrorInvalidHandle;
	*ptr = NULL;
	if (!size)
		return hipSuccess;
	r = CU(cuMemAllocFromPoolAsync, &d, size, (CUmemoryPool)pool, (CUstream)s);
	return given(ptr, &d, r);
}

/* hipMemPoolProps since 6.0; older ones end before `max`. */
struct props {
	int type, handles, location_type, location_id;
	void *win32;
	size_t max;
};

hipError_t i_hipMemPoolCreate(hipMemPool_t *out, const hipMemPoolProps *p)
{
	const struct props *in = (const struct props *)(const void *)p;
	CUmemPoolProps c;
	CUmemoryPool pool = NULL;
	CUresult r;

	ENTER();
	if (!out || !p || in->type != 1 || in->location_type != 1 || check_device(in->location_id))
		return hipErrorInvalidValue;
	memset(&c, 0, sizeof(c));
	c.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	/* HIP looks at no other type. */
	c.handleTypes = in->handles == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ?
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR :
				CU_MEM_HANDLE_TYPE_NONE;
	c.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	c.location.id = in->location_id;
	c.maxSize = V6 ? in->max : 0;
	r = CU(cuMemPoolCreate, &pool, &c);
	if (!r) {
		handle_add(HANDLE_POOL, pool, in->location_id);
		*out = (hipMemPool_t)pool;
	}
	return to_hip(r);
}

hipError_t i_hipMemPoolDestroy(hipMemPool_t pool)
{
	CUresult r;

	ENTER();
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	r = CU(cuMemPoolDestroy, (CUmemoryPool)pool);
	if (!r)
		handle_remove(HANDLE_POOL, pool);
	return to_hip(r);
}

hipError_t i_hipDeviceGetDefaultMemPool(hipMemPool_t *out, int d)
{
	CUresult r;

	ENTER();
	if (!out)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	r = CU(cuDeviceGetDefaultMemPool, (CUmemoryPool *)out, d);
	if (!r)
		handle_add(HANDLE_POOL, *out, d);
	return to_hip(r);
}

hipError_t i_hipDeviceGetMemPool(hipMemPool_t *out, int d)
{
	CUresult r;

	ENTER();
	if (!out || check_device(d))
		return hipErrorInvalidValue;
	r = CU(cuDeviceGetMemPool, (CUmemoryPool *)out, d);
	if (!r)
		handle_add(HANDLE_POOL, *out, d);
	return to_hip(r);
}

hipError_t i_hipDeviceSetMemPool(int d, hipMemPool_t pool)
{
	ENTER();
	if (check_device(d))
		return hipErrorInvalidValue;
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	return to_hip(CU(cuDeviceSetMemPool, d, (CUmemoryPool)pool));
}

hipError_t i_hipMemPoolTrimTo(hipMemPool_t pool, size_t keep)
{
	ENTER();
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemPoolTrimTo, (CUmemoryPool)pool, keep));
}

hipError_t i_hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr a, void *v)
{
	ENTER();
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	if (!v || (int)a < 1 || (int)a > 8)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemPoolSetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)a, v));
}

hipError_t i_hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr a, void *v)
{
	ENTER();
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	if (!v || (int)a < 1 || (int)a > 8)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemPoolGetAttribute, (CUmemoryPool)pool, (CUmemPool_attribute)a, v));
}

_Static_assert(sizeof(hipMemAccessDesc) == sizeof(CUmemAccessDesc), "access descriptors");

hipError_t i_hipMemPoolSetAccess(hipMemPool_t pool, const hipMemAccessDesc *list, size_t n)
{
	ENTER();
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	if (!list)
		return hipErrorInvalidValue;
	if (n > (size_t)sim_opt.devices)
		return hipErrorInvalidDevice;
	if (!n)
		return hipSuccess;
	return to_hip(CU(cuMemPoolSetAccess, (CUmemoryPool)pool, (const CUmemAccessDesc *)list, n));
}

hipError_t i_hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t pool, hipMemLocation *at)
{
	ENTER();
	if (!flags || !at)
		return hipErrorInvalidValue;
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemPoolGetAccess, (CUmemAccess_flags *)flags, (CUmemoryPool)pool,
			 (CUmemLocation *)at));
}

hipError_t i_hipMemPoolExportToShareableHandle(void *out, hipMemPool_t pool,
					       hipMemAllocationHandleType type, unsigned flags)
{
	ENTER();
	if (!out || flags)
		return hipErrorInvalidValue;
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemPoolExportToShareableHandle, out, (CUmemoryPool)pool,
			 (CUmemAllocationHandleType)type, 0));
}

hipError_t i_hipMemPoolImportFromShareableHandle(hipMemPool_t *out, void *handle,
						 hipMemAllocationHandleType type, unsigned flags)
{
	CUresult r;

	ENTER();
	if (!out || !handle || flags)
		return hipErrorInvalidValue;
	r = CU(cuMemPoolImportFromShareableHandle, (CUmemoryPool *)out, handle,
	       (CUmemAllocationHandleType)type, 0);
	if (!r)
		handle_add(HANDLE_POOL, *out, current_device());
	return to_hip(r);
}

_Static_assert(sizeof(hipMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "export data");

/* The driver wants the pool exported before its memory. */
hipError_t i_hipMemPoolExportPointer(hipMemPoolPtrExportData *out, void *p)
{
	CUmemPoolPtrExportData *data = (CUmemPoolPtrExportData *)out;
	struct pointer_facts f;
	int fd = -1;
	CUresult r;

	ENTER();
	if (!out || !p)
		return hipErrorInvalidValue;
	r = CU(cuMemPoolExportPointer, data, address(p));
	f = r == CUDA_ERROR_INVALID_VALUE ? pointer_facts(p) : (struct pointer_facts){0};
	if (f.pool && !CU(cuMemPoolExportToShareableHandle, &fd, f.pool,
			  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) {
		close(fd);
		r = CU(cuMemPoolExportPointer, data, address(p));
	}
	return to_hip(r);
}

hipError_t i_hipMemPoolImportPointer(void **out, hipMemPool_t pool, hipMemPoolPtrExportData *data)
{
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	if (!out || !data)
		return hipErrorInvalidValue;
	if (!handle_known(HANDLE_POOL, pool))
		return hipErrorInvalidValue;
	r = CU(cuMemPoolImportPointer, &d, (CUmemoryPool)pool, (CUmemPoolPtrExportData *)data);
	return given(out, &d, r);
}

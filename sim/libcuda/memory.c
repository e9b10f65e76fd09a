/* SPDX-License-Identifier: MIT */
/* Device, pinned and managed memory, pointers, IPC. */
#include <string.h>

#include "device/device_queues.h"
#include "device/options.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/pool.h"
#include "libcuda/call.h"

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
	RUN(cuMemGetInfo, NEEDS_CONTEXT, i_hipMemGetInfo(left, total));
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	RUN(cuMemAlloc, NEEDS_CONTEXT, n ? i_hipMalloc((void **)p, n) : hipErrorInvalidValue);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t rows,
			    unsigned element)
{
	RUN(cuMemAllocPitch, NEEDS_CONTEXT,
	    i_hipMemAllocPitch((hipDeviceptr_t *)p, pitch, width, rows, element));
}

static hipError_t free_device(void *p)
{
	struct sim_alloc a;

	if (!hip_find(p, &a) || (a.kind != SIM_DEVICE && a.kind != SIM_MANAGED))
		return hipErrorInvalidValue;
	return i_hipFree(p);
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	RUN(cuMemFree, NEEDS_CONTEXT, free_device(memory(p)));
}

CUresult cuMemAllocManaged(CUdeviceptr *p, size_t n, unsigned flags)
{
	RUN(cuMemAllocManaged, NEEDS_CONTEXT, i_hipMallocManaged((void **)p, n, flags));
}

/* ---- pinned memory ---- */

static void wait_for_devices(void)
{
	for (int d = 0; d < sim_opt.devices; d++)
		sim_device_finish(d);
}

static hipError_t pinned(void **p, size_t n)
{
	wait_for_devices();
	return n ? i_hipHostMalloc(p, n, 0) : hipErrorInvalidValue;
}

CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags)
{
	RUN(cuMemHostAlloc, NEEDS_CONTEXT, pinned(p, n));
}

static hipError_t free_pinned(void *p)
{
	struct sim_alloc a;

	wait_for_devices();
	return hip_find(p, &a) && a.kind == SIM_HOST ? i_hipHostFree(p) : hipErrorInvalidValue;
}

CUresult cuMemFreeHost(void *p)
{
	RUN(cuMemFreeHost, NEEDS_CONTEXT, free_pinned(p));
}

CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
	RUN(cuMemHostRegister, NEEDS_CONTEXT, i_hipHostRegister(p, n, 0));
}

CUresult cuMemHostUnregister(void *p)
{
	RUN(cuMemHostUnregister, NEEDS_CONTEXT, i_hipHostUnregister(p));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags)
{
	RUN(cuMemHostGetDevicePointer, NEEDS_CONTEXT,
	    i_hipHostGetDevicePointer((void **)d, p, flags));
}

CUresult cuMemHostGetFlags(unsigned *flags, void *p)
{
	RUN(cuMemHostGetFlags, NEEDS_CONTEXT, i_hipHostGetFlags(flags, p));
}

/* ---- pointers ---- */

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *n, CUdeviceptr p)
{
	RUN(cuMemGetAddressRange, NEEDS_CONTEXT,
	    i_hipMemGetAddressRange((hipDeviceptr_t *)base, n, memory(p)));
}

/* CUDA's widths: its booleans have four bytes, sizes and identities eight. */
static CUresult attribute(void *data, CUpointer_attribute which, void *p)
{
	struct sim_alloc a;
	hipDeviceptr_t base;
	size_t n;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!hip_find(p, &a))
		return CUDA_ERROR_INVALID_VALUE;
	switch (which) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = a.kind == SIM_HOST || a.kind == SIM_LOCKED ?
					    CU_MEMORYTYPE_HOST :
					    CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data = a.kind == SIM_MANAGED; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = a.device < 0 ? 0 : a.device; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(void **)data = p; break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (a.kind != SIM_HOST && a.kind != SIM_LOCKED && a.kind != SIM_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = p;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = a.ownertype == OWNER_POOL ? ((struct block *)a.owner)->pool : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)data = a.id; break;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)data = 1; break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)data = (unsigned)a.sync_memops; break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = CONTEXT(a.device); break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		if (i_hipMemGetAddressRange(&base, &n, p))
			return CUDA_ERROR_INVALID_VALUE;
		if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
			*(size_t *)data = n;
		else
			*(void **)data = base;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute a, CUdeviceptr p)
{
	RUN(cuPointerGetAttribute, NEEDS_CONTEXT, attribute(data, a, memory(p)));
}

/* No attribute of an unknown address is an error here: it reads as 0. */
static CUresult attributes(unsigned n, CUpointer_attribute *list, void **data, void *p)
{
	for (unsigned i = 0; i < n; i++)
		if (attribute(data[i], list[i], p))
			memset(data[i], 0, list[i] == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE ? 8 : 4);
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *list, void **data, CUdeviceptr p)
{
	RUN(cuPointerGetAttributes, NEEDS_CONTEXT, attributes(n, list, data, memory(p)));
}

CUresult cuPointerSetAttribute(const void *v, CUpointer_attribute a, CUdeviceptr p)
{
	RUN(cuPointerSetAttribute, NEEDS_CONTEXT,
	    i_hipPointerSetAttribute(&(int){*(const unsigned *)v != 0}, (hipPointer_attribute)a,
				     memory(p)));
}

CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice d, CUstream s)
{
	RUN(cuMemPrefetchAsync, NEEDS_CONTEXT,
	    i_hipMemPrefetchAsync(memory(p), n, d, stream_arg(s)));
}

CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice d)
{
	RUN(cuMemAdvise, NEEDS_CONTEXT, i_hipMemAdvise(memory(p), n, (hipMemoryAdvise)advice, d));
}

CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr p, size_t n,
				       CUmemRangeHandleType type, unsigned long long flags)
{
	RUN(cuMemGetHandleForAddressRange, NEEDS_CONTEXT,
	    i_hipMemGetHandleForAddressRange(out, memory(p), n, (int)type, flags));
}

/* ---- IPC ---- */

/* Changes every byte, because the driver uses every byte of its handle. */
static void mask(void *handle)
{
	for (size_t i = 0; i < sizeof(CUipcMemHandle); i++)
		((unsigned char *)handle)[i] ^= 0xa5;
}

static hipError_t make_handle(CUipcMemHandle *h, void *p)
{
	hipError_t e;

	if (guard_unsafe())
		return hipErrorStreamCaptureUnsupported;
	e = i_hipIpcGetMemHandle((hipIpcMemHandle_t *)h, p);
	if (e == hipSuccess)
		mask(h);
	return e;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *h, CUdeviceptr p)
{
	RUN(cuIpcGetMemHandle, NEEDS_CONTEXT, make_handle(h, memory(p)));
}

/* HIP has its own number for memory that is gone. */
static CUresult open_handle(void **p, const CUipcMemHandle *h, unsigned flags)
{
	hipIpcMemHandle_t hip;
	hipError_t e;

	memcpy(&hip, h, sizeof hip);
	mask(&hip);
	e = i_hipIpcOpenMemHandle(p, hip, flags);
	return e == hipErrorInvalidDevicePointer ? CUDA_ERROR_INVALID_HANDLE : (CUresult)e;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle h, unsigned flags)
{
	RUN(cuIpcOpenMemHandle, NEEDS_CONTEXT, open_handle((void **)p, &h, flags));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
	RUN(cuIpcCloseMemHandle, NEEDS_CONTEXT, i_hipIpcCloseMemHandle(memory(p)));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *h, CUevent e)
{
	RUN(cuIpcGetEventHandle, NEEDS_CONTEXT,
	    i_hipIpcGetEventHandle((hipIpcEventHandle_t *)h, event_arg(e)));
}

CUresult cuIpcOpenEventHandle(CUevent *e, CUipcEventHandle h)
{
	RUN(cuIpcOpenEventHandle, NEEDS_CONTEXT,
	    i_hipIpcOpenEventHandle((hipEvent_t *)e, *(hipIpcEventHandle_t *)(void *)&h));
}

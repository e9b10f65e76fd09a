/* SPDX-License-Identifier: MIT */
/*
 * The types of CUDA's driver, as far as this device needs them, so that it builds without NVIDIA's
 * header. The numbers and layouts are in driver_abi.h, the calls in driver_calls.h.
 */
#ifndef SIM_CUDA_DRIVER_TYPES_H
#define SIM_CUDA_DRIVER_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr; /* device memory; with unified addressing any memory */
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef void (*CUhostFn)(void *arg);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *arg);

/* Enumerations. */
typedef unsigned CUdevice_attribute, CUdevice_P2PAttribute, CUlimit, CUpointer_attribute,
	CUmem_advise;
typedef unsigned CUmemorytype, CUmemLocationType, CUmemAllocationType;
typedef unsigned CUmemAllocationHandleType, CUmemAllocationGranularity_flags, CUmemAccess_flags;
typedef unsigned CUmemPool_attribute, CUmemRangeHandleType;
typedef unsigned CUstreamCaptureMode, CUstreamCaptureStatus, CUgraphNodeType,
	CUgraphExecUpdateResult;

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	char reserved[64];
} CUipcMemHandle, CUipcEventHandle;

typedef struct {
	unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct {
	CUmemLocationType type;
	int id;
} CUmemLocation;

typedef struct {
	CUmemLocation location;
	CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType, gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

#define V(name, value) name = value,
#define L(type, field, offset)
#define Z(type, size)
enum {
#include "cuda/driver_abi.h"
};
#undef V
#undef L
#undef Z

#define V(name, value)
#define L(type, field, at) _Static_assert(offsetof(type, field) == at, #type "." #field);
#define Z(type, size) _Static_assert(sizeof(type) == size, #type);
#include "cuda/driver_abi.h"
#undef V
#undef L
#undef Z

#endif

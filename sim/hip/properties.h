/* SPDX-License-Identifier: MIT */
#ifndef SIM_HIP_PROPERTIES_H
#define SIM_HIP_PROPERTIES_H

#include <stddef.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

/* hipDeviceProp_t of 6.0 and later: 1472 bytes. */
/* clang-format off */
struct prop6 {
	char name[256];
	char uuid[16], luid[8];
	unsigned luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
	int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
	int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
	int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
	int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
	int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
	int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
	int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
	int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess;
	int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
	int cooperativeMultiDeviceLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
	int accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned memoryPoolSupportedHandleTypes;
	int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
	int reserved[63];
	int hipReserved[32];
	char gcnArchName[256];
	size_t maxSharedMemoryPerMultiProcessor;
	int clockInstructionRate;
	unsigned arch;
	unsigned *hdpMemFlushCntl, *hdpRegFlushCntl;
	int cooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedGridDim;
	int cooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedSharedMem;
	int isLargeBar, asicRevision;
};
/* clang-format on */
_Static_assert(sizeof(struct prop6) == 1472, "hipDeviceProp_tR0600");

/* Copies the members that both structures have. */
static inline void prop6_from(struct prop6 *p, const hipDeviceProp_t *o)
{
	memset(p, 0, sizeof *p);
	memcpy(p->name, o->name, sizeof p->name);
	memcpy(p->maxThreadsDim, o->maxThreadsDim, sizeof p->maxThreadsDim);
	memcpy(p->maxGridSize, o->maxGridSize, sizeof p->maxGridSize);
	memcpy(p->gcnArchName, o->gcnArchName, sizeof p->gcnArchName);
	p->totalGlobalMem = o->totalGlobalMem;
	p->sharedMemPerBlock = o->sharedMemPerBlock;
	p->regsPerBlock = o->regsPerBlock;
	p->warpSize = o->warpSize;
	p->memPitch = o->memPitch;
	p->maxThreadsPerBlock = o->maxThreadsPerBlock;
	p->clockRate = o->clockRate;
	p->totalConstMem = o->totalConstMem;
	p->major = o->major;
	p->minor = o->minor;
	p->multiProcessorCount = o->multiProcessorCount;
	p->integrated = o->integrated;
	p->pciBusID = o->pciBusID;
	p->memoryClockRate = o->memoryClockRate;
	p->memoryBusWidth = o->memoryBusWidth;
	p->l2CacheSize = o->l2CacheSize;
	p->maxThreadsPerMultiProcessor = o->maxThreadsPerMultiProcessor;
	p->deviceOverlap = p->canMapHostMemory = p->concurrentKernels = 1;
	p->ipcEventSupported = 1;
}

#endif

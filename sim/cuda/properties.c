/* SPDX-License-Identifier: MIT */
/* Attributes and properties of devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/context.h"
#include "hip/properties.h"

/* clang-format off */
static const struct {
	int hip, cuda;
} attributes[] = {
	{hipDeviceAttributeEccEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
	{hipDeviceAttributeAccessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE},
	{hipDeviceAttributeAsyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
	{hipDeviceAttributeCanMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
	{hipDeviceAttributeCanUseHostPointerForRegisteredMem, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
	{hipDeviceAttributeClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
	{hipDeviceAttributeComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
	{hipDeviceAttributeComputePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
	{hipDeviceAttributeConcurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
	{hipDeviceAttributeConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
	{hipDeviceAttributeCooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
	{hipDeviceAttributeDirectManagedMemAccessFromHost, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
	{hipDeviceAttributeGlobalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED},
	{hipDeviceAttributeHostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
	{hipDeviceAttributeIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
	{hipDeviceAttributeIsMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD},
	{hipDeviceAttributeKernelExecTimeout, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT},
	{hipDeviceAttributeL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
	{hipDeviceAttributeLocalL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED},
	{hipDeviceAttributeComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
	{hipDeviceAttributeManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
	{hipDeviceAttributeMaxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
	{hipDeviceAttributeMaxBlockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
	{hipDeviceAttributeMaxBlockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
	{hipDeviceAttributeMaxBlockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
	{hipDeviceAttributeMaxGridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
	{hipDeviceAttributeMaxGridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
	{hipDeviceAttributeMaxGridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
	{hipDeviceAttributeMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
	{hipDeviceAttributeMaxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
	{hipDeviceAttributeMaxPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
	{hipDeviceAttributeMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
	{hipDeviceAttributeMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
	{hipDeviceAttributeComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
	{hipDeviceAttributeMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
	{hipDeviceAttributePageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
	{hipDeviceAttributePageableMemoryAccessUsesHostPageTables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES},
	{hipDeviceAttributePciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
	{hipDeviceAttributePciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
	{hipDeviceAttributePciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
	{hipDeviceAttributeMaxRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
	{hipDeviceAttributeMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
	{hipDeviceAttributeMaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
	{hipDeviceAttributeSharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
	{hipDeviceAttributeStreamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
	{hipDeviceAttributeTextureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
	{hipDeviceAttributeTexturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
	{hipDeviceAttributeTotalConstantMemory, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
	{hipDeviceAttributeUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
	{hipDeviceAttributeWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
	{hipDeviceAttributeMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
	/* Debian 12's header does not have these; later headers append them in this order. */
	{hipDeviceAttributeMemoryPoolsSupported + 1, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
	{hipDeviceAttributeMemoryPoolsSupported + 2, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
	{hipDeviceAttributeMemoryPoolsSupported + 3, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
	{hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
	{hipDeviceAttributePhysicalMultiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
};

/* Attributes for which the driver has no number. */
static const struct {
	int hip, value;
} constants[] = {
	{hipDeviceAttributeCooperativeMultiDeviceLaunch, 0},
	{hipDeviceAttributeIsLargeBar, 0}, /* the host cannot load from device memory */
	{hipDeviceAttributeCanUseStreamWaitValue, 1},
	{hipDeviceAttributeFineGrainSupport, 1},
	{hipDeviceAttributeImageSupport, 1},
	{hipDeviceAttributeAsicRevision, 0},
	{hipDeviceAttributeTccDriver, 0},
	{hipDeviceAttributeClockInstructionRate, 1000000},
	{hipDeviceAttributeTotalGlobalMem, 0x7fffffff},
};
/* clang-format on */

static int get(CUdevice_attribute a, int d)
{
	int v = 0;

	return CU(cuDeviceGetAttribute, &v, a, d) ? 0 : v;
}

/* A driver with heterogeneous memory management says 1, and hipFree then always waits under
 * somashim's `auto`. An AMD GPU without XNACK says 0, and so does this device unless
 * SOMACUDA_PAGEABLE is set. */
static bool asks_of_pageable(int hip)
{
	return hip == hipDeviceAttributePageableMemoryAccess && !getenv("SOMACUDA_PAGEABLE");
}

hipError_t i_hipDeviceGetAttribute(int *v, hipDeviceAttribute_t a, int d)
{
	STARTED();
	if (!v)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (asks_of_pageable((int)a)) {
		*v = 0;
		return hipSuccess;
	}
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (attributes[i].hip == (int)a)
			return to_hip(CU(cuDeviceGetAttribute, v,
					 (CUdevice_attribute)attributes[i].cuda, d));
	for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
		if (constants[i].hip == (int)a) {
			*v = constants[i].value;
			return hipSuccess;
		}
	return hipErrorInvalidValue;
}

static void fill(hipDeviceProp_t *p, int d)
{
	memset(p, 0, sizeof *p);
	(void)CU(cuDeviceGetName, p->name, sizeof p->name, d);
	(void)CU(cuDeviceTotalMem, &p->totalGlobalMem, d);
	p->sharedMemPerBlock = (size_t)get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, d);
	p->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, d);
	p->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE, d);
	p->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, d);
	for (unsigned i = 0; i < 3; i++) {
		p->maxThreadsDim[i] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i, d);
		p->maxGridSize[i] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i, d);
	}
	p->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, d);
	p->memoryClockRate = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, d);
	p->memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, d);
	p->totalConstMem = (size_t)get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, d);
	p->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
	p->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
	p->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d);
	p->l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, d);
	p->maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, d);
	p->concurrentKernels = 1;
	p->pciDomainID = get(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, d);
	p->pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d);
	p->pciDeviceID = get(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, d);
	p->canMapHostMemory = 1;
	snprintf(p->gcnArchName, sizeof p->gcnArchName, "sm_%d%d", p->major, p->minor);
	p->integrated = get(CU_DEVICE_ATTRIBUTE_INTEGRATED, d);
	p->cooperativeLaunch = 1;
	p->memPitch = (size_t)get(CU_DEVICE_ATTRIBUTE_MAX_PITCH, d);
	p->textureAlignment = (size_t)get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, d);
	p->texturePitchAlignment = (size_t)get(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, d);
	p->managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, d);
	p->concurrentManagedAccess = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, d);
	if (!asks_of_pageable(hipDeviceAttributePageableMemoryAccess))
		p->pageableMemoryAccess = get(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, d);
}

/* The symbol keeps the layout of 5.x; since 6.0 programs call the R0600 one. */
hipError_t i_hipGetDeviceProperties(hipDeviceProp_t *p, int d)
{
	STARTED();
	if (!p)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	fill(p, d);
	return hipSuccess;
}

hipError_t i_hipGetDevicePropertiesR0600(void *out, int d)
{
	struct prop6 *p = out;
	hipDeviceProp_t o;
	hipError_t e;

	if (!p)
		return hipErrorInvalidValue;
	e = i_hipGetDeviceProperties(&o, d);
	if (e)
		return e;
	prop6_from(p, &o);
	(void)CU(cuDeviceGetUuid, (CUuuid *)(void *)p->uuid, d);
	p->textureAlignment = o.textureAlignment;
	p->texturePitchAlignment = o.texturePitchAlignment;
	p->pciDeviceID = o.pciDeviceID;
	p->pciDomainID = o.pciDomainID;
	p->asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, d);
	p->unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, d);
	p->managedMemory = o.managedMemory;
	p->concurrentManagedAccess = o.concurrentManagedAccess;
	p->pageableMemoryAccess = o.pageableMemoryAccess;
	p->cooperativeLaunch = o.cooperativeLaunch;
	p->hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, d);
	p->memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d);
	p->memoryPoolSupportedHandleTypes = (unsigned)get(
		CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, d);
	return hipSuccess;
}

hipError_t i_hipChooseDevice(int *d, const hipDeviceProp_t *p)
{
	STARTED();
	if (!d || !p)
		return hipErrorInvalidValue;
	*d = 0;
	return hipSuccess;
}

hipError_t i_hipChooseDeviceR0600(int *d, const void *p)
{
	return i_hipChooseDevice(d, p);
}

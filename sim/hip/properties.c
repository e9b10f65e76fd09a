/* SPDX-License-Identifier: MIT */
/* Properties and attributes of devices, in the layout of each release. */
#include <stdio.h>
#include <string.h>

#include "device/options.h"
#include "hip/entry_points.h"
#include "hip/properties.h"
#include "hip/thread_state.h"
#include "hip/version.h"

static void fill(hipDeviceProp_t *p, int d)
{
	memset(p, 0, sizeof *p);
	strcpy(p->name, "somasim software device");
	p->totalGlobalMem = sim_opt.total;
	p->sharedMemPerBlock = 65536;
	p->regsPerBlock = 65536;
	p->warpSize = 64;
	p->maxThreadsPerBlock = 1024;
	for (int i = 0; i < 3; i++) {
		p->maxThreadsDim[i] = 1024;
		p->maxGridSize[i] = i ? 65536 : 2147483647;
	}
	p->clockRate = 2100000;
	p->memoryClockRate = 1300000;
	p->memoryBusWidth = 8192;
	p->totalConstMem = 2147483647;
	p->major = 9;
	p->minor = 4;
	p->multiProcessorCount = 304;
	p->l2CacheSize = 4 << 20;
	p->maxThreadsPerMultiProcessor = 2048;
	p->clockInstructionRate = 100000;
	p->concurrentKernels = 1;
	p->pciBusID = d + 1;
	p->maxSharedMemoryPerMultiProcessor = 65536;
	p->canMapHostMemory = 1;
	p->gcnArch = 942;
	snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", sim_opt.arch);
	p->integrated = sim_opt.integrated;
	p->cooperativeLaunch = 1;
	p->cooperativeMultiDeviceLaunch = 1;
	p->memPitch = 2147483647;
	p->textureAlignment = 256;
	p->texturePitchAlignment = 256;
	p->isLargeBar = 1;
	p->managedMemory = 1;
	p->concurrentManagedAccess = 1;
}

/* The symbol keeps the layout of 5.x; since 6.0 programs call the R0600 one. */
hipError_t i_hipGetDeviceProperties(hipDeviceProp_t *p, int d)
{
	if (!p)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	fill(p, d);
	return hipSuccess;
}

hipError_t i_hipGetDevicePropertiesR0600(void *out, int d)
{
	hipDeviceProp_t o;
	struct prop6 *p = out;

	if (!p)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	fill(&o, d);
	prop6_from(p, &o);
	memcpy(p->uuid, "somasim", 7);
	p->uuid[15] = (char)d;
	p->textureAlignment = p->texturePitchAlignment = 256;
	p->asyncEngineCount = 2;
	p->unifiedAddressing = 1;
	p->streamPrioritiesSupported = 1;
	p->sharedMemPerMultiprocessor = p->maxSharedMemoryPerMultiProcessor = 65536;
	p->regsPerMultiprocessor = 65536;
	p->managedMemory = p->concurrentManagedAccess = 1;
	p->cooperativeLaunch = p->cooperativeMultiDeviceLaunch = 1;
	p->hostRegisterSupported = 1;
	p->memoryPoolsSupported = V6;
	p->memoryPoolSupportedHandleTypes = V6;
	p->clockInstructionRate = o.clockInstructionRate;
	p->isLargeBar = 1;
	return hipSuccess;
}

hipError_t i_hipChooseDevice(int *d, const hipDeviceProp_t *p)
{
	if (!d || !p)
		return hipErrorInvalidValue;
	*d = 0;
	return hipSuccess;
}

hipError_t i_hipChooseDeviceR0600(int *d, const void *p)
{
	return i_hipChooseDevice(d, p);
}

hipError_t i_hipDeviceGetAttribute(int *v, hipDeviceAttribute_t attr, int d)
{
	if (!v)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	/* clang-format off */
	switch ((int)attr) {
	case hipDeviceAttributeEccEnabled: case hipDeviceAttributeKernelExecTimeout:
	case hipDeviceAttributeComputeMode: case hipDeviceAttributePciDomainID:
	case hipDeviceAttributePciDeviceId: case hipDeviceAttributeIsMultiGpuBoard:
	case hipDeviceAttributePageableMemoryAccess: case hipDeviceAttributeTccDriver:
	case hipDeviceAttributePageableMemoryAccessUsesHostPageTables:
	case hipDeviceAttributeDirectManagedMemAccessFromHost: *v = 0; break;
	case hipDeviceAttributeCanMapHostMemory: case hipDeviceAttributeConcurrentKernels:
	case hipDeviceAttributeCooperativeLaunch: case hipDeviceAttributeCooperativeMultiDeviceLaunch:
	case hipDeviceAttributeManagedMemory: case hipDeviceAttributeConcurrentManagedAccess:
	case hipDeviceAttributeStreamPrioritiesSupported: case hipDeviceAttributeUnifiedAddressing:
	case hipDeviceAttributeIsLargeBar: case hipDeviceAttributeCanUseStreamWaitValue:
	case hipDeviceAttributeImageSupport: case hipDeviceAttributeFineGrainSupport:
	case hipDeviceAttributeAsicRevision: *v = 1; break;
	case hipDeviceAttributeIntegrated: *v = sim_opt.integrated; break;
	case hipDeviceAttributeClockRate: *v = 2100000; break;
	case hipDeviceAttributeL2CacheSize: *v = 4 << 20; break;
	case hipDeviceAttributeComputeCapabilityMajor: *v = 9; break;
	case hipDeviceAttributeComputeCapabilityMinor: *v = 4; break;
	case hipDeviceAttributeMaxBlockDimX: case hipDeviceAttributeMaxBlockDimY:
	case hipDeviceAttributeMaxBlockDimZ: case hipDeviceAttributeMaxThreadsPerBlock: *v = 1024; break;
	case hipDeviceAttributeMaxGridDimX: case hipDeviceAttributeMaxPitch:
	case hipDeviceAttributeTotalConstantMemory: *v = 2147483647; break;
	case hipDeviceAttributeMaxGridDimY: case hipDeviceAttributeMaxGridDimZ: *v = 65536; break;
	case hipDeviceAttributeMaxThreadsPerMultiProcessor: *v = 2048; break;
	case hipDeviceAttributeMemoryBusWidth: *v = 8192; break;
	case hipDeviceAttributeMemoryClockRate: *v = 1300000; break;
	case hipDeviceAttributeMultiprocessorCount:
	case hipDeviceAttributePhysicalMultiProcessorCount: *v = 304; break;
	case hipDeviceAttributePciBusId: *v = d + 1; break;
	case hipDeviceAttributeMaxRegistersPerBlock: case hipDeviceAttributeMaxSharedMemoryPerBlock:
	case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *v = 65536; break;
	case hipDeviceAttributeTextureAlignment: case hipDeviceAttributeTexturePitchAlignment: *v = 256; break;
	case hipDeviceAttributeTotalGlobalMem: *v = (int)(sim_opt.total > 0x7fffffff ? 0x7fffffff : sim_opt.total); break;
	case hipDeviceAttributeWarpSize: *v = 64; break;
	case hipDeviceAttributeMemoryPoolsSupported: *v = V6; break;
	/* Debian 12's header does not have these; later headers append them in this order. */
	case hipDeviceAttributeMemoryPoolsSupported + 1:
		*v = V6 && !sim_opt.quirk[SIM_Q_NO_VMM];  /* VirtualMemoryManagementSupported */
		break;
	case hipDeviceAttributeMemoryPoolsSupported + 2: *v = 1; break; /* HostRegisterSupported */
	case hipDeviceAttributeMemoryPoolsSupported + 3: *v = V6; break; /* pool handle types */
	case hipDeviceAttributeClockInstructionRate: *v = 100000; break;
	case hipDeviceAttributeGcnArch: *v = 942; break;
	default: return hipErrorInvalidValue;
	}
	/* clang-format on */
	return hipSuccess;
}

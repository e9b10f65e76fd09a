/* SPDX-License-Identifier: MIT */
/* Devices: number, identity, attributes. */
#include "device/options.h"
#include "libcuda/call.h"

CUresult cuDeviceGetCount(int *n)
{
	RUN(cuDeviceGetCount, NEEDS_INIT, i_hipGetDeviceCount(n));
}

CUresult cuDeviceGetName(char *name, int len, CUdevice d)
{
	RUN(cuDeviceGetName, NEEDS_INIT, i_hipDeviceGetName(name, len, d));
}

CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d)
{
	RUN(cuDeviceTotalMem, NEEDS_INIT, i_hipDeviceTotalMem(n, d));
}

CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d)
{
	RUN(cuDeviceGetUuid, NEEDS_INIT, i_hipDeviceGetUuid((hipUUID *)u, d));
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice d)
{
	RUN(cuDeviceGetPCIBusId, NEEDS_INIT, i_hipDeviceGetPCIBusId(id, len, d));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *d, const char *id)
{
	RUN(cuDeviceGetByPCIBusId, NEEDS_INIT, i_hipDeviceGetByPCIBusId(d, id));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer)
{
	RUN(cuDeviceCanAccessPeer, NEEDS_INIT, i_hipDeviceCanAccessPeer(can, d, peer));
}

CUresult cuDeviceGetP2PAttribute(int *v, CUdevice_P2PAttribute a, CUdevice from, CUdevice to)
{
	RUN(cuDeviceGetP2PAttribute, NEEDS_INIT,
	    i_hipDeviceGetP2PAttribute(v, (hipDeviceP2PAttr)(a - 1), from, to));
}

static CUresult attribute(int *v, CUdevice_attribute a, int d)
{
	static const struct {
		CUdevice_attribute a;
		int value;
	} table[] = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
		{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
		{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
		{CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
		{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
		{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
		{CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
		{CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
		{CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0},
		{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1}, /* as with HMM */
	};

	if (!v || d < 0 || d >= sim_opt.devices)
		return v ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	*v = a == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? d + 1 : 1;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].a == a)
			*v = table[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	RUN(cuDeviceGetAttribute, NEEDS_INIT, attribute(v, a, d));
}

/* SPDX-License-Identifier: MIT */
/* Devices: choice, identity, synchronization, limits, peers. */
#include "cuda/context.h"
#include "device/options.h"

hipError_t i_hipInit(unsigned flags)
{
	return flags ? hipErrorInvalidValue : driver_start();
}

hipError_t i_hipGetDeviceCount(int *n)
{
	if (!n)
		return hipErrorInvalidValue;
	*n = 0;
	STARTED();
	*n = sim_opt.devices;
	return hipSuccess;
}

/* The context of the device becomes current at the next call that needs it. */
hipError_t i_hipSetDevice(int d)
{
	STARTED();
	if (check_device(d))
		return hipErrorInvalidDevice;
	thread_state()->device = d;
	return hipSuccess;
}

hipError_t i_hipInitDevice(int d, unsigned how, unsigned flags)
{
	STARTED();
	return flags ? hipErrorInvalidValue : check_device(d);
}

hipError_t i_hipDeviceGet(hipDevice_t *d, int ordinal)
{
	STARTED();
	if (!d)
		return hipErrorInvalidValue;
	if (check_device(ordinal))
		return hipErrorInvalidDevice;
	*d = ordinal;
	return hipSuccess;
}

/* Is *out an answer about device d? */
#define ASKED(out, d) \
	do { \
		STARTED(); \
		if (!(out)) \
			return hipErrorInvalidValue; \
		if (check_device(d)) \
			return hipErrorInvalidDevice; \
	} while (0)

hipError_t i_hipDeviceGetName(char *name, int len, hipDevice_t d)
{
	ASKED(name && len > 0, d);
	return to_hip(CU(cuDeviceGetName, name, len, d));
}

hipError_t i_hipDeviceGetUuid(hipUUID *u, hipDevice_t d)
{
	ASKED(u, d);
	return to_hip(CU(cuDeviceGetUuid, (CUuuid *)u, d));
}

hipError_t i_hipDeviceTotalMem(size_t *n, hipDevice_t d)
{
	ASKED(n, d);
	return to_hip(CU(cuDeviceTotalMem, n, d));
}

hipError_t i_hipDeviceGetPCIBusId(char *id, int len, int d)
{
	ASKED(id && len > 0, d);
	return to_hip(CU(cuDeviceGetPCIBusId, id, len, d));
}

hipError_t i_hipDeviceGetByPCIBusId(int *d, const char *id)
{
	ASKED(d && id, 0);
	return to_hip(CU(cuDeviceGetByPCIBusId, d, id));
}

hipError_t i_hipDeviceSynchronize(void)
{
	ENTER();
	return to_hip(CU(cuCtxSynchronize));
}

/* The numbers of the limits are the same in both APIs; HIP has two of them. */
hipError_t i_hipDeviceGetLimit(size_t *v, enum hipLimit_t limit)
{
	ENTER();
	if (!v)
		return hipErrorInvalidValue;
	if (limit != hipLimitMallocHeapSize && limit != hipLimitPrintfFifoSize)
		return hipErrorUnsupportedLimit;
	return to_hip(CU(cuCtxGetLimit, v, (CUlimit)limit));
}

hipError_t i_hipDeviceSetLimit(enum hipLimit_t limit, size_t v)
{
	ENTER();
	if (limit != hipLimitMallocHeapSize && limit != hipLimitPrintfFifoSize)
		return hipErrorUnsupportedLimit;
	return to_hip(CU(cuCtxSetLimit, (CUlimit)limit, v));
}

/* ---- peers ---- */

hipError_t i_hipDeviceCanAccessPeer(int *can, int d, int peer)
{
	ASKED(can, d);
	if (check_device(peer))
		return hipErrorInvalidDevice;
	*can = 0;
	return d == peer ? hipSuccess : to_hip(CU(cuDeviceCanAccessPeer, can, d, peer));
}

hipError_t i_hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	ENTER();
	if (flags)
		return hipErrorInvalidValue;
	if (check_device(peer) || peer == current_device())
		return hipErrorInvalidDevice;
	return to_hip(CU(cuCtxEnablePeerAccess, context_of(peer), 0));
}

hipError_t i_hipDeviceDisablePeerAccess(int peer)
{
	ENTER();
	if (check_device(peer))
		return hipErrorInvalidDevice;
	if (peer == current_device())
		return hipErrorPeerAccessNotEnabled;
	return to_hip(CU(cuCtxDisablePeerAccess, context_of(peer)));
}

hipError_t i_hipDeviceGetP2PAttribute(int *v, hipDeviceP2PAttr a, int from, int to)
{
	ASKED(v, from);
	if (check_device(to))
		return hipErrorInvalidDevice;
	/* HIP counts from 0, CUDA from 1, in the same order. */
	return to_hip(CU(cuDeviceGetP2PAttribute, v, (CUdevice_P2PAttribute)a + 1, from, to));
}

hipError_t i_hipDeviceFlushGPUDirectRDMAWrites(int target, int scope)
{
	return hipSuccess;
}

/* ---- test control, found by dlsym ---- */

#pragma GCC visibility push(default)
uint64_t somasim_device_free_bytes(int device);
#pragma GCC visibility pop

uint64_t somasim_device_free_bytes(int device)
{
	int before = current_device();
	size_t left = 0, total = 0;

	thread_state()->device = device;
	if (!context_enter())
		(void)CU(cuMemGetInfo, &left, &total);
	thread_state()->device = before;
	return left;
}

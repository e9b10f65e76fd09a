/* SPDX-License-Identifier: MIT */
/* Devices: choice, identity, synchronization, reset and limits. */
#include <stdio.h>
#include <string.h>

#include "device/arena.h"
#include "device/device_queues.h"
#include "device/options.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/peer.h"
#include "hip/pool.h"
#include "hip/stream.h"
#include "hip/thread_state.h"
#include "hip/version.h"

hipError_t i_hipInit(unsigned flags)
{
	if (flags)
		return hipErrorInvalidValue;
	return sim_arena_init() ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t i_hipGetDeviceCount(int *n)
{
	if (!n)
		return hipErrorInvalidValue;
	*n = sim_opt.devices;
	return hipSuccess;
}

hipError_t i_hipSetDevice(int d)
{
	hipError_t e = check_device(d);

	if (!e)
		thread_state()->device = d;
	return e;
}

/* Since 7.16. The device gets ready without becoming the current one. */
hipError_t i_hipInitDevice(int d, unsigned how, unsigned flags)
{
	return flags ? hipErrorInvalidValue : check_device(d);
}

/* After 7.17. There is no network here that writes to a device. */
hipError_t i_hipDeviceFlushGPUDirectRDMAWrites(int target, int scope)
{
	return hipSuccess;
}

hipError_t i_hipDeviceGet(hipDevice_t *d, int ordinal)
{
	if (!d)
		return hipErrorInvalidValue;
	if (check_device(ordinal))
		return hipErrorInvalidDevice;
	*d = ordinal;
	return hipSuccess;
}

hipError_t i_hipDeviceGetName(char *name, int len, hipDevice_t d)
{
	if (!name || len <= 0)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	snprintf(name, (size_t)len, "somasim software device");
	return hipSuccess;
}

hipError_t i_hipDeviceGetUuid(hipUUID *u, hipDevice_t d)
{
	if (!u)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	memset(u, 0, sizeof *u);
	memcpy(u, "somasim", 7);
	((char *)u)[15] = (char)d;
	return hipSuccess;
}

hipError_t i_hipDeviceTotalMem(size_t *n, hipDevice_t d)
{
	if (!n)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	*n = sim_opt.total;
	return hipSuccess;
}

hipError_t i_hipDeviceGetPCIBusId(char *id, int len, int d)
{
	if (!id || len <= 0)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	snprintf(id, (size_t)len, "0000:%02x:00.0", d + 1);
	return hipSuccess;
}

hipError_t i_hipDeviceGetByPCIBusId(int *d, const char *id)
{
	unsigned domain, bus;

	if (!d || !id || sscanf(id, "%x:%x", &domain, &bus) != 2)
		return hipErrorInvalidValue;
	if (domain || bus < 1 || (int)bus > sim_opt.devices)
		return hipErrorInvalidValue;
	*d = (int)bus - 1;
	return hipSuccess;
}

hipError_t i_hipDeviceSynchronize(void)
{
	hipError_t e = guard_device_sync();

	if (e)
		return e;
	sim_device_drain(current_device());
	pools_release(current_device());
	return hipSuccess;
}

/* Destroys the pools and streams of the device and frees its allocations. */
hipError_t i_hipDeviceReset(void)
{
	int d = current_device();
	uintptr_t at = 0;
	struct sim_alloc a;

	pools_reset(d);
	streams_reset(d);
	sim_device_drop(d);
	while (sim_map_each(&at, &a)) {
		if (!a.hip || a.device != d ||
		    (a.kind != SIM_DEVICE && a.kind != SIM_HOST && a.kind != SIM_MANAGED))
			continue;
		if (a.kind == SIM_DEVICE)
			hip_device_free((void *)a.r.base);
		else
			sim_free((void *)a.r.base, false);
	}
	peers_reset(d);
	return hipSuccess;
}

hipError_t i_hipDeviceGetLimit(size_t *v, enum hipLimit_t limit)
{
	if (!v)
		return hipErrorInvalidValue;
	if (limit != hipLimitMallocHeapSize && limit != hipLimitPrintfFifoSize)
		return hipErrorUnsupportedLimit;
	*v = limit == hipLimitMallocHeapSize ? 8u << 20 : 1u << 20;
	return hipSuccess;
}

hipError_t i_hipDeviceSetLimit(enum hipLimit_t limit, size_t v)
{
	return limit == hipLimitMallocHeapSize || limit == hipLimitPrintfFifoSize ?
		       hipSuccess :
		       hipErrorUnsupportedLimit;
}

/* SPDX-License-Identifier: MIT */
/* Calls that need no device: the release that is played, the device of the thread, flags,
 * preferences. */
#include "device/options.h"
#include "hip/device_flags.h"
#include "hip/entry_points.h"
#include "hip/thread_state.h"
#include "hip/version.h"

_Atomic unsigned device_flags[SIM_MAX_DEVICES];

static int version(void)
{
	static const struct {
		int release, number;
	} numbers[] = {
		{502, 50221153}, {507, 50731921}, {604, 60443484}, {702, 70253211}, {714, 71460850},
		{715, 71526333}, {716, 71626361}, {717, 71726392}, {800, 80000000},
	};
	size_t i = 0;

	while (numbers[i].release != sim_opt.hip)
		i++;
	return numbers[i].number;
}

hipError_t i_hipRuntimeGetVersion(int *v)
{
	if (!v)
		return hipErrorInvalidValue;
	*v = version();
	return hipSuccess;
}

hipError_t i_hipDriverGetVersion(int *v)
{
	return i_hipRuntimeGetVersion(v);
}

hipError_t i_hipGetDevice(int *d)
{
	if (!d)
		return hipErrorInvalidValue;
	*d = current_device();
	return hipSuccess;
}

hipError_t i_hipSetDeviceFlags(unsigned flags)
{
	if (flags &
	    ~(unsigned)(hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax))
		return hipErrorInvalidValue;
	device_flags[current_device()] = flags;
	return hipSuccess;
}

hipError_t i_hipGetDeviceFlags(unsigned *flags)
{
	if (!flags)
		return hipErrorInvalidValue;
	*flags = device_flags[current_device()];
	return hipSuccess;
}

hipError_t i_hipDeviceSetCacheConfig(hipFuncCache_t c)
{
	return hipSuccess;
}
hipError_t i_hipDeviceSetSharedMemConfig(hipSharedMemConfig c)
{
	return hipSuccess;
}

hipError_t i_hipDeviceGetCacheConfig(hipFuncCache_t *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = hipFuncCachePreferNone;
	return hipSuccess;
}

hipError_t i_hipDeviceGetSharedMemConfig(hipSharedMemConfig *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = hipSharedMemBankSizeFourByte;
	return hipSuccess;
}

hipError_t i_hipProfilerStart(void)
{
	return hipSuccess;
}
hipError_t i_hipProfilerStop(void)
{
	return hipSuccess;
}

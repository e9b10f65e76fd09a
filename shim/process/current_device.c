/* SPDX-License-Identifier: MIT */
/* Asks for the calling thread's current device, and changes it for a while. No lock. */
#include "driver/rocm/rocm.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

int ss_device_count(void)
{
	return ss_rocm_devices;
}

int ss_current_device(hipError_t *err)
{
	int dev = -1;

	*err = hipSuccess;
	if (ss_device_count() == 1)
		return 0; /* no other can be current */
	*err = REAL(hipGetDevice, &dev);
	return *err == hipSuccess ? dev : -1;
}

bool ss_device_switch(struct ss_device_switch *s, int dev)
{
	hipError_t err;

	s->old = ss_current_device(&err);
	s->switched = false;
	if (s->old < 0)
		return false;
	if (s->old == dev)
		return true;
	s->switched = REAL(hipSetDevice, dev) == hipSuccess;
	return s->switched;
}

void ss_device_restore(struct ss_device_switch *s)
{
	if (s->switched)
		(void)REAL(hipSetDevice, s->old);
}

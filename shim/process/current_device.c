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
	hipError_t e = hipSuccess;
	int dev = 0; /* the only device is always the current one */

	if (ss_device_count() != 1)
		e = REAL(hipGetDevice, &dev);
	if (err)
		*err = e;
	return e == hipSuccess ? dev : -1;
}

bool ss_device_switch(struct ss_device_switch *s, int dev)
{
	s->old = ss_current_device(NULL);
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

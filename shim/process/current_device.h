/* SPDX-License-Identifier: MIT */
/* The calling thread's current device. */
#ifndef SS_SHIM_CURRENT_DEVICE_H
#define SS_SHIM_CURRENT_DEVICE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

/* Devices of the process, as counted at the start; no call of HIP. */
int ss_device_count(void);
/* The current device. -1, and the reason in *err (NULL allowed), if there is none. Makes no call if
 * only one device exists. */
int ss_current_device(hipError_t *err);

/* Makes `dev` current for the calling thread until ss_device_restore(). False: it could not
 * be made current, and nothing is to be restored. */
struct ss_device_switch {
	int old;
	bool switched;
};
bool ss_device_switch(struct ss_device_switch *s, int dev);
void ss_device_restore(struct ss_device_switch *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Finds the device that a hipMemAllocationProp, the description of a request, names. */
#ifndef SS_SHIM_DEVICE_MEMORY_H
#define SS_SHIM_DEVICE_MEMORY_H

/* The device of a hipMemAllocationProp; -1: no device of this process. */
int ss_device_of_prop(const void *prop);

#endif

/* SPDX-License-Identifier: MIT */
/* The flags that hipSetDeviceFlags has set, by device. */
#ifndef SIM_HIP_DEVICE_FLAGS_H
#define SIM_HIP_DEVICE_FLAGS_H

#include "device/macros.h"

extern _Atomic unsigned device_flags[SIM_MAX_DEVICES];

#endif

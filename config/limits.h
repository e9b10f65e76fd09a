/* SPDX-License-Identifier: MIT */
/* The largest number of devices of a process. */
#ifndef SS_CONFIG_LIMITS_H
#define SS_CONFIG_LIMITS_H

#define SS_MAX_DEVICES 64

#endif

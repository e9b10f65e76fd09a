/* SPDX-License-Identifier: MIT */
/* How many devices a process may have. */
#ifndef SS_CONFIG_LIMITS_H
#define SS_CONFIG_LIMITS_H

#define SS_MAX_DEVICES 64

#endif

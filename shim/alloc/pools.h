/* SPDX-License-Identifier: MIT */
/*
 * Whether a program may create or destroy a pool, or make one current, at the moment: some captures
 * of a stream forbid that.
 */
#ifndef SS_SHIM_POOLS_H
#define SS_SHIM_POOLS_H

#include <stdbool.h>

/* Are these calls an error now, because of a live capture? */
bool ss_pools_forbidden(void);
/* `forbidden` knows the captures (stream/capture.c). Call this before the first capture begins. */
void ss_pools_set_capture_rule(bool (*forbidden)(void));

#endif

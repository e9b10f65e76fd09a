/* SPDX-License-Identifier: MIT */
/*
 * Turns: one thread at a time calls the runtime's map, unmap and SetAccess (quirk V17). Any thread.
 */
#ifndef SS_ROCM_MAP_TURN_H
#define SS_ROCM_MAP_TURN_H

#include <stdint.h>

/* Call before such a call of the runtime, with no lock held. Waits until the current turn ends, but
 * no longer than a second from its begin. Hand the result to ss_rocm_map_turn_end() after the
 * call. */
uint64_t ss_rocm_map_turn_begin(void);
void ss_rocm_map_turn_end(uint64_t turn);

#endif

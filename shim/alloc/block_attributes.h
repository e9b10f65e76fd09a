/* SPDX-License-Identifier: MIT */
/* Attributes of single blocks that the core does not keep: SYNC_MEMOPS and BUFFER_ID. */
#ifndef SS_SHIM_BLOCK_ATTRIBUTES_H
#define SS_SHIM_BLOCK_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

/* Did the program ask for synchronous memory operations on this block, or on any block? */
bool ss_sync_memops(uint64_t id);
bool ss_sync_memops_any(void);
/* False: out of host memory. */
bool ss_sync_memops_set(const struct ss_block_info *b, bool on);
/* A BUFFER_ID that nothing else has or had. */
unsigned ss_buffer_id_new(void);
/* The BUFFER_ID of the block; 0: out of host memory. */
unsigned ss_buffer_id(const struct ss_block_info *b);

#endif

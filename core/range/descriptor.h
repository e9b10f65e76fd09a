/* SPDX-License-Identifier: MIT */
/* What the address map needs to know of the storage of descriptors. Only range/ includes this. */
#ifndef SS_RANGE_DESCRIPTOR_H
#define SS_RANGE_DESCRIPTOR_H

#include "core/range/block.h"

/* Host bytes of a slab of descriptors. */
size_t ss_slab_bytes(void);
/* A descriptor without an owner's spares; takes map->lock. NULL: host memory is out. */
struct ss_block *ss_block_new_alone(struct ss_core *core);

#endif

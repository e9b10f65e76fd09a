/* SPDX-License-Identifier: MIT */
/* Reads PyTorch memory snapshots (torch.cuda.memory._dump_snapshot). */
#ifndef SS_READERS_TORCH_SNAPSHOT_H
#define SS_READERS_TORCH_SNAPSHOT_H

#include <stdio.h>

#include "cli/readers/events.h"

/* Appends the trace of `device` to `ev`, and the blocks of its segments that lived before the trace
 * began; -1 is the first device that has a trace, or segments where none has. */
bool ss_snapshot_read(struct ss_events *ev, FILE *file, int device, char *err, size_t err_size);

#endif

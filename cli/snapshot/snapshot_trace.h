/* SPDX-License-Identifier: MIT */
/* Makes a recording of a memory snapshot of PyTorch, so that the report and the conversions know
 * one format only. */
#ifndef SS_SNAPSHOT_TRACE_H
#define SS_SNAPSHOT_TRACE_H

#include <stdbool.h>
#include <stddef.h>

/* Does the file begin as a pickle of protocol 2 or later? `packed`: a packed file may, too. */
bool ss_is_snapshot(const char *path, bool packed);
/* Reads the snapshot at `path`. `made` gets a name by which this process can open the recording
 * until it closes the descriptor that is returned. -1 and a line in `err`: it is no snapshot, or
 * cannot be read. */
int ss_snapshot_trace(const char *path, char made[64], char *err, size_t err_size);

#endif

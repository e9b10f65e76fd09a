/* SPDX-License-Identifier: MIT */
/* Reads PyTorch memory snapshots (torch.cuda.memory._dump_snapshot). */
#ifndef SS_READERS_TORCH_SNAPSHOT_H
#define SS_READERS_TORCH_SNAPSHOT_H

#include <stdio.h>

#include "cli/readers/events.h"
#include "cli/readers/pickle.h"

/* A snapshot in memory. */
struct ss_torch_snapshot {
	struct ss_pickle_doc *doc;
	unsigned char *data;
	/* Lists; NULL: it has none */
	const struct ss_pickle *traces;   /* by device */
	const struct ss_pickle *segments; /* of all devices */
	const struct ss_pickle *annotations;
};

/* Opens a file, which may be packed. False with a message in `err`; nothing is open then. */
bool ss_snapshot_open(struct ss_torch_snapshot *s, const char *path, char *err, size_t err_size);
void ss_snapshot_close(struct ss_torch_snapshot *s);
/* A number of a dictionary; false: it has no such number. */
bool ss_snapshot_number(const struct ss_pickle *dict, const char *key, uint64_t *out);
/* Has the dictionary so many keys that a look-up would take long? No entry of PyTorch has. */
bool ss_snapshot_too_many_keys(const struct ss_pickle *v);

/* Appends the trace of `device` to `ev`, and the blocks of its segments that lived before the trace
 * began; -1 is the first device that has a trace, or segments where none has. */
bool ss_snapshot_read(struct ss_events *ev, FILE *file, int device, char *err, size_t err_size);

#endif

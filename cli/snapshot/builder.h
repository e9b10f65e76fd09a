/* SPDX-License-Identifier: MIT */
/* Writes a recording (trace/format.h) into a file without a name, for the command itself to read.
 * Not thread safe. */
#ifndef SS_SNAPSHOT_BUILDER_H
#define SS_SNAPSHOT_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct ss_builder {
	int fd;
	uint64_t end; /* bytes of the file */
	bool failed;  /* with `error` set */
	int error;
};

/* Records in the order of time, as a thread writes them. */
struct ss_builder_chain {
	struct ss_builder *to;
	uint8_t *data; /* the block that is being filled; NULL: none yet */
	uint32_t used; /* bytes of it */
	uint64_t base_ns, last_ns;
};

/* Opens the file, in TMPDIR or /tmp. False with errno set. */
bool ss_builder_open(struct ss_builder *b);
/* Room for a record of `size` bytes, all 0 but for its kind, length and time, which is not before
 * that of the last one. NULL: it failed. The record may be filled in until the next call. */
void *ss_builder_record(struct ss_builder_chain *c, enum ss_trace_kind kind, size_t size,
			uint64_t time_ns);
/* Writes the rest of a chain. */
void ss_builder_end(struct ss_builder_chain *c);
/* Writes the header. `path` gets a name by which this process can open the file until it closes
 * `fd`. False with errno set: something of it could not be written. */
bool ss_builder_finish(struct ss_builder *b, enum ss_trace_state state, uint64_t begin_ns,
		       char path[64]);
void ss_builder_close(struct ss_builder *b);

#endif

/* SPDX-License-Identifier: MIT */
/* A memory snapshot that becomes a recording. Only files of this folder include it. */
#ifndef SS_SNAPSHOT_CONVERSION_H
#define SS_SNAPSHOT_CONVERSION_H

#include <uthash.h>

#include "cli/analysis/ranges.h"
#include "cli/readers/torch_snapshot.h"
#include "cli/snapshot/stacks.h"

#define SS_SNAPSHOT_DEVICES 64
#define SS_SNAPSHOT_POOL(device) ((uint16_t)((device) + 1))
#define SS_SNAPSHOT_STREAMS 65536

struct ss_snapshot_stream {
	uint64_t key[2]; /* device, handle */
	uint32_t id;
	UT_hash_handle hh;
};

struct ss_snapshot_block { /* that is live, or freed and not completed */
	uint64_t key[2];   /* device, address */
	uint64_t size;
	bool freed;
	UT_hash_handle hh;
};

struct ss_conversion {
	const char *path;
	char *err;
	size_t err_size;
	struct ss_torch_snapshot snapshot;
	struct ss_builder builder;
	/* Definitions, the memory from before the history, and the history of the device that is
	 * read */
	struct ss_builder_chain definitions, before, history;
	struct ss_snapshot_stacks stacks;
	struct ss_snapshot_stream *streams;
	struct ss_snapshot_block *blocks;
	/* Addresses that the history has named, of memory and of blocks, and how they began */
	struct ss_ranges segments[SS_SNAPSHOT_DEVICES], named[SS_SNAPSHOT_DEVICES];
	bool used[SS_SNAPSHOT_DEVICES];
	uint64_t begin_ns;
	bool no_memory;
};

static inline uint64_t ss_conversion_rounded(uint64_t size)
{
	return (size + 511) & ~511ull;
}

/* Says in c->err what is wrong, as printf does with `n` and `what`. Returns false. */
bool ss_conversion_wrong(struct ss_conversion *c, const char *fmt, size_t n, const char *what);
/* The number of a stream, which it defines the first time; 0: no number is left. */
uint32_t ss_conversion_stream(struct ss_conversion *c, uint64_t device, uint64_t handle);
/* Writes what is known of the process. */
void ss_conversion_text(struct ss_conversion *c, enum ss_trace_info_key key, const char *text);
/* Defines the device and its pool, once. */
void ss_conversion_device(struct ss_conversion *c, size_t device);
/* Fills in what all events have. */
void ss_conversion_fill(struct ss_trace_event *e, size_t device, uint32_t stream, uint32_t stack,
			uint32_t flags);
/* Writes that memory of those addresses came (MAP) or went (UNMAP). */
void ss_conversion_segment(struct ss_builder_chain *to, enum ss_trace_kind kind, size_t device,
			   uint64_t base, uint64_t size, uint32_t flags, uint64_t time_ns);
/* Marks the addresses as named. `before`: those that nothing named so far existed before the
 * history. Ranges that follow each other become one, so that all calls together look at each range
 * once. */
void ss_conversion_name_segment(struct ss_conversion *c, size_t device, uint64_t base,
				uint64_t size, bool before);
/* The block that is live or in flight there; NULL: none. */
struct ss_snapshot_block *ss_conversion_find(struct ss_conversion *c, size_t device,
					     uint64_t address);
/* NULL: out of memory, as c->no_memory says. */
struct ss_snapshot_block *ss_conversion_add(struct ss_conversion *c, size_t device,
					    uint64_t address, uint64_t size);
/* The block is neither live nor in flight any more. */
void ss_conversion_drop(struct ss_conversion *c, struct ss_snapshot_block *b);
/* Marks the addresses of a block as named. False: some were named already, so the block did not
 * live before the history. */
bool ss_conversion_name_block(struct ss_conversion *c, size_t device, uint64_t address,
			      uint64_t size);
/* Writes a block that lived before the history begins. */
void ss_conversion_lived(struct ss_conversion *c, size_t device, uint64_t address, uint64_t size,
			 uint64_t asked, uint32_t stream, uint32_t stack);
/* Older snapshots have no times: then an entry is a microsecond after the one before it. */
uint64_t ss_conversion_time(const struct ss_pickle *entry, size_t n);
/* Writes the history of a device. False with a line in c->err. */
bool ss_conversion_trace(struct ss_conversion *c, size_t device);
/* The program's own ranges: they become phases. */
void ss_conversion_annotations(struct ss_conversion *c);

#endif

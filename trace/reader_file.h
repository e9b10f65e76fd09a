/* SPDX-License-Identifier: MIT */
/* One trace file: its blocks and its definitions. Internal to the reader. */
#ifndef SS_TRACE_READER_FILE_H
#define SS_TRACE_READER_FILE_H

#include "trace/reader.h"

#define SS_TRACE_ID_BITS 12 /* half of the bits of a number */

/* From a number of up to 24 bits to an index + 1. */
struct ss_trace_id_table {
	uint32_t *page[1u << SS_TRACE_ID_BITS];
};

struct ss_trace_block_info {
	uint64_t offset;   /* of the block in the file */
	uint32_t length;   /* bytes, up to the end of the last good record */
	uint64_t start_ns; /* no record is older */
	bool events;       /* the block has events */
};

/* A growing array. */
#define SS_TRACE_ARRAY(type) struct { type *at; size_t count, room; }

struct ss_trace_gone {
	uint64_t start, time_ns;
};

struct ss_trace_file_def {
	char *path;
	int fd;
	uint64_t size;        /* bytes */
	uint64_t end_ns;      /* later events are left out */
	uint32_t base_blocks; /* number of blocks of a ring's base that were found */
	struct ss_trace_header header;
	SS_TRACE_ARRAY(struct ss_trace_block_info) blocks;
	uint64_t events;
	char problem[512];
	size_t problems;

	struct ss_trace_process_def process;
	SS_TRACE_ARRAY(struct ss_trace_device_def) devices;
	SS_TRACE_ARRAY(struct ss_trace_pool_def) pools;
	SS_TRACE_ARRAY(struct ss_trace_stream_def) streams;
	SS_TRACE_ARRAY(struct ss_trace_stack_def) stacks;
	SS_TRACE_ARRAY(struct ss_trace_python_def) pythons;
	SS_TRACE_ARRAY(struct ss_trace_thread_def) threads;
	SS_TRACE_ARRAY(struct ss_trace_module_def) modules;
	SS_TRACE_ARRAY(struct ss_trace_gone) gone; /* modules */
	SS_TRACE_ARRAY(void *) owned;              /* texts and stacks, freed with the file */
	struct ss_trace_id_table pool_ids, stream_ids, stack_ids, python_ids, thread_ids;
	struct ss_trace_id_table allocating; /* stacks of ALLOC events */
	bool no_memory;
};

/* Walks the records of a block that is in memory. */
struct ss_trace_cursor {
	const uint8_t *data;
	uint32_t at, end;       /* bytes */
	uint64_t base, time_ns; /* time_ns is the time of the last record, which never decreases */
	uint32_t tid;
};

/* Such a block ends with 8 bytes that are no record. */
#define SS_TRACE_TAIL 8u
static inline bool ss_trace_has_tail(uint32_t magic)
{
	return magic == SS_TRACE_BLOCK_DONE || magic == SS_TRACE_BLOCK_BASE;
}

/* Starts at the block's header. False if the block has none. */
bool ss_trace_cursor_start(struct ss_trace_cursor *c, const uint8_t *data, uint32_t length);
/* The next record of a known kind but TIME; the result points into the block. NULL at the end; then
 * *damage describes the damage, or is NULL. */
const struct ss_trace_record *ss_trace_cursor_next(struct ss_trace_cursor *c, const char **damage);

/* Does the process that writes the file run? That process has the file locked (file_name.h). */
enum ss_trace_writer {
	SS_TRACE_WRITER_RUNS,
	SS_TRACE_WRITER_GONE,
	SS_TRACE_WRITER_UNKNOWN, /* the filesystem has no locks */
};
enum ss_trace_writer ss_trace_writer_of(int fd);

/* Opens the file and reads all definitions. `held`: the caller keeps others from changing the ring,
 * and wants its current state. False with one line in `err`. */
bool ss_trace_file_def_open(struct ss_trace_file_def *f, const char *path, bool held, char *err,
			    size_t err_size);
void ss_trace_file_def_close(struct ss_trace_file_def *f);
/* Takes the definition in the record; ignores events. */
void ss_trace_define(struct ss_trace_file_def *f, const struct ss_trace_record *r,
		     const struct ss_trace_cursor *c);
/* After the last record. */
void ss_trace_define_end(struct ss_trace_file_def *f);

/* Makes room for one more element. False: out of memory. */
bool ss_trace_grow(struct ss_trace_file_def *f, void *array, size_t element);
uint32_t ss_trace_id_find(const struct ss_trace_id_table *t, uint32_t id); /* 0: none */
bool ss_trace_id_add(struct ss_trace_file_def *f, struct ss_trace_id_table *t, uint32_t id,
		     size_t index);
/* Reads up to `size` bytes. Returns their number. */
size_t ss_trace_read_at(int fd, void *to, size_t size, uint64_t offset);

#endif

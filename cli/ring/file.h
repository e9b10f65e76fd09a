/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording that is a ring (struct ss_trace_ring in trace/format.h). The program
 * takes blocks and writes them. The process that holds the lock reads them, and frees those that
 * are no longer needed.
 */
#ifndef SS_RING_FILE_H
#define SS_RING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct ss_ring_file {
	int fd;
	size_t mapped;                  /* bytes of the header; the blocks begin there */
	uint32_t total;                 /* blocks at most */
	struct ss_trace_header *header; /* shared with the program */
	struct ss_trace_ring *ring;
};

/* One block, as its first and last bytes describe it. */
struct ss_ring_block {
	uint32_t number;
	uint32_t magic; /* SS_TRACE_BLOCK_* */
	uint64_t tail;  /* of a block that is done: its last time; of a base: its beginning */
};

enum ss_ring_refusal {
	SS_RING_WRONG,
	SS_RING_NONE,   /* it is a recording, but not a ring */
	SS_RING_LOCKED, /* by another process, all the time */
};

/* Opens and locks a file of this user, of any user for root. One at a time in this process. Waits
 * for others that have it locked, for `wait_ms` at most. False with one line in `err`, and the
 * reason. */
bool ss_ring_open(struct ss_ring_file *f, const char *path, unsigned wait_ms, char *err,
		  size_t err_size, enum ss_ring_refusal *why);
/* Unlocks it. */
void ss_ring_close(struct ss_ring_file *f);
/* All blocks that are in use, in an array that the caller frees. NULL: out of memory, or the file
 * cannot be read. */
struct ss_ring_block *ss_ring_blocks(const struct ss_ring_file *f, size_t *count);
/* Reads a block of SS_TRACE_BLOCK_SIZE bytes. Bytes that the file lacks are 0. */
void ss_ring_read(const struct ss_ring_file *f, uint32_t number, uint8_t *data);
/* Writes a new block. UINT32_MAX with errno set: the ring or the disk is full. */
uint32_t ss_ring_add(struct ss_ring_file *f, const uint8_t *data);
/* Frees a block. `program`: the block was one of the program's. */
void ss_ring_free(struct ss_ring_file *f, uint32_t number, bool program);

#endif

/* SPDX-License-Identifier: MIT */
/* The file of a recording: opens it, and maps its header and blocks into memory. */
#ifndef SS_TRACE_FILE_H
#define SS_TRACE_FILE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/format.h"

#define SS_TRACE_CUT ESTALE

struct ss_trace_file {
	int fd;
	dev_t dev; /* device and inode, as programs close descriptors that they did */
	ino_t ino; /* not open, and open files of their own with the same number */
	uint32_t header_size;
	_Atomic uint32_t next;          /* number of the next block; not of a ring */
	struct ss_trace_header *header; /* mapped; without its magic at first */
	struct ss_trace_ring *ring;     /* after the header; NULL: none */
	_Atomic bool starved;           /* a wait for a block of the ring was in vain */
	_Atomic uint64_t size;          /* the file has grown to these bytes at least */
};

/* Makes the file by ss_file_new(), which gives `path` and `number`. `ring`: most blocks of the
 * program in a ring; 0: no ring. False with errno set. */
bool ss_trace_file_open(struct ss_trace_file *f, const char *pattern, uint32_t ring, char *path,
			size_t size, unsigned *number);
/* Maps a new block of SS_TRACE_BLOCK_SIZE zero bytes, for which the disk has room. Safe from
 * several threads at once. NULL with errno set: SS_TRACE_CUT if the file was cut, EBUSY if a ring
 * has no free block. The call waits for a block for at most a second, and after a vain wait not
 * again before it got one. */
void *ss_trace_file_block(struct ss_trace_file *f, uint32_t *number);
/* Unmaps a complete block. The time of its last record is `last_ns`. */
void ss_trace_file_done(struct ss_trace_file *f, void *block, uint64_t last_ns);
/* Frees the disk space of a block's bytes from `used` on. These bytes stay zero. */
void ss_trace_file_punch(struct ss_trace_file *f, uint32_t number, uint32_t used);
void ss_trace_file_close(struct ss_trace_file *f);
/* Undoes ss_trace_file_open(): the file is empty, and no reader takes it for a recording. */
void ss_trace_file_undo(struct ss_trace_file *f);

#endif

/* SPDX-License-Identifier: MIT */
/* An allocation log in memory, whichever format it was read from. */
#ifndef SS_READERS_EVENTS_H
#define SS_READERS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_event {
	uint64_t time_us;
	uint64_t size;   /* bytes of an allocation; 0 for a free */
	uint32_t block;  /* blocks are numbered in the order of their allocation */
	uint32_t stream; /* index into `streams` */
	bool is_free;
};

struct ss_events {
	struct ss_event *list;
	size_t count;
	uint32_t blocks;
	uint64_t *streams; /* the stream handles of the log */
	uint32_t stream_count;
	uint64_t unknown_frees; /* frees of blocks that were allocated before the log began */
	uint64_t peak;          /* most bytes live at once, each block rounded up to 512 */
	size_t peak_at;         /* the first event at which `peak` was reached */
	unsigned long long cut; /* number of an incomplete last line; 0 = there is none */
	struct ss_events_index *index; /* only while the log is read */
};

/* Reads an RMM CSV or a PyTorch memory snapshot; the first byte tells which. `path` is
 * opened by ss_input_open(). `device` selects the trace of a snapshot; -1 is the first
 * device that has one. False with a message in `err` on failure. */
bool ss_events_read(struct ss_events *ev, const char *path, int device, char *err,
		    size_t err_size);
void ss_events_finish(struct ss_events *ev);

/* ---- for the readers ---------------------------------------------------- */

/* Begin and end of a read. After a failed read, ss_events_finish() is called too. */
bool ss_events_begin(struct ss_events *ev);
void ss_events_end(struct ss_events *ev);
/* Each appends an event. They return NULL, or a text that says what is wrong. */
const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size,
			    uint64_t stream, uint64_t time_us);
const char *ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t stream,
			   uint64_t time_us);

#endif

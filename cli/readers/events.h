/* SPDX-License-Identifier: MIT */
/* An allocation log in memory, whichever format it was read from. */
#ifndef SS_READERS_EVENTS_H
#define SS_READERS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_EVENT_BEFORE UINT32_MAX /* a block from before the log */

struct ss_event {
	uint64_t time_us;
	uint64_t size;   /* bytes of an allocation; 0 for a free */
	uint32_t block;  /* number of the block, from 0 */
	uint32_t stream; /* index into `streams` */
	/* Place in the log: the line of a CSV, from 1, or the entry of a trace, from 0; or
	 * SS_EVENT_BEFORE */
	uint32_t at;
	bool is_free;
};

struct ss_events {
	struct ss_event *list;
	size_t count;
	uint32_t blocks;
	uint64_t *streams; /* the stream handles of the log */
	uint32_t stream_count;
	/* Blocks that lived before the log began, and their bytes. Their allocations are the first
	 * events. */
	uint64_t before_blocks, before_bytes;
	uint64_t unknown_frees; /* frees of unknown blocks */
	uint64_t failures;      /* allocations that failed in the program */
	/* The log has the blocks that lived at one moment, and no history */
	bool no_history;
	uint32_t devices;       /* how many devices the log knows; one of them was read */
	int device;             /* the one that was read; -1: the log does not say */
	uint64_t reserved_peak; /* most bytes that the program had reserved; 0: not known */
	uint64_t peak;          /* most bytes live at once, each block rounded up to 512 */
	size_t peak_at;         /* the first event at which `peak` was reached */
	unsigned long long cut; /* number of an incomplete last line; 0 = there is none */
	/* `at` of the events that are appended now; readers set it */
	uint32_t at;
	struct ss_events_index *index; /* only while the log is read */
};

/* Reads an RMM CSV or a PyTorch memory snapshot; the first byte tells which. `path` is
 * opened by ss_input_open(). `device` selects the trace of a snapshot; -1 is the one
 * with the longest history. False with a message in `err` on failure. */
bool ss_events_read(struct ss_events *ev, const char *path, int device, char *err, size_t err_size);
void ss_events_finish(struct ss_events *ev);

/* ---- for the readers ---------------------------------------------------- */

/* Begin and end of a read. The end puts the blocks that lived before in front, and finds the peak.
 * False: out of memory. After a failed read, ss_events_finish() is called too. */
bool ss_events_begin(struct ss_events *ev);
bool ss_events_end(struct ss_events *ev);
/* Each appends an event. They return NULL, or a text that says what is wrong. */
const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream,
			    uint64_t time_us);
/* `size` is the size of the block that the free states; 0: it states none. */
const char *ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream,
			   uint64_t time_us);
/* A block that is live at the end. If nothing before this call named its pointer, it lived before
 * the log began. */
const char *ss_events_live(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream);

#endif

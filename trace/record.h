/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the recording: the state of the running recording, and the functions by
 * which a thread appends a record to its block. Internal to trace/.
 */
#ifndef SS_TRACE_RECORD_H
#define SS_TRACE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/file.h"
#include "trace/format.h"
#include "trace/steps.h"

#define SS_TRACE_NAMES 16384u       /* most pools and streams; a power of two */
#define SS_TRACE_STACKS (1u << 18)  /* most stacks; a power of two */
#define SS_TRACE_MODULES 2048u      /* most modules that are loaded at the same time */
#define SS_TRACE_PYTHON_CODES (1u << 18) /* most functions of Python */
/* Most blocks of ended threads that are kept for other threads */
#define SS_TRACE_PARTIAL 64u

struct ss_trace_name {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t id;  /* 0: about to be written */
};

struct ss_trace_module_range {
	uint64_t start, end;
	bool seen; /* seen by the walk in progress */
};

/* Offsets in the structures of a version of CPython: bytes from the start of each. */
struct ss_python_layout {
	uint16_t state_frame; /* thread state: its innermost frame, or a pointer to `cframe` */
	uint16_t cframe_frame;
	uint16_t frame_code, frame_previous, frame_instruction;
	uint16_t frame_entry; /* a byte that marks an entry of the interpreter's loop */
	uint16_t code_file, code_name, code_lines, code_first_line, code_bytes;
	uint16_t object_type, bytes_size, bytes_data;
	uint16_t text_state, text_length, text_ascii, text_other;
	bool by_cframe;
	/* Such a frame has no code of its own; else it is a flag of a frame with code */
	bool by_owner;
};

enum ss_python_state {
	SS_PYTHON_NONE, /* no interpreter in this process so far */
	SS_PYTHON_FOUND,
	SS_PYTHON_PROVEN, /* frames were read, and were as expected */
	SS_PYTHON_OFF,    /* of an unknown version, or not as expected: left alone */
};

struct ss_python {
	/* Enum ss_python_state. The rest does not change once it is FOUND */
	_Atomic uint32_t state;
	struct ss_python_layout layout;
	void *(*thread_state)(void);
	int (*is_finalizing)(void);
	uintptr_t code_type;
	uintptr_t own_start, own_end;   /* the module of the interpreter */
	uintptr_t loop_start, loop_end; /* its function that runs frames */
};

/* The running recording. The state lies in memory that the kernel clears in the child of a fork, so
 * that a child finds no recording, after any kind of fork. */
struct ss_trace_live {
	_Atomic uint64_t generation; /* see writer.h; must be first */
	struct ss_trace_file file;
	_Atomic bool cut; /* the guard has found a mapping whose file was cut */

	_Atomic uint32_t streams, pools; /* numbers that were given out */
	struct ss_trace_name names[SS_TRACE_NAMES];

	/* Hash of each stack that the file has; its number is its index + 1. */
	_Atomic uint64_t stacks[SS_TRACE_STACKS];
	_Atomic uint64_t steps[SS_STEPS]; /* steps.h */

	/* Blocks with room: address, and in the upper 16 bits the used length / 8. */
	_Atomic uint64_t partial[SS_TRACE_PARTIAL];
	_Atomic uint32_t partial_number[SS_TRACE_PARTIAL];
	_Atomic uint64_t partial_last[SS_TRACE_PARTIAL]; /* ns; time of its last record */

	struct ss_python python; /* python.h */
	/* Hash of each function of Python that the file has; its number is its index + 1. */
	_Atomic uint64_t python_codes[SS_TRACE_PYTHON_CODES];

	_Atomic bool modules_busy; /* a thread is looking for new modules. The rest is its own: */
	char path[SS_TRACE_TEXT_MAX + 1]; /* here, because the stack of a thread may be small */
	uint64_t modules_added, modules_removed; /* counters of the dynamic linker, last time */
	_Atomic uint32_t modules_epoch;          /* raised when a module was unloaded */
	uint32_t module_count;
	struct ss_trace_module_range module[SS_TRACE_MODULES];
	uint64_t own_start, own_end; /* the library that this code is in; 0: it is in the program */
};

/* The block and position at which the calling thread writes. */
struct ss_trace_thread_state {
	uint64_t generation; /* generation of the recording that the rest belongs to */
	char *block;         /* NULL: none yet */
	uint32_t number;     /* of the block */
	uint32_t used;       /* used bytes of the block */
	uint64_t base;       /* ns; base time of dt */
	uint64_t last;       /* ns; time of the last record */
	bool busy;           /* in an event: an event from a signal handler is dropped */
	bool named;          /* the current block has a THREAD record of this thread */
	uint32_t stacks;     /* number of stacks that the thread has recorded */
	struct ss_stack_bounds bounds;
};

struct ss_trace_context {
	struct ss_trace_live *live;
	struct ss_trace_thread_state *thread;
	uint64_t now; /* ns, CLOCK_BOOTTIME */
};

/* Every event is between these two. The event's time is `when`, or now if `when` is 0, but never
 * before the thread's last record. False: the event is not recorded, and leave must not be
 * called. */
bool ss_trace_enter(struct ss_trace_context *c, uint64_t when);
void ss_trace_leave(struct ss_trace_context *c);

/* Room for a record of `size` bytes in the block of the calling thread, all zero. NULL: the
 * recording ended. The record appears in the file with ss_trace_commit(); no other record may
 * be begun before. */
void *ss_trace_begin(struct ss_trace_context *c, uint32_t size);
void ss_trace_commit(struct ss_trace_context *c, void *record, enum ss_trace_kind kind,
		     uint32_t size, uint32_t pool);

/* Number of a pool or stream; writes its definition the first time. 0: no number is left. */
uint32_t ss_trace_pool_id(struct ss_trace_context *c, const void *pool, int device);
uint32_t ss_trace_stream_id(struct ss_trace_context *c, const void *stream, int device);
/* Gives a new number to a pool, or keeps the number of a stream, and writes the definition. */
void ss_trace_define_pool(struct ss_trace_context *c, const void *pool, int device,
			  const char *name);
void ss_trace_define_stream(struct ss_trace_context *c, const void *stream, int device,
			    enum ss_trace_stream_kind kind);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Frames of Python programs. CPython 3.11 to 3.13 keeps a chain of frames for each thread, which
 * this file reads from the thread's own state. The program has to enable nothing, no code of Python
 * that could change anything is called, and no object is created. Other versions are not read.
 *
 * The chain is first read through the kernel, which refuses a bad address. Later events of the
 * process read the chain directly, but only if the whole chain was as expected. Takes no lock and
 * no memory.
 */
#ifndef SS_TRACE_PYTHON_H
#define SS_TRACE_PYTHON_H

#include "trace/record.h"

/* Most frames of one stack; the outer frames of a longer stack are left out */
#define SS_PYTHON_FRAMES 96u

struct ss_python_frame {
	uintptr_t code;        /* the code object */
	uintptr_t instruction; /* the instruction in that code */
	/* The next outer frame belongs to another call of the interpreter's loop */
	bool entry;
};

/* Looks for an interpreter among the modules of the process, unless one has been found. Takes the
 * dynamic linker's lock; only one thread at a time may call this function. */
void ss_python_look(struct ss_python *p);
/* Does this process have an interpreter whose frames can be read? */
static inline bool ss_python_runs(struct ss_python *p)
{
	uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);

	return state == SS_PYTHON_FOUND || state == SS_PYTHON_PROVEN;
}
/* Adds the frames of the calling thread to the hash of its stack. Cheap: about ten loads per
 * frame. */
uint64_t ss_python_hash(struct ss_python *p, uint64_t hash);
/* The frames of the calling thread, innermost first. Returns their number; *cut: there are more. */
uint32_t ss_python_frames(struct ss_python *p, struct ss_python_frame *frames, bool *cut);
/* Merges these frames into a stack of return addresses, at the addresses of the interpreter's loop
 * that runs them, and leaves out the interpreter. `each` gets an address, or a frame. Frames of a
 * loop that the unwinder did not find become the outermost. */
void ss_python_merge(const struct ss_python *p, const uintptr_t *ip, uint32_t count,
		     const struct ss_python_frame *frames, uint32_t frame_count,
		     void (*each)(uintptr_t ip, const struct ss_python_frame *frame, void *arg),
		     void *arg);
/* Name and file of a frame's function, as UTF-8 that ends with 0, and its line. Reads through the
 * kernel, as the next function does. */
#define SS_PYTHON_TEXT 512u
struct ss_python_place {
	char function[SS_PYTHON_TEXT], file[2 * SS_PYTHON_TEXT];
	uint32_t line;
};
void ss_python_place(const struct ss_python *p, const struct ss_python_frame *frame,
		     struct ss_python_place *out);
/* The value of a frame in the record of a stack; see SS_TRACE_PYTHON_FRAME. Writes the definition
 * of the frame's function if the function is new. Reads through the kernel, so the call takes
 * microseconds. */
uint64_t ss_python_frame_value(struct ss_trace_context *c, const struct ss_python_frame *frame);

/* Copies memory of this process; false if no memory is mapped there. */
bool ss_python_peek(uintptr_t from, void *to, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Frames of Python programs. CPython 3.11 to 3.13 keeps a chain of frames for each thread, which is
 * read here from the thread's own state: nothing has to be switched on in the program, no code of
 * Python that could change anything is called, and no object is created. Of other versions nothing
 * is read.
 *
 * The chain is first read through the kernel, which refuses a bad address. Only if all of it is as
 * expected, later events of the process read it directly. Takes no lock and no memory.
 */
#ifndef SS_TRACE_PYTHON_H
#define SS_TRACE_PYTHON_H

#include "trace/record.h"

#define SS_PYTHON_FRAMES 96u /* of one stack; the outer ones of a longer one are left out */

struct ss_python_frame {
	uintptr_t code;        /* the code object */
	uintptr_t instruction; /* in it */
	/* The next outer frame belongs to another call of the interpreter's loop */
	bool entry;
};

/* Looks for an interpreter among the modules of the process, unless it has been found. Takes the
 * dynamic linker's lock, and only one thread at a time may be here. */
void ss_python_look(struct ss_python *p);
/* Has this process an interpreter whose frames can be read? */
static inline bool ss_python_runs(struct ss_python *p)
{
	uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);

	return state == SS_PYTHON_FOUND || state == SS_PYTHON_PROVEN;
}
/* Adds the frames of the calling thread to the hash of its stack. Cheap: about ten loads per
 * frame. */
uint64_t ss_python_hash(struct ss_python *p, uint64_t hash);
/* The frames of the calling thread, innermost first. Returns how many; *cut: there are more. */
uint32_t ss_python_frames(struct ss_python *p, struct ss_python_frame *frames, bool *cut);
/* Puts these frames where the interpreter's loop runs them in a stack of return addresses, and
 * leaves out the interpreter. `each` gets an address, or a frame. Those of a loop that the unwinder
 * did not find are the outermost. */
void ss_python_merge(const struct ss_python *p, const uintptr_t *ip, uint32_t count,
		     const struct ss_python_frame *frames, uint32_t frame_count,
		     void (*each)(uintptr_t ip, const struct ss_python_frame *frame, void *arg),
		     void *arg);
/* Name and file of a frame's function, as UTF-8 that 0 ends, and its line. Reads through the
 * kernel, as the next one does. */
#define SS_PYTHON_TEXT 512u
struct ss_python_place {
	char function[SS_PYTHON_TEXT], file[2 * SS_PYTHON_TEXT];
	uint32_t line;
};
void ss_python_place(const struct ss_python *p, const struct ss_python_frame *frame,
		     struct ss_python_place *out);
/* What stands for a frame in the record of a stack; see SS_TRACE_PYTHON_FRAME. Writes the
 * definition of its function if it is new. Reads through the kernel, so it takes microseconds. */
uint64_t ss_python_frame_value(struct ss_trace_context *c, const struct ss_python_frame *frame);

/* Copies memory of this process; false where there is none. */
bool ss_python_peek(uintptr_t from, void *to, size_t size);

#endif

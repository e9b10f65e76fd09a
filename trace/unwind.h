/* SPDX-License-Identifier: MIT */
/* Walks a call stack with the unwind tables, or without tables with frame pointers. */
#ifndef SS_TRACE_UNWIND_H
#define SS_TRACE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

struct ss_frame {
	uintptr_t ip; /* return address */
	uintptr_t sp; /* stack pointer right after the return to `ip`; 0: not known */
};

/* Looks for an unwinder (libgcc_s), once. Without this call, frame pointers are followed. Takes
 * the dynamic linker's lock. */
void ss_unwind_init(void);
/* Calls `each` for the frames of the calling thread from `first` on, innermost first, until it
 * returns false. `frame_pointer` is the frame pointer of the function that returns to first->ip. */
void ss_unwind(const struct ss_frame *first, uintptr_t frame_pointer,
	       bool (*each)(struct ss_frame frame, void *arg), void *arg);

#endif

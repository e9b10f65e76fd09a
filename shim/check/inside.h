/* SPDX-License-Identifier: MIT */
/* Functions that the files of shim/check share. No other folder includes this file. */
#ifndef SS_SHIM_CHECK_INSIDE_H
#define SS_SHIM_CHECK_INSIDE_H

#include <stdio.h>

#include "core/check/check.h"
#include "shim/process/service.h"
#include "trace/steps.h"

extern struct ss_check *ss_check_state SS_HIDDEN;

#define SS_CHECK_STACKS 65536u /* the largest number of call stacks */
/* Number of the caller's call stack without the frames of this library; 0: unknown, or too many.
 * `bounds` belongs to the thread, and starts as zeros. */
uint32_t ss_check_stack(struct ss_stack_bounds *bounds);
/* A return address; or, if it is 0, a frame of Python, which the other fields describe. */
struct ss_check_frame {
	uintptr_t ip;
	char *function, *file; /* NULL: host memory was out */
	uint32_t line;
};
/* The frames of a call stack, innermost first. Returns their number. */
uint32_t ss_check_stack_frames(uint32_t id, const struct ss_check_frame **frames);

/* Opens the file of SOMASHIM_CHECK_FILE. */
void ss_check_report_open(void);
/* Writes one finding, as text or as a line of JSON. */
void ss_check_report_finding(const struct ss_finding *f, void *unused);
/* The end of the report. */
void ss_check_report_end(bool leaks);

/* Is there certainly no memory at the address, neither of the host nor of the device? */
bool ss_check_nobody_has(const void *ptr);
/* Tells it of a new block. */
void ss_check_memory_seen(const void *block);

/* Faults of the device are reported from now on, if the runtime allows that. */
void ss_fault_watch(void);

struct ss_check_skipped {
	uint64_t kernels; /* launches with unknown arguments */
	uint64_t graphs;  /* launches of graphs with nodes that cannot be read */
	uint64_t bytes;   /* blocks whose padding, or bytes after the free, were not compared */
};
void ss_check_skips(struct ss_check_skipped *out);

#endif

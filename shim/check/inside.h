/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef SS_SHIM_CHECK_INSIDE_H
#define SS_SHIM_CHECK_INSIDE_H

#include <stdio.h>

#include "core/check/check.h"
#include "shim/process/service.h"
#include "trace/steps.h"

extern struct ss_check *ss_check_state SS_HIDDEN;

#define SS_CHECK_STACKS 65536u /* the most that there are */
/* Number of the caller's call stack without the frames of this library; 0: unknown, or too many.
 * `bounds` are the thread's, and begin with zeros. */
uint32_t ss_check_stack(struct ss_stack_bounds *bounds);
/* A return address; or, if it is 0, a frame of Python, of which the rest tells. */
struct ss_check_frame {
	uintptr_t ip;
	char *function, *file; /* NULL: host memory was out */
	uint32_t line;
};
/* Its frames, innermost first. Returns how many there are. */
uint32_t ss_check_stack_frames(uint32_t id, const struct ss_check_frame **frames);

/* Opens the file of SOMASHIM_CHECK_FILE. */
void ss_check_report_open(void);
/* Writes one finding, as text or as a line of JSON. */
void ss_check_report_finding(const struct ss_finding *f, void *unused);
/* The end of the report. */
void ss_check_report_end(bool leaks);

/* The device's faults are told from now on, if the runtime lets us. */
void ss_fault_watch(void);

struct ss_check_skipped {
	uint64_t kernels; /* launches of which the arguments are not known */
	uint64_t graphs;  /* launches of graphs with nodes that cannot be looked into */
	uint64_t bytes;   /* blocks whose padding, or bytes after the free, were not compared */
};
void ss_check_skips(struct ss_check_skipped *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Call stacks: finds the return addresses, and gives each different stack a number. */
#ifndef SS_TRACE_STACK_H
#define SS_TRACE_STACK_H

#include "trace/record.h"

/* Number of the caller's stack, without the frames of the library that contains this code. Writes
 * the stack if it is new. 0: unknown, or the table of stacks is full. */
uint32_t ss_trace_stack_id(struct ss_trace_context *c);

#endif

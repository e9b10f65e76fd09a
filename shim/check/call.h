/* SPDX-License-Identifier: MIT */
/* The call of the application that a thread is in. */
#ifndef SS_SHIM_CHECK_CALL_H
#define SS_SHIM_CHECK_CALL_H

#include "shim/check/inside.h"
#include "shim/check/operand.h"

struct ss_call {
	bool shared; /* belongs to all threads for which there is no host memory */
	const char *name;
	unsigned kind; /* ss_call_kind() */
	uint32_t stack;
	bool has_stack;
	struct ss_timeline *stream; /* stream of its last access, which is known */
	void *freed;                /* a block that it is freeing */
	void *gone;                 /* memory of the host that it is freeing */
	/* The call uses memory that is neither ours nor known to be pinned */
	bool pageable;
	bool told;                    /* the host may see the end of its command, or waits for it */
	bool to_host;                 /* the call copies to the host */
	const void *host_to;          /* destination of that copy */
	bool failed;                  /* the failure has been reported */
	struct ss_timeline *captured; /* the call became a node of a graph on this stream */
	uint64_t since;
	/* Origin of the bytes that it writes, as of an operand; 0: unknown */
	uint64_t origin;
	/* Operands of that node, of a node that the call makes, or of a kernel */
	struct ss_operands uses;
	struct ss_stack_bounds bounds; /* belongs to the thread, not to the call */
};

/* Once, before the first call. False: out of host memory. */
bool ss_call_init(void);
struct ss_call *ss_call_of_thread(void);
/* The name of the call, and the number of its call stack. */
const char *ss_call_name(void);
uint32_t ss_call_stack(void);

#endif

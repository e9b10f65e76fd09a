/* SPDX-License-Identifier: MIT */
/* The call of the application that a thread is in. */
#ifndef SS_SHIM_CHECK_CALL_H
#define SS_SHIM_CHECK_CALL_H

#include "shim/check/inside.h"
#include "shim/check/operand.h"

struct ss_call {
	bool shared; /* of all threads for which there is no host memory */
	const char *name;
	unsigned kind; /* ss_call_kind() */
	uint32_t stack;
	bool has_stack;
	struct ss_timeline *stream; /* of its last access, which is known */
	void *freed;                /* a block that it is freeing */
	void *gone;                 /* memory of the host that it is freeing */
	bool pageable;              /* it uses memory that is neither ours nor known to be pinned */
	bool told;                  /* the host may see that it has ended, or waits for it */
	bool to_host;               /* it copies to the host */
	const void *host_to;        /* where to */
	bool failed;                /* which has been told */
	struct ss_timeline *captured; /* it became a node of a graph on this stream */
	uint64_t since;
	uint64_t origin;         /* of what it writes, as of an operand; 0: it is not known */
	struct ss_operands uses; /* what that node uses, or one that the call makes, or a kernel */
	struct ss_stack_bounds bounds; /* of the thread, not of the call */
};

/* Once, before the first call. False: out of host memory. */
bool ss_call_init(void);
struct ss_call *ss_call_of_thread(void);
/* The name of the call, and the number of its call stack. */
const char *ss_call_name(void);
uint32_t ss_call_stack(void);

#endif

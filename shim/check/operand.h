/* SPDX-License-Identifier: MIT */
/* What one command uses. */
#ifndef SS_SHIM_CHECK_OPERAND_H
#define SS_SHIM_CHECK_OPERAND_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/check/checker.h"

enum ss_operand_kind {
	SS_OPERAND_RANGE,   /* bytes of a copy or a memset */
	SS_OPERAND_POINTER, /* an argument of a kernel */
	SS_OPERAND_WORD,    /* eight bytes of an argument, which need be no pointer */
};

struct ss_operand {
	const void *ptr;
	size_t size;
	enum ss_operand_kind kind;
	enum ss_access access;
	bool ours;             /* it lies in memory of the pools, as ss_operands_talk() has found */
	const char *kernel;    /* of which it is an argument */
	uint32_t argument, at; /* which one, and where in it */
	bool sole;             /* this argument is what the kernel is for */
	bool in_rows;
	struct ss_check_rows rows; /* if `in_rows`: the bytes of the range that are used */
	uint64_t origin;           /* of what is written there; 0: it is not known */
};

/* All of it 0: none. */
struct ss_operands {
	uint32_t count, room;
	bool lost; /* some are not known */
	struct ss_operand *at;
};

/* Does the address lie in memory that the pools hold, or held for a block that was guarded? */
bool ss_check_ours(const void *ptr);
/* The origin of elements of so many bytes, from dst on, that are set to a value. */
uint64_t ss_check_value_of(const void *dst, uint64_t value, unsigned element);
/* Those of the call that the thread is in. NULL: host memory was out. */
struct ss_operands *ss_operands_of_call(void);
void ss_operand_add(struct ss_operands *o, struct ss_operand operand);
/* A list of their own for `to`, in place of what it has. */
void ss_operands_copy(struct ss_operands *to, const struct ss_operands *from);
void ss_operands_drop(struct ss_operands *o);
/* Those of a launch, by the kernel's metadata; `lost` if that is not known. */
void ss_operands_of_kernel(struct ss_operands *o, const void *function, bool host,
			   void *const *args, void *const *extra);
/* May a kernel talk to the host through one of them? */
bool ss_operands_talk(struct ss_operands *o);
/* They are used by a command of tl, which is about to be enqueued. Behind ss_operands_talk(). */
void ss_operands_use(struct ss_timeline *tl, const struct ss_operands *o);
/* One of them is a command's on tl. False: it leaves its block. */
bool ss_operand_use(struct ss_timeline *tl, const struct ss_operand *o);

/* A node of `graph` was made, or (graph NULL) one of any graph was changed. */
void ss_check_node_is(hipGraph_t graph, hipGraphNode_t node, const struct ss_operands *uses);
/* The same of one of an executable graph. */
void ss_check_exec_node_is(hipGraphExec_t exec, hipGraphNode_t node,
			   const struct ss_operands *uses);
/* A command was captured on the stream. */
void ss_check_captured(hipStream_t stream, const struct ss_operands *uses);

#endif

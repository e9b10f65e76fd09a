/* SPDX-License-Identifier: MIT */
/* The operands of one command. */
#ifndef SS_SHIM_CHECK_OPERAND_H
#define SS_SHIM_CHECK_OPERAND_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/check/checker.h"

enum ss_operand_kind {
	SS_OPERAND_RANGE,   /* bytes of a copy or a memset */
	SS_OPERAND_POINTER, /* an argument of a kernel */
	SS_OPERAND_WORD,    /* eight bytes of an argument, which need not be a pointer */
};

struct ss_operand {
	const void *ptr;
	size_t size;
	enum ss_operand_kind kind;
	enum ss_access access;
	/* The address lies in memory of the pools; set by ss_operands_talk() */
	bool ours;
	const char *kernel;    /* the kernel of this argument */
	uint32_t argument, at; /* number of the argument, and offset in it */
	bool sole;             /* the kernel surely uses this argument */
	bool in_rows;
	struct ss_check_rows rows; /* if `in_rows`: the bytes of the range that are used */
	uint64_t origin;           /* origin of the written bytes; 0: unknown */
};

/* All of it 0: none. */
struct ss_operands {
	uint32_t count, room;
	bool lost; /* some operands are unknown */
	struct ss_operand *at;
};

/* Does the address lie in memory that the pools hold, or held for a block that was guarded? */
bool ss_check_ours(const void *ptr);
/* The origin of elements of `element` bytes, from dst on, that are set to a value. */
uint64_t ss_check_value_of(const void *dst, uint64_t value, unsigned element);
/* The operands of the thread's current call. NULL: host memory was out. */
struct ss_operands *ss_operands_of_call(void);
void ss_operand_add(struct ss_operands *o, struct ss_operand operand);
/* Gives `to` a copy of the list, in place of its old list. */
void ss_operands_copy(struct ss_operands *to, const struct ss_operands *from);
void ss_operands_drop(struct ss_operands *o);
/* The operands of a launch, from the kernel's metadata; `lost` if the metadata is unknown. */
void ss_operands_of_kernel(struct ss_operands *o, const void *function, bool host,
			   void *const *args, void *const *extra);
/* May a kernel talk to the host through one of the operands? */
bool ss_operands_talk(struct ss_operands *o);
/* A command that is about to be enqueued on tl uses the operands. Call it after
 * ss_operands_talk(). */
void ss_operands_use(struct ss_timeline *tl, const struct ss_operands *o);
/* A command on tl uses this operand. False: the operand leaves its block. */
bool ss_operand_use(struct ss_timeline *tl, const struct ss_operand *o);

/* A node of `graph` was made, or (graph NULL) one of any graph was changed. */
void ss_check_node_is(hipGraph_t graph, hipGraphNode_t node, const struct ss_operands *uses);
/* The same for a node of an executable graph. */
void ss_check_exec_node_is(hipGraphExec_t exec, hipGraphNode_t node,
			   const struct ss_operands *uses);
/* A command was captured on the stream. */
void ss_check_captured(hipStream_t stream, const struct ss_operands *uses);

#endif

/* SPDX-License-Identifier: MIT */
/* The call stacks of a memory snapshot: "frames" become records of functions and of stacks. */
#ifndef SS_SNAPSHOT_STACKS_H
#define SS_SNAPSHOT_STACKS_H

#include "cli/readers/pickle.h"
#include "cli/snapshot/builder.h"

struct ss_snapshot_stacks {
	struct ss_builder_chain *to; /* of the definitions */
	struct ss_snapshot_code *code;
	struct ss_snapshot_frame *frame;
	struct ss_snapshot_stack *stack;
	struct ss_snapshot_list *list;
	uint32_t codes, stack_count;
	bool failed; /* out of memory */
};

/* The number of the stack; 0: there is none, or no number is left. */
uint32_t ss_snapshot_stack(struct ss_snapshot_stacks *s, const struct ss_pickle *frames);
void ss_snapshot_stacks_finish(struct ss_snapshot_stacks *s);

#endif

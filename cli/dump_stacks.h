/* SPDX-License-Identifier: MIT */
/* Call stacks of the blocks of a running process, from the recording that it is writing. */
#ifndef SS_CLI_DUMP_STACKS_H
#define SS_CLI_DUMP_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ss_dump_stacks;

/* The path of the file that process `pid` records to. False: it does not, or it cannot be seen. */
bool ss_dump_find_trace(uint32_t pid, char *out, size_t size);

/* Reads the recording of process `pid`. NULL: it writes none that can be read here. */
struct ss_dump_stacks *ss_dump_stacks_open(uint32_t pid);
/* NULL is allowed. */
void ss_dump_stacks_close(struct ss_dump_stacks *s);
/* Prints where the block of `size` bytes at `address` was allocated, one line per function, if the
 * recording has it. */
void ss_dump_stacks_print(struct ss_dump_stacks *s, uint64_t address, uint64_t size, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* The tools with which a workload writes its log: a clock, random numbers, and blocks. */
#ifndef SS_WRITERS_GENERATOR_H
#define SS_WRITERS_GENERATOR_H

#include <stdint.h>
#include <stdio.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

struct ss_gen {
	FILE *out;
	uint64_t random; /* state of the random numbers; the seed at the start */
	uint64_t time_us;
	uint64_t next_pointer;
	double scale;    /* factor on the size of every block */
	unsigned rounds; /* length: training steps, requests or calls */
};

struct ss_gen_block {
	uint64_t pointer, size; /* pointer 0: not allocated */
};

uint64_t ss_gen_random(struct ss_gen *g, uint64_t below); /* 0 .. below - 1 */
double ss_gen_exponential(struct ss_gen *g, double mean);
uint64_t ss_gen_log_uniform(struct ss_gen *g, uint64_t from, uint64_t to);
/* Lets `us` microseconds pass. */
void ss_gen_advance(struct ss_gen *g, double us);
/* `thread` and `stream` are written to the log; every pointer is used once. */
struct ss_gen_block ss_gen_alloc(struct ss_gen *g, unsigned thread, uint64_t stream, uint64_t size);
/* Does nothing for a block that is not allocated. */
void ss_gen_free(struct ss_gen *g, unsigned thread, uint64_t stream, struct ss_gen_block *b);

#endif

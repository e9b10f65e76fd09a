/* SPDX-License-Identifier: MIT */
/* What a generator of logs draws on: a clock, a dice, and blocks that it owns. */
#ifndef SS_CLI_GENERATE_H
#define SS_CLI_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

struct ss_gen {
	FILE *out;
	uint64_t random; /* state */
	uint64_t time_us;
	uint64_t next_pointer;
	double scale;    /* of sizes */
	unsigned rounds; /* training steps, requests, calls */
};

struct ss_gen_block {
	uint64_t pointer, size;
};

uint64_t ss_gen_random(struct ss_gen *g, uint64_t below); /* 0 .. below - 1 */
double ss_gen_exponential(struct ss_gen *g, double mean);
uint64_t ss_gen_log_uniform(struct ss_gen *g, uint64_t from, uint64_t to);
void ss_gen_pass(struct ss_gen *g, double us);
struct ss_gen_block ss_gen_alloc(struct ss_gen *g, unsigned thread, uint64_t stream,
				 uint64_t size);
void ss_gen_free(struct ss_gen *g, unsigned thread, uint64_t stream, struct ss_gen_block *b);

struct ss_gen_kind {
	const char *name;
	void (*run)(struct ss_gen *g);
	unsigned rounds; /* unless told */
	const char *help;
};

extern const struct ss_gen_kind ss_gen_kinds[];
extern const size_t ss_gen_kind_count;

#endif

/* SPDX-License-Identifier: MIT */
/* Writes the allocations and frees of a workload; the same seed gives the same log. */
#include <math.h>

#include "cli/writers/generator.h"
#include "cli/writers/rmm_csv.h"

/* splitmix64 */
uint64_t ss_gen_random(struct ss_gen *g, uint64_t below)
{
	uint64_t x = g->random += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % (below ? below : 1);
}

static double uniform(struct ss_gen *g)
{
	return ((double)ss_gen_random(g, 1ull << 53) + 0.5) / (double)(1ull << 53);
}

double ss_gen_exponential(struct ss_gen *g, double mean)
{
	return -mean * log(uniform(g));
}

uint64_t ss_gen_log_uniform(struct ss_gen *g, uint64_t from, uint64_t to)
{
	return (uint64_t)((double)from * pow((double)to / (double)from, uniform(g)));
}

void ss_gen_advance(struct ss_gen *g, double us)
{
	g->time_us += (uint64_t)us;
}

static void write_row(struct ss_gen *g, unsigned thread, uint64_t stream, const char *action,
		      const struct ss_gen_block *b)
{
	g->time_us += 1 + ss_gen_random(g, 4);
	ss_rmm_write_row(g->out, thread, g->time_us, action, b->pointer, b->size, stream);
}

struct ss_gen_block ss_gen_alloc(struct ss_gen *g, unsigned thread, uint64_t stream, uint64_t size)
{
	size = (uint64_t)((double)size * g->scale);
	struct ss_gen_block b = {g->next_pointer, size ? size : 1};
	g->next_pointer += 512;
	write_row(g, thread, stream, "allocate", &b);
	return b;
}

void ss_gen_free(struct ss_gen *g, unsigned thread, uint64_t stream, struct ss_gen_block *b)
{
	if (b->pointer) {
		write_row(g, thread, stream, "free", b);
		b->pointer = 0;
	}
}

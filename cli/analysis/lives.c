/* SPDX-License-Identifier: MIT */
/* The lives of single blocks. If a call site has many blocks, those with the largest bytes x time
 * are kept. */
#include <stdlib.h>

#include "cli/analysis/pass.h"
#include "trace/grow.h"

#define FEWEST 2u  /* blocks of each call site */
#define MOST 200u

static double weight(const struct ss_analysis *a, const struct ss_life *l)
{
	uint64_t end = l->end_ns < a->last_ns ? l->end_ns : a->last_ns;

	return (double)l->bytes * (double)(end > l->begin_ns ? end - l->begin_ns : 0);
}

/* The lightest of a full list is at its top; each is no lighter than the one above it. */
static void sink(const struct ss_analysis *a, struct ss_lives *s, size_t at)
{
	for (size_t below; (below = 2 * at + 1) < s->count; at = below) {
		struct ss_life moved = s->life[at];
		if (below + 1 < s->count &&
		    weight(a, &s->life[below + 1]) < weight(a, &s->life[below]))
			below++;
		if (weight(a, &moved) <= weight(a, &s->life[below]))
			return;
		s->life[at] = s->life[below];
		s->life[below] = moved;
	}
}

/* The number of blocks in all if each site keeps at most `most`. */
static size_t kept(const struct ss_analysis *a, size_t most)
{
	size_t sum = 0;

	for (size_t i = 0; i < a->charted[SS_BY_SITE].count; i++) {
		uint64_t allocs = a->sites.site[a->charted[SS_BY_SITE].site[i]].allocs;
		sum += allocs < most ? allocs : most;
	}
	return sum;
}

size_t ss_lives_of_one(const struct ss_pass *p)
{
	size_t most = MOST;

	while (most > FEWEST && kept(p->a, most) > p->config->lives)
		most -= (most + 3) / 4;
	return most > FEWEST ? most : FEWEST;
}

bool ss_life_keep(struct ss_pass *p, size_t charted, const struct ss_range *b, uint64_t end_ns)
{
	struct ss_analysis *a = p->a;
	struct ss_lives *s = &a->lives[charted];
	struct ss_life life = {.begin_ns = b->begin_ns, .end_ns = end_ns, .bytes = b->size};
	size_t most = p->lives;

	s->all++;
	if (s->count == most && weight(a, &life) <= weight(a, &s->life[0]))
		return true;
	life.stream = ss_sites_group(&a->group[SS_BY_STREAM], b->site, b->first_stream, b->tid);
	life.thread = ss_sites_group(&a->group[SS_BY_THREAD], b->site, b->first_stream, b->tid);
	if (s->count == most) {
		s->life[0] = life;
		sink(a, s, 0);
		return true;
	}
	void *more = ss_grow(s->life, s->count, sizeof(*s->life));
	if (!more)
		return false;
	s->life = more;
	s->life[s->count++] = life;
	for (size_t at = s->count == most ? most / 2 : 0; at-- > 0;)
		sink(a, s, at);
	return true;
}

static int earlier_first(const void *a, const void *b)
{
	const struct ss_life *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

void ss_lives_sort(struct ss_analysis *a)
{
	for (size_t i = 0; i < a->charted[SS_BY_SITE].count; i++) {
		if (a->lives[i].count) {
			qsort(a->lives[i].life, a->lives[i].count, sizeof(*a->lives[i].life),
			      earlier_first);
		}
	}
}

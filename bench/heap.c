/* SPDX-License-Identifier: MIT */
/* The index of free ranges with a million ranges: nanoseconds per search, and per search in which
 * the range is taken out and put back. */
#include <stdlib.h>

#include "bench/bench.h"
#include "core/range/free_index.h"

#define RANGES 1000000
#define SEARCHES 20000
#define ROUNDS 5

static uint64_t seed = 1;

static uint64_t size_at_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((seed >> 33) % 65536 + 1) * SS_GRAIN;
}

int main(void)
{
	struct ss_block *b = aligned_alloc(sizeof(*b), RANGES * sizeof(*b));
	struct ss_free_index *h = calloc(1, sizeof(*h));
	struct ss_block **lists = calloc(SS_CLASSES, sizeof(*lists));
	double find[ROUNDS], take[ROUNDS];
	uint64_t addr = SS_FRAME, sum = 0;

	if (!b || !h || !lists)
		die("out of memory");
	ss_index_init(h, lists);
	for (int i = 0; i < RANGES; i++) {
		b[i].addr = addr;
		b[i].size = size_at_random();
		addr += b[i].size + SS_GRAIN;
		ss_index_insert(h, &b[i]);
	}
	for (int r = 0; r < ROUNDS; r++) {
		double start = cpu_ns();

		for (int i = 0; i < SEARCHES; i++)
			sum += ss_index_best(h, size_at_random() / 2 + SS_GRAIN, SS_GRAIN)->addr;
		find[r] = (cpu_ns() - start) / SEARCHES;
		start = cpu_ns();
		for (int i = 0; i < SEARCHES; i++) {
			struct ss_block *best = ss_index_best(h, size_at_random() / 2 + SS_GRAIN,
							      SS_GRAIN);

			ss_index_remove(h, best);
			ss_index_insert(h, best);
		}
		take[r] = (cpu_ns() - start) / SEARCHES;
	}
	fprintf(stderr, "%lu\n", (unsigned long)sum);
	printf("find %.0f\ntake %.0f\n", median(find, ROUNDS), median(take, ROUNDS));
	return 0;
}

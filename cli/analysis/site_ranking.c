/* SPDX-License-Identifier: MIT */
/* Lists of call sites in the order of one figure. */
#include <stdlib.h>

#include "cli/analysis/analysis.h"

struct entry {
	uint64_t value;
	uint32_t site;
	bool first; /* it comes before those with a larger value */
};

uint64_t ss_ranking_value(enum ss_ranking_kind kind, const struct ss_site *s)
{
	switch (kind) {
	case SS_RANKING_PEAK: return s->peak;
	case SS_RANKING_ALLOCS: return s->allocs;
	case SS_RANKING_REPEATS: /* few repeats, or less than half of all, are no pattern */
		return s->repeats >= SS_REPEATS_MIN && s->repeats >= s->allocs / 2 ? s->repeats : 0;
	case SS_RANKING_LEAKS: return s->suppressed ? 0 : s->live;
	case SS_RANKING_WAITS: return s->wait_ns;
	default: return 0;
	}
}

static int largest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->first != y->first)
		return y->first - x->first;
	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->site > y->site) - (x->site < y->site);
}

static bool rank(const struct ss_sites *s, enum ss_ranking_kind kind, size_t most,
		 struct ss_ranking *r)
{
	struct entry *entry = calloc(s->count + 1, sizeof(*entry));

	for (size_t i = 0; entry && i < s->count; i++) {
		uint64_t value = ss_ranking_value(kind, &s->site[i]);
		if (value) {
			entry[r->all++] = (struct entry){value, (uint32_t)i,
							 kind == SS_RANKING_LEAKS &&
								 ss_site_grows(&s->site[i])};
		}
	}
	if (entry)
		qsort(entry, r->all, sizeof(*entry), largest_first);
	r->count = r->all < most ? r->all : most;
	r->site = entry ? calloc(r->count + 1, sizeof(*r->site)) : NULL;
	for (size_t i = 0; r->site && i < r->count; i++)
		r->site[i] = entry[i].site;
	free(entry);
	return r->site != NULL;
}

bool ss_rank_sites(struct ss_analysis *a)
{
	for (int kind = 0; kind < SS_RANKINGS; kind++)
		if (!rank(&a->sites, kind, SS_RANKED, &a->ranking[kind]))
			return false;
	return true;
}

bool ss_rank_peaks(const struct ss_sites *s, size_t most, struct ss_ranking *out)
{
	return rank(s, SS_RANKING_PEAK, most, out);
}

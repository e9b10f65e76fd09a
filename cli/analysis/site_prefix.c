/* SPDX-License-Identifier: MIT */
/* Finds the number of inner frames that tell each call site from all others. The sites are sorted
 * by their frames, so the neighbours of a site share most frames with it. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/sites.h"

/* The number of inner frames that both sites have in common. */
static uint32_t common(const struct ss_site *x, const struct ss_site *y)
{
	uint32_t n = x->frames < y->frames ? x->frames : y->frames, i = 0;

	while (i < n && x->frame[i] == y->frame[i])
		i++;
	return i;
}

static int compare_lines(const struct ss_frame *x, const struct ss_frame *y)
{
	int order = strcmp(x->source, y->source);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Instances of one template have the same source line, so they become neighbours. */
static int by_frames(const void *a, const void *b, void *sites)
{
	const struct ss_sites *s = sites;
	const struct ss_site *x = &s->site[*(const uint32_t *)a],
			     *y = &s->site[*(const uint32_t *)b];
	uint32_t i = common(x, y);

	if (i == x->frames || i == y->frames)
		return (x->frames > y->frames) - (x->frames < y->frames);
	int order = compare_lines(&s->frame[x->frame[i]], &s->frame[y->frame[i]]);
	return order ? order : x->frame[i] < y->frame[i] ? -1 : 1;
}

/* `other` becomes the site beside x if it shares more frames with x than the site before, or as
 * many, and the next frames of both are in the same line. */
static void set_beside(const struct ss_sites *s, struct ss_site *x, uint32_t shared, uint32_t other)
{
	const struct ss_frame *mine = ss_site_frame(s, x, shared);
	const struct ss_frame *its = ss_site_frame(s, &s->site[other], shared);

	if (shared > x->shared ||
	    (shared == x->shared && mine && its && compare_lines(mine, its) == 0)) {
		x->shared = shared;
		x->beside = other;
	}
}

bool ss_sites_tell_apart(struct ss_sites *s)
{
	uint32_t *order = calloc(s->count + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < s->count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, s->count, sizeof(*order), by_frames, s);
	for (size_t i = 1; i < s->count; i++) {
		struct ss_site *x = &s->site[order[i - 1]], *y = &s->site[order[i]];
		uint32_t shared = common(x, y);

		set_beside(s, x, shared, order[i]);
		set_beside(s, y, shared, order[i - 1]);
	}
	free(order);
	return true;
}

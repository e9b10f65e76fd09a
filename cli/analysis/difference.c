/* SPDX-License-Identifier: MIT */
/* Compares two recordings: finds the call sites whose figures grew or shrank. */
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1

#include "cli/analysis/difference.h"
#include "core/base/hash_or_end.h"

struct entry {
	UT_hash_handle hh;
	struct ss_difference_site of;
	char key[];
};

static struct entry *entry_get(struct entry **table, const char *key)
{
	size_t length = strlen(key);
	struct entry *e;

	HASH_FIND(hh, *table, key, length, e);
	if (!e && (e = calloc(1, sizeof(*e) + length + 1))) {
		memcpy(e->key, key, length);
		HASH_ADD_KEYPTR(hh, *table, e->key, length, e);
		if (!e->hh.tbl) {
			free(e);
			return NULL;
		}
	}
	return e;
}

static void merge(struct ss_difference_site *to, const struct ss_difference_site *from)
{
	for (int side = 0; side < 2; side++) {
		for (int f = 0; f < SS_DIFFERENCE_FIGURES; f++)
			to->figure[side][f] += from->figure[side][f];
		to->in[side] |= from->in[side];
	}
	if (!to->sites || from->in[1]) {
		to->sites = from->sites;
		to->site = from->site;
	}
}

/* Adds the figures to the entry of the site. `lines`: the frames with their lines identify a site,
 * otherwise the functions alone. */
static bool add(struct entry **table, const struct ss_difference_site *x, bool lines)
{
	char *key = ss_site_text(x->sites, &x->sites->site[x->site], lines);
	struct entry *e = key ? entry_get(table, key) : NULL;

	free(key);
	if (e)
		merge(&e->of, x);
	return e != NULL;
}

static bool add_process(struct ss_difference *d, struct entry **table, const struct ss_analysis *a,
			int side)
{
	struct ss_difference_side *of = &d->side[side];
	double n = (double)of->processes;
	bool ok = true;

	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_usage *u = &a->device[i].usage;
		of->used_peak += (double)u->used_peak.used / n;
		of->reserved_peak += (double)u->reserved_peak.reserved / n;
		of->end += (double)u->end.used / n;
	}
	of->allocs += (double)a->kind[SS_TRACE_ALLOC] / n;
	of->failures += (double)a->failures_all / n;
	for (size_t i = 0; ok && i < a->sites.count; i++) {
		const struct ss_site *s = &a->sites.site[i];
		struct ss_difference_site x = {.sites = &a->sites, .site = (uint32_t)i};
		const double figure[] = {(double)s->peak, (double)s->live, (double)s->allocs,
					 (double)s->bytes};
		for (int f = 0; f < SS_DIFFERENCE_FIGURES; f++)
			x.figure[side][f] = figure[f] / n;
		x.in[side] = true;
		ok = s->allocs == 0 || add(table, &x, true);
	}
	return ok;
}

static double growth(const struct ss_difference_site *x)
{
	return x->figure[1][SS_DIFFERENCE_PEAK] - x->figure[0][SS_DIFFERENCE_PEAK];
}

static int grown_first(const void *a, const void *b)
{
	const struct ss_difference_site *x = a, *y = b;
	double gx = growth(x), gy = growth(y);

	if (gx != gy)
		return gx < gy ? 1 : -1;
	gx = x->figure[1][SS_DIFFERENCE_BYTES] - x->figure[0][SS_DIFFERENCE_BYTES];
	gy = y->figure[1][SS_DIFFERENCE_BYTES] - y->figure[0][SS_DIFFERENCE_BYTES];
	return gx != gy ? (gx < gy ? 1 : -1) : (x->site > y->site) - (x->site < y->site);
}

static bool differs(const struct ss_difference_site *x)
{
	for (int f = 0; f < SS_DIFFERENCE_FIGURES; f++)
		if (x->figure[0][f] != x->figure[1][f])
			return true;
	return false;
}

static void emit(struct ss_difference *d, const struct ss_difference_site *x)
{
	d->site[d->count] = *x;
	d->count += differs(x);
}

static bool in_both(const struct ss_difference_site *x)
{
	return x->in[0] && x->in[1];
}

/* Puts the sites that differ into the array. Sites that only one side has are looked up again by
 * their functions. */
static bool match(struct ss_difference *d, struct entry *exact, struct entry **moved)
{
	struct entry *e, *next;
	bool ok = true;

	HASH_ITER(hh, exact, e, next)
		ok &= in_both(&e->of) || add(moved, &e->of, false);
	HASH_ITER(hh, exact, e, next) {
		char *key = in_both(&e->of) ? NULL :
					      ss_site_text(e->of.sites,
							   &e->of.sites->site[e->of.site], false);
		struct entry *group = key ? entry_get(moved, key) : NULL;

		if (!group || !in_both(&group->of))
			emit(d, &e->of);
		free(key);
	}
	HASH_ITER(hh, *moved, e, next)
		if (in_both(&e->of))
			emit(d, &e->of);
	return ok;
}

static void free_entries(struct entry **table)
{
	struct entry *e, *next;

	HASH_ITER(hh, *table, e, next) {
		HASH_DEL(*table, e);
		free(e);
	}
}

bool ss_difference(struct ss_difference *d, struct ss_analysis *const *list, size_t first,
		   size_t count)
{
	struct entry *exact = NULL, *moved = NULL;
	bool ok = true;

	*d = (struct ss_difference){.side = {{.processes = first}, {.processes = count - first}}};
	for (size_t i = 0; ok && i < count; i++)
		ok = add_process(d, &exact, list[i], i >= first);
	/* A match by functions replaces two entries or more, so there are no more sites than
	 * entries */
	d->site = calloc(HASH_COUNT(exact) + 1, sizeof(*d->site));
	ok = ok && d->site;
	if (ok) {
		ok = match(d, exact, &moved);
		qsort(d->site, d->count, sizeof(*d->site), grown_first);
	}
	free_entries(&exact);
	free_entries(&moved);
	if (!ok)
		ss_difference_finish(d);
	return ok;
}

void ss_difference_finish(struct ss_difference *d)
{
	free(d->site);
	*d = (struct ss_difference){0};
}

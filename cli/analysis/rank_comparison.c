/* SPDX-License-Identifier: MIT */
/* Compares the processes of a job. */
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1

#include "cli/analysis/rank_comparison.h"
#include "core/base/hash_or_end.h"

struct entry {
	UT_hash_handle hh;
	struct ss_over over;
	size_t last;                 /* process that was added last, + 1 */
	double now[SS_OVER_FIGURES]; /* sums of that process */
	char key[];
};

/* Adds the sums of the last process to the spreads. */
static void take_last(struct entry *e)
{
	if (e->last == 0)
		return;
	for (int f = 0; f < SS_OVER_FIGURES; f++) {
		struct ss_spread *s = &e->over.figure[f];
		s->min = e->over.in == 0 || e->now[f] < s->min ? e->now[f] : s->min;
		if (e->over.in == 0 || e->now[f] > s->max) {
			s->max = e->now[f];
			s->max_at = e->last - 1;
		}
		s->mean += e->now[f]; /* a sum until the end */
		e->now[f] = 0;
	}
	e->over.in++;
}

static bool add(struct entry **table, const char *key, size_t process, uint32_t site,
		const double figure[SS_OVER_FIGURES])
{
	size_t length = strlen(key);
	struct entry *e;

	HASH_FIND(hh, *table, key, length, e);
	if (!e) {
		e = calloc(1, sizeof(*e) + length + 1);
		if (!e)
			return false;
		memcpy(e->key, key, length);
		e->over.process = process;
		e->over.site = site;
		HASH_ADD_KEYPTR(hh, *table, e->key, length, e);
		if (!e->hh.tbl) {
			free(e);
			return false;
		}
	}
	if (e->last != process + 1) {
		take_last(e);
		e->last = process + 1;
	}
	for (int f = 0; f < SS_OVER_FIGURES; f++)
		e->now[f] += figure[f];
	return true;
}

static int larger_first(const void *a, const void *b)
{
	const struct ss_over *x = a, *y = b;
	double px = x->figure[SS_OVER_PEAK].max, py = y->figure[SS_OVER_PEAK].max;

	if (px != py)
		return px < py ? 1 : -1;
	return x->process != y->process ? (x->process > y->process) - (x->process < y->process) :
					  (x->site > y->site) - (x->site < y->site);
}

/* Makes the sorted array of a table, and frees the table. */
static bool finish(struct entry **table, size_t processes, bool names, struct ss_over **out,
		   size_t *count)
{
	struct entry *e, *next;
	bool ok = true;

	*out = calloc(HASH_COUNT(*table) + 1, sizeof(**out));
	HASH_ITER(hh, *table, e, next) {
		take_last(e);
		for (int f = 0; f < SS_OVER_FIGURES; f++) {
			struct ss_spread *s = &e->over.figure[f];
			s->min = e->over.in < processes ? 0 : s->min;
			s->mean /= (double)processes;
			s->imbalance = s->mean > 0 ? s->max / s->mean : 0;
		}
		e->over.name = names && *out ? strdup(e->key) : NULL;
		ok &= *out && (!names || e->over.name);
		if (*out)
			(*out)[(*count)++] = e->over;
		HASH_DEL(*table, e);
		free(e);
	}
	if (*out)
		qsort(*out, *count, sizeof(**out), larger_first);
	return ok && *out;
}

static bool add_process(struct entry **pools, struct entry **sites, const struct ss_analysis *a,
			size_t process)
{
	double ns = a->last_ns > a->first_ns ? (double)(a->last_ns - a->first_ns) : 1;
	bool ok = true;

	for (size_t i = 0; ok && i < a->pools; i++) {
		const struct ss_usage *u = &a->pool[i].usage;
		const double figure[SS_OVER_FIGURES] = {(double)u->allocs,
							(double)u->frees,
							u->used_mean,
							(double)u->used_peak.used,
							(double)u->reserved_peak.reserved,
							(double)u->end.used};
		char key[96];
		snprintf(key, sizeof(key),
			 a->pool[i].device == SS_NO_DEVICE ? "%s, no device" : "%s, GPU %d",
			 a->pool[i].name[0] ? a->pool[i].name : "pool without a name",
			 a->pool[i].device);
		ok = add(pools, key, process, 0, figure);
	}
	for (size_t i = 0; ok && i < a->sites.count; i++) {
		const struct ss_site *s = &a->sites.site[i];
		const double figure[SS_OVER_FIGURES] = {
			(double)s->allocs, (double)s->frees, s->byte_ns / ns, (double)s->peak, 0,
			(double)s->live};
		if (s->allocs == 0)
			continue;
		char *key = ss_site_text(&a->sites, s, true);
		ok = key && add(sites, key, process, (uint32_t)i, figure);
		free(key);
	}
	return ok;
}

static int worst_first(const void *a, const void *b)
{
	const struct ss_rank_row *x = a, *y = b;

	if (x->failures != y->failures)
		return x->failures < y->failures ? 1 : -1;
	if (x->reserved_peak != y->reserved_peak)
		return x->reserved_peak < y->reserved_peak ? 1 : -1;
	return (x->process > y->process) - (x->process < y->process);
}

struct ss_rank_row *ss_rank_rows(struct ss_analysis *const *process, size_t count)
{
	struct ss_rank_row *row = calloc(count + 1, sizeof(*row));

	for (size_t i = 0; row && i < count; i++) {
		const struct ss_analysis *a = process[i];
		row[i].process = i;
		row[i].failures = a->failures_all;
		for (size_t k = 0; k < a->devices; k++) {
			row[i].used_peak += a->device[k].usage.used_peak.used;
			row[i].reserved_peak += a->device[k].usage.reserved_peak.reserved;
			row[i].end += a->device[k].usage.end.used;
		}
		for (size_t k = 0; k < a->sites.count; k++) {
			row[i].growing += ss_site_grows(&a->sites.site[k]) ? a->sites.site[k].live :
									     0;
		}
	}
	if (row)
		qsort(row, count, sizeof(*row), worst_first);
	return row;
}

bool ss_over_ranks(struct ss_over_ranks *o, struct ss_analysis *const *process, size_t count)
{
	struct entry *pools = NULL, *sites = NULL;
	bool ok = true;

	*o = (struct ss_over_ranks){.process = process, .processes = count};
	for (size_t i = 0; ok && i < count; i++)
		ok = add_process(&pools, &sites, process[i], i);
	ok &= finish(&pools, count, true, &o->pool, &o->pools);
	ok &= finish(&sites, count, false, &o->site, &o->sites);
	o->row = ss_rank_rows(process, count);
	o->gpu = ss_shared_gpus(process, count, &o->gpus);
	ok &= o->row && o->gpu;
	if (!ok)
		ss_over_ranks_finish(o);
	return ok;
}

void ss_over_ranks_finish(struct ss_over_ranks *o)
{
	for (size_t i = 0; i < o->pools; i++)
		free(o->pool[i].name);
	ss_shared_gpus_free(o->gpu, o->gpus);
	free(o->row);
	free(o->pool);
	free(o->site);
	*o = (struct ss_over_ranks){0};
}

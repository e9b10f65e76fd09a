/* SPDX-License-Identifier: MIT */
/* The second pass: stops at the moments that the first one found, and finds the call sites that
 * hold memory then. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/pass.h"

#define HOLDERS_PEAK 5000  /* call sites of a peak, for its flame graph */
#define HOLDERS_FAILURE 10
#define MAPPED_POOLS 8     /* pools that get address maps */
#define MAP_TIMES 24       /* moments of these maps, in equal steps */
#define VISITS_MAX 30000000u /* blocks that all maps may look at */

struct moment {
	struct ss_snapshot *snapshot;
	uint64_t event;
	int device;
	size_t most; /* call sites that are kept */
	bool waste;  /* also find where unused memory is */
};

struct ss_pass_plan {
	struct moment *moment; /* sorted by event */
	size_t moments, next;
	size_t *sample;            /* next sample of each device's time line */
	size_t pool[MAPPED_POOLS]; /* indices of results */
	size_t pools;
	uint64_t map_step; /* next of MAP_TIMES */
	/* Blocks that maps have looked at so far; beyond VISITS_MAX, maps are left out */
	uint64_t visits;
};

static int earlier_first(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return (x->event > y->event) - (x->event < y->event);
}

static void add_moment(struct ss_pass_plan *plan, struct ss_snapshot *snapshot, int device,
		       size_t most, bool waste)
{
	if (snapshot->event) {
		plan->moment[plan->moments++] = (struct moment){snapshot, snapshot->event, device,
								most, waste};
	}
}

static uint64_t peak_of(const struct ss_analysis *a, size_t pool)
{
	return a->pool[pool].usage.reserved_peak.reserved;
}

/* Chooses the pools that reserved most. */
static void choose_pools(struct ss_pass_plan *plan, const struct ss_analysis *a)
{
	for (size_t i = 0; i < a->pools; i++) {
		uint64_t peak = peak_of(a, i);
		size_t at = plan->pools;
		if (peak == 0)
			continue;
		if (at == MAPPED_POOLS && peak_of(a, plan->pool[at - 1]) >= peak)
			continue;
		at = at == MAPPED_POOLS ? at - 1 : plan->pools++;
		for (; at > 0 && peak_of(a, plan->pool[at - 1]) < peak; at--)
			plan->pool[at] = plan->pool[at - 1];
		plan->pool[at] = i;
	}
}

/* Gives a column to the sites and groups that held most. */
static bool plan_chart(struct ss_pass *p)
{
	struct ss_analysis *a = p->a;
	size_t columns = 0;

	for (int by = 0; by < SS_BYS; by++) {
		const struct ss_sites *s = by ? &a->group[by] : &a->sites;
		struct ss_ranking *r = &a->charted[by];
		p->chart_of[by] = calloc(s->count + 1, sizeof(*p->chart_of[by]));
		if (!p->chart_of[by] || !ss_rank_peaks(s, by ? SS_CHARTED_GROUPS : SS_CHARTED, r))
			return false;
		a->column[by] = columns;
		for (size_t i = 0; i < r->count; i++)
			p->chart_of[by][r->site[i]] = (uint32_t)++columns;
	}
	a->column[SS_BYS] = columns;
	p->lives = ss_lives_of_one(p);
	a->lives = calloc(a->charted[SS_BY_SITE].count + 1, sizeof(*a->lives));
	p->held = calloc((a->devices + 1) * (columns + 1), sizeof(*p->held));
	for (size_t i = 0; i < a->devices; i++) {
		struct ss_timeline *t = &a->device[i].timeline;
		t->held = calloc(t->count * columns + 1, sizeof(*t->held));
		if (!t->held)
			return false;
	}
	return a->lives && p->held;
}

bool ss_pass_plan(struct ss_pass *p)
{
	struct ss_analysis *a = p->a;
	struct ss_pass_plan *plan = p->plan = calloc(1, sizeof(*plan));

	if (!plan)
		return false;
	plan->moment = calloc(a->devices * 2 + a->failures + 1, sizeof(*plan->moment));
	plan->sample = calloc(a->devices + 1, sizeof(*plan->sample));
	if (!plan->moment || !plan->sample || (p->config->charts && !plan_chart(p)))
		return false;
	for (size_t i = 0; i < a->devices; i++) {
		struct ss_device_result *d = &a->device[i];
		d->used_peak = (struct ss_snapshot){.event = d->usage.used_peak_event,
						    .time_ns = d->usage.used_peak_ns};
		add_moment(plan, &d->used_peak, d->device, HOLDERS_PEAK, false);
		add_moment(plan, &d->reserved_peak, d->device, HOLDERS_FAILURE, true);
	}
	for (size_t i = 0; i < a->failures; i++) {
		add_moment(plan, &a->failure[i].snapshot, a->failure[i].snapshot.device,
			   HOLDERS_FAILURE, true);
	}
	qsort(plan->moment, plan->moments, sizeof(*plan->moment), earlier_first);
	if (p->config->charts)
		choose_pools(plan, a);
	return true;
}

void ss_pass_plan_free(struct ss_pass *p)
{
	if (p->plan) {
		free(p->plan->moment);
		free(p->plan->sample);
	}
	free(p->plan);
	for (int by = 0; by < SS_BYS; by++)
		free(p->chart_of[by]);
	free(p->held);
}

void ss_pass_hold(void *arg, enum ss_change change, const struct ss_range *range,
		  const struct ss_trace_item *e)
{
	struct ss_pass *p = arg;

	if (!p->held || (change != SS_CHANGE_ALLOC && change != SS_CHANGE_FREE))
		return;
	uint64_t *held = p->held + (p->device_at[range->device] - 1u) * p->a->column[SS_BYS];
	for (int by = 0; by < SS_BYS; by++) {
		uint32_t site = by ? ss_sites_group(&p->a->group[by], range->site,
						    range->first_stream, range->tid) :
				     range->site;
		uint32_t column = p->chart_of[by][site];
		if (column)
			held[column - 1] += change == SS_CHANGE_ALLOC ? range->size : -range->size;
	}
	uint32_t charted = p->chart_of[SS_BY_SITE][range->site];
	if (charted && change == SS_CHANGE_FREE)
		p->failed |= !ss_life_keep(p, charted - 1, range, e->time_ns);
}

/* Fills in the samples whose moment is over when `event` comes. */
static void fill_samples(struct ss_pass *p, uint64_t event)
{
	size_t columns = p->a->column[SS_BYS];

	for (size_t i = 0; p->held && i < p->a->devices; i++) {
		struct ss_timeline *t = &p->a->device[i].timeline;
		size_t *at = &p->plan->sample[i];
		while (*at < t->count && t->sample[*at].event < event) {
			memcpy(t->held + (*at)++ * columns, p->held + i * columns,
			       columns * sizeof(*p->held));
		}
	}
}

static void take_maps(struct ss_pass *p, uint64_t time_ns, int device)
{
	for (size_t i = 0; i < p->plan->pools && p->plan->visits < VISITS_MAX; i++) {
		p->plan->visits += p->memory.blocks.count;
		const struct ss_pool_result *pool = &p->a->pool[p->plan->pool[i]];
		if (device < 0 || pool->device == device)
			p->failed |= !ss_address_map_take(p, pool->id, time_ns);
	}
}

void ss_pass_before_event(struct ss_pass *p, const struct ss_trace_item *e)
{
	struct ss_pass_plan *plan = p->plan;
	const struct ss_analysis *a = p->a;

	fill_samples(p, p->event);
	if (!plan->pools || e->time_ns <= a->first_ns)
		return;
	uint64_t past = e->time_ns - a->first_ns;
	uint64_t step = (a->last_ns - a->first_ns) / MAP_TIMES + 1;
	if (past / step > plan->map_step) { /* also if several steps had no event */
		take_maps(p, a->first_ns + (plan->map_step + 1) * step, -1);
		plan->map_step = past / step;
	}
}

void ss_pass_after_event(struct ss_pass *p, const struct ss_trace_item *e)
{
	struct ss_pass_plan *plan = p->plan;
	int mapped = -1; /* an event of one device may be several of its moments */

	while (plan->next < plan->moments && plan->moment[plan->next].event == p->event) {
		const struct moment *m = &plan->moment[plan->next++];
		if (!ss_snapshot_take(p, m->snapshot, m->device, m->most)) {
			p->failed = true;
			return;
		}
		if (m->waste)
			ss_snapshot_waste(p, m->snapshot);
		if (m->device != mapped) {
			take_maps(p, e->time_ns, m->device);
			mapped = m->device;
		}
	}
}

/* The blocks that live at the end have lives without an end. */
static void keep_rest(struct ss_pass *p)
{
	struct ss_ranges_walk walk = {0};

	for (const struct ss_range *b = ss_ranges_from(&p->memory.blocks, 0); b;
	     b = ss_ranges_next(&p->memory.blocks, &walk, b)) {
		uint32_t charted = p->chart_of[SS_BY_SITE][b->site];
		if (charted && !b->freed)
			p->failed |= !ss_life_keep(p, charted - 1, b, UINT64_MAX);
	}
	ss_lives_sort(p->a);
}

void ss_pass_look_end(struct ss_pass *p)
{
	fill_samples(p, UINT64_MAX);
	if (p->config->charts)
		keep_rest(p);
	take_maps(p, p->a->last_ns, -1);
}

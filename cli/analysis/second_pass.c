/* SPDX-License-Identifier: MIT */
/* The second pass: stops at the moments that the first one found, and looks who holds memory. */
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
	size_t most;               /* call sites that are kept */
	bool waste;                /* also find where unused memory is */
};

struct ss_pass_plan {
	struct moment *moment;     /* sorted by event */
	size_t moments, next;
	size_t *sample;            /* next sample of each device's time line */
	size_t pool[MAPPED_POOLS]; /* indices of results */
	size_t pools;
	uint64_t map_step;         /* next of MAP_TIMES */
	uint64_t visits;           /* of blocks so far: some maps are left out if there are millions */
};

static int earlier_first(const void *a, const void *b) {
	const struct moment *x = a, *y = b;

	return (x->event > y->event) - (x->event < y->event);
}

static void add_moment(struct ss_pass_plan *plan, struct ss_snapshot *snapshot, int device,
		       size_t most, bool waste) {
	if (snapshot->event) {
		plan->moment[plan->moments++] = (struct moment){ snapshot, snapshot->event, device,
			most, waste };
	}
}

static uint64_t peak_of(const struct ss_analysis *a, size_t pool) {
	return a->pool[pool].usage.reserved_peak.reserved;
}

/* The pools that reserved most. */
static void choose_pools(struct ss_pass_plan *plan, const struct ss_analysis *a) {
	for (size_t i = 0; i < a->pools; i++) {
		uint64_t peak = peak_of(a, i);
		size_t at = plan->pools;
		if (peak == 0) {
			continue;
		}
		if (at == MAPPED_POOLS && peak_of(a, plan->pool[at - 1]) >= peak) {
			continue;
		}
		at = at == MAPPED_POOLS ? at - 1 : plan->pools++;
		for (; at > 0 && peak_of(a, plan->pool[at - 1]) < peak; at--) {
			plan->pool[at] = plan->pool[at - 1];
		}
		plan->pool[at] = i;
	}
}

bool ss_pass_plan(struct ss_pass *p) {
	struct ss_analysis *a = p->a;
	struct ss_pass_plan *plan = p->plan = calloc(1, sizeof(*plan));

	if (!plan) {
		return false;
	}
	plan->moment = calloc(a->devices * 2 + a->failures + 1, sizeof(*plan->moment));
	plan->sample = calloc(a->devices + 1, sizeof(*plan->sample));
	p->chart_of = calloc(a->sites.count, 1);
	p->held = calloc(a->devices + 1, sizeof(*p->held));
	if (!plan->moment || !plan->sample || !p->chart_of || !p->held) {
		return false;
	}
	for (size_t i = 0; i < a->devices; i++) {
		struct ss_device_result *d = &a->device[i];
		d->used_peak = (struct ss_snapshot){ .event = d->usage.used_peak_event,
			.time_ns = d->usage.used_peak_ns };
		add_moment(plan, &d->used_peak, d->device, HOLDERS_PEAK, false);
		add_moment(plan, &d->reserved_peak, d->device, HOLDERS_FAILURE, true);
	}
	for (size_t i = 0; i < a->failures; i++) {
		add_moment(plan, &a->failure[i].snapshot, a->failure[i].snapshot.device,
			   HOLDERS_FAILURE, true);
	}
	qsort(plan->moment, plan->moments, sizeof(*plan->moment), earlier_first);
	for (size_t i = 0; i < a->charted_count; i++) {
		p->chart_of[a->charted[i]] = (uint8_t)(i + 1);
	}
	if (p->config->charts) {
		choose_pools(plan, a);
	}
	return true;
}

void ss_pass_plan_free(struct ss_pass *p) {
	if (p->plan) {
		free(p->plan->moment);
		free(p->plan->sample);
	}
	free(p->plan);
	free(p->chart_of);
	free(p->held);
}

void ss_pass_hold(void *arg, enum ss_change change, const struct ss_range *range,
		  const struct ss_trace_item *e) {
	struct ss_pass *p = arg;
	unsigned chart = p->chart_of[range->site];

	if (chart && (change == SS_CHANGE_ALLOC || change == SS_CHANGE_FREE)) {
		uint64_t *held = &p->held[p->device_at[range->device] - 1][chart - 1];
		*held += change == SS_CHANGE_ALLOC ? range->size : -range->size;
	}
}

/* Fills in the samples whose moment is over when `event` comes. */
static void fill_samples(struct ss_pass *p, uint64_t event) {
	for (size_t i = 0; i < p->a->devices; i++) {
		struct ss_timeline *t = &p->a->device[i].timeline;
		size_t *at = &p->plan->sample[i];
		while (*at < t->count && t->sample[*at].event < event) {
			memcpy(t->sample[(*at)++].site, p->held[i], sizeof(*p->held));
		}
	}
}

static void take_maps(struct ss_pass *p, uint64_t time_ns, int device) {
	for (size_t i = 0; i < p->plan->pools && p->plan->visits < VISITS_MAX; i++) {
		p->plan->visits += p->memory.blocks.count;
		const struct ss_pool_result *pool = &p->a->pool[p->plan->pool[i]];
		if (device < 0 || pool->device == device) {
			p->failed |= !ss_address_map_take(p, pool->id, time_ns);
		}
	}
}

void ss_pass_before_event(struct ss_pass *p, const struct ss_trace_item *e) {
	struct ss_pass_plan *plan = p->plan;
	const struct ss_analysis *a = p->a;

	fill_samples(p, p->event);
	if (!plan->pools || e->time_ns <= a->first_ns) {
		return;
	}
	uint64_t past = e->time_ns - a->first_ns;
	uint64_t step = (a->last_ns - a->first_ns) / MAP_TIMES + 1;
	if (past / step > plan->map_step) { /* also if several steps had no event */
		take_maps(p, a->first_ns + (plan->map_step + 1) * step, -1);
		plan->map_step = past / step;
	}
}

void ss_pass_after_event(struct ss_pass *p, const struct ss_trace_item *e) {
	struct ss_pass_plan *plan = p->plan;
	int mapped = -1; /* an event of one device may be several of its moments */

	while (plan->next < plan->moments && plan->moment[plan->next].event == p->event) {
		const struct moment *m = &plan->moment[plan->next++];
		if (!ss_snapshot_take(p, m->snapshot, m->device, m->most)) {
			p->failed = true;
			return;
		}
		if (m->waste) {
			ss_snapshot_waste(p, m->snapshot);
		}
		if (m->device != mapped) {
			take_maps(p, e->time_ns, m->device);
			mapped = m->device;
		}
	}
}

void ss_pass_look_end(struct ss_pass *p) {
	fill_samples(p, UINT64_MAX);
	take_maps(p, p->a->last_ns, -1);
}

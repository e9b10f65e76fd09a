/* SPDX-License-Identifier: MIT */
/* The first pass: counts what devices, pools and call sites did, and finds the peaks. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/pass.h"
#include "cli/analysis/timeline.h"
#include "trace/grow.h"

static struct ss_device_result *device_of(struct ss_pass *p, uint8_t device)
{
	struct ss_analysis *a = p->a;

	if (!p->device_at[device]) {
		void *more = realloc(a->device, (a->devices + 1) * sizeof(*a->device));
		if (!more)
			return NULL;
		a->device = more;
		struct ss_device_result *d = &a->device[a->devices];
		const struct ss_trace_device_def *def = device == SS_NO_DEVICE ?
								NULL :
								ss_trace_reader_device(
									p->memory.reader, device);
		*d = (struct ss_device_result){.device = device, .usage.changed_ns = a->first_ns};
		if (def) {
			memcpy(d->name, def->name, sizeof(d->name));
			memcpy(d->pci, def->pci, sizeof(d->pci));
			d->total = def->total;
		}
		if (p->config->charts &&
		    !ss_samples_begin(&d->timeline, p->config->samples, a->first_ns))
			return NULL;
		p->device_at[device] = (uint16_t)++a->devices;
	}
	return &a->device[p->device_at[device] - 1];
}

static int by_number(const void *a, const void *b)
{
	const struct ss_device_result *x = a, *y = b;

	return (x->device > y->device) - (x->device < y->device);
}

void ss_pass_sort_devices(struct ss_pass *p)
{
	struct ss_analysis *a = p->a;

	if (a->devices)
		qsort(a->device, a->devices, sizeof(*a->device), by_number);
	for (size_t i = 0; i < a->devices; i++)
		p->device_at[a->device[i].device] = (uint16_t)(i + 1);
}

static struct ss_pool_result *pool_of(struct ss_pass *p, uint32_t id)
{
	struct ss_analysis *a = p->a;

	if (!p->pool_at[id]) {
		void *more = ss_grow(a->pool, a->pools, sizeof(*a->pool));
		if (!more)
			return NULL;
		a->pool = more;
		const struct ss_trace_pool_def *def = ss_trace_reader_pool(p->memory.reader, id);
		struct ss_pool_result *pool = &a->pool[a->pools];
		*pool = (struct ss_pool_result){
			.id = id, .device = SS_NO_DEVICE, .usage.changed_ns = a->first_ns};
		if (def) {
			pool->device = def->device;
			pool->handle = def->handle;
			memcpy(pool->name, def->name, sizeof(pool->name));
		}
		p->pool_at[id] = (uint32_t)++a->pools;
	}
	return &a->pool[p->pool_at[id] - 1];
}

/* Adds the time since the last change to the means. */
static void pass_time(struct ss_usage *u, uint64_t now_ns)
{
	double ns = now_ns > u->changed_ns ? (double)(now_ns - u->changed_ns) : 0;

	u->asked_mean += ns * (double)u->end.asked;
	u->used_mean += ns * (double)u->end.used;
	u->in_flight_mean += ns * (double)u->end.in_flight;
	u->reserved_mean += ns * (double)u->end.reserved;
	u->changed_ns = now_ns;
}

static void level_changed(struct ss_usage *u, const struct ss_level *level, uint64_t now_ns,
			  uint64_t event)
{
	pass_time(u, now_ns);
	u->end = *level;
	if (level->used > u->used_peak.used) {
		u->used_peak = *level;
		u->used_peak_ns = now_ns;
		u->used_peak_event = event;
	}
	if (level->reserved > u->reserved_peak.reserved) {
		u->reserved_peak = *level;
		u->reserved_peak_ns = now_ns;
		u->reserved_peak_event = event;
	}
	if (level->in_flight > u->in_flight_peak) {
		u->in_flight_peak = level->in_flight;
		u->in_flight_peak_ns = now_ns;
	}
}

static void site_changed(struct ss_site *s, uint64_t now_ns)
{
	if (now_ns > s->changed_ns) {
		s->byte_ns += (double)s->live * (double)(now_ns - s->changed_ns);
		s->changed_ns = now_ns;
	}
}

/* A block that lived before the recording begins was not allocated in it. */
static void site_allocates(struct ss_site *s, const struct ss_range *b,
			   const struct ss_trace_item *e)
{
	uint64_t now_ns = e->time_ns;

	site_changed(s, now_ns);
	s->allocs += !ss_trace_item_lived(e);
	s->bytes += ss_trace_item_lived(e) ? 0 : b->size;
	s->live += b->size;
	s->live_asked += b->asked;
	s->live_blocks++;
	if (s->live > s->peak) {
		s->peak = s->live;
		s->peak_ns = now_ns;
	}
	if (s->freed_blocks && s->freed_size == b->asked) {
		s->freed_blocks--;
		s->repeats++;
	}
}

static void site_frees(struct ss_site *s, const struct ss_range *b, uint64_t now_ns)
{
	uint64_t lifetime = now_ns > b->begin_ns ? now_ns - b->begin_ns : 0;

	site_changed(s, now_ns);
	s->frees++;
	s->live -= b->size;
	s->live_asked -= b->asked;
	s->live_blocks--;
	s->lifetime_ns += lifetime;
	s->longest_ns = lifetime > s->longest_ns ? lifetime : s->longest_ns;
	s->freed_blocks = s->freed_size == b->asked ? s->freed_blocks + 1 : 1;
	s->freed_size = b->asked;
}

/* The snapshot of a reserved peak is taken when the thread that made the pool grow has its
 * block. */
static void watch_growth(struct ss_pass *p, struct ss_device_result *d, enum ss_change change,
			 const struct ss_range *range, const struct ss_trace_item *e)
{
	struct ss_snapshot *snapshot = &d->reserved_peak;

	if (change == SS_CHANGE_MAP && d->usage.reserved_peak_event == p->event) {
		*snapshot = (struct ss_snapshot){.event = p->event, .time_ns = e->time_ns};
		d->growing = true;
		d->grow_tid = e->tid;
	} else if (change == SS_CHANGE_ALLOC && d->growing && d->grow_tid == e->tid) {
		*snapshot = (struct ss_snapshot){.event = p->event,
						 .time_ns = e->time_ns,
						 .request = range->size,
						 .stream = e->stream,
						 .pool = e->pool};
		d->growing = false;
	}
}

static void usage_counts(struct ss_usage *u, enum ss_change change, const struct ss_trace_item *e)
{
	if (ss_trace_item_lived(e))
		return;
	u->allocs += change == SS_CHANGE_ALLOC;
	u->frees += change == SS_CHANGE_FREE;
	u->hits += change == SS_CHANGE_ALLOC && (e->flags & SS_TRACE_F_HIT);
	u->maps += change == SS_CHANGE_MAP;
	u->unmaps += change == SS_CHANGE_UNMAP;
}

/* Halves the number of steps. */
static void thin_steps(struct ss_device_result *d)
{
	for (size_t i = 0; i < d->steps / 2; i++) {
		const struct ss_reserved_step *a = &d->step[2 * i], *b = a + 1;
		d->step[i] = (struct ss_reserved_step){
			a->time_ns, a->reserved > b->reserved ? a->reserved : b->reserved};
	}
	d->steps /= 2;
}

static bool add_step(struct ss_device_result *d, uint64_t reserved, uint64_t now_ns)
{
	if (d->steps ? d->step[d->steps - 1].reserved == reserved : reserved == 0)
		return true;
	if (d->steps == SS_STEPS)
		thin_steps(d);
	void *more = ss_grow(d->step, d->steps, sizeof(*d->step));
	if (more) {
		d->step = more;
		d->step[d->steps++] = (struct ss_reserved_step){now_ns, reserved};
	}
	return more != NULL;
}

static void levels_changed(struct ss_pass *p, uint8_t device, uint16_t pool,
			   const struct ss_trace_item *e)
{
	struct ss_device_result *d = device_of(p, device);
	struct ss_pool_result *q = pool_of(p, pool);

	if (!d || !q) {
		p->failed = true;
		return;
	}
	if (!add_step(d, p->memory.device[device].reserved, e->time_ns)) {
		p->failed = true;
		return;
	}
	level_changed(&d->usage, &p->memory.device[device], e->time_ns, p->event);
	level_changed(&q->usage, &p->memory.pool[pool], e->time_ns, p->event);
	if (p->a->phases.opens)
		ss_phases_level(&p->a->phases, device, &p->memory.device[device], e->time_ns);
	if (d->timeline.sample)
		ss_samples_add(&d->timeline, &p->memory.device[device], p->event, e->time_ns);
}

static void count_size(struct ss_size_class *s, enum ss_change change, const struct ss_range *b,
		       const struct ss_trace_item *e)
{
	if (change == SS_CHANGE_FREE) {
		s->live_blocks--;
		s->live -= b->asked;
		return;
	}
	s->allocs += !ss_trace_item_lived(e);
	s->bytes += ss_trace_item_lived(e) ? 0 : b->asked;
	s->live_blocks++;
	s->live += b->asked;
}

void ss_pass_count(void *arg, enum ss_change change, const struct ss_range *range,
		   const struct ss_trace_item *e)
{
	struct ss_pass *p = arg;

	if (!ss_trace_item_lived(e))
		levels_changed(p, range->device, range->pool, e);
	if (p->failed)
		return;
	struct ss_device_result *d = device_of(p, range->device);
	struct ss_pool_result *q = pool_of(p, range->pool);
	if (!d || !q) {
		p->failed = true;
		return;
	}
	usage_counts(&d->usage, change, e);
	usage_counts(&q->usage, change, e);
	if (!ss_trace_item_lived(e))
		watch_growth(p, d, change, range, e);
	if (q->device == SS_NO_DEVICE)
		q->device = range->device;
	if (change == SS_CHANGE_ALLOC || change == SS_CHANGE_FREE)
		count_size(&d->size[range->asked ? 63 - __builtin_clzll(range->asked) : 0], change,
			   range, e);
	if (change == SS_CHANGE_ALLOC || change == SS_CHANGE_FREE) {
		for (int by = 0; by < (p->config->charts ? SS_BYS : 1); by++) {
			struct ss_site *s = ss_pass_site(p->a, by, range);
			if (change == SS_CHANGE_ALLOC)
				site_allocates(s, range, e);
			else
				site_frees(s, range, e->time_ns);
		}
	}
}

/* Many events describe the memory that exists when the recording begins. All of it exists at that
 * one moment, so no moment between these events is a peak. */
void ss_pass_count_begin(struct ss_pass *p, const struct ss_trace_item *e)
{
	struct ss_analysis *a = p->a;

	for (size_t i = 0; i < a->pools; i++)
		level_changed(&a->pool[i].usage, &p->memory.pool[a->pool[i].id], e->time_ns,
			      p->event);
	for (size_t i = 0; i < a->devices; i++) {
		struct ss_device_result *d = &a->device[i];
		const struct ss_level *level = &p->memory.device[d->device];
		level_changed(&d->usage, level, e->time_ns, p->event);
		if (level->reserved) {
			d->reserved_peak = (struct ss_snapshot){.event = p->event,
								.time_ns = e->time_ns};
		}
		if (d->timeline.sample)
			ss_samples_add(&d->timeline, level, p->event, e->time_ns);
		p->failed |= !add_step(d, level->reserved, e->time_ns);
	}
}

static void count_failure(struct ss_pass *p, const struct ss_trace_item *e)
{
	struct ss_analysis *a = p->a;
	uint8_t device = ss_trace_memory_device(&p->memory, e);
	struct ss_device_result *d = device_of(p, device);
	struct ss_pool_result *q = pool_of(p, e->pool);

	a->failures_all++;
	a->sites.site[ss_sites_of(&a->sites, e)].failed++;
	if (!d || !q) {
		p->failed = true;
		return;
	}
	d->usage.failed++;
	q->usage.failed++;
	if (a->failures == SS_SNAPSHOTS)
		return;
	if (!a->failure)
		a->failure = calloc(SS_SNAPSHOTS, sizeof(*a->failure));
	if (!a->failure) {
		p->failed = true;
		return;
	}
	a->failure[a->failures++] = (struct ss_failure){.snapshot = {.event = p->event,
								     .time_ns = e->time_ns,
								     .device = device,
								     .request = e->size,
								     .stream = e->stream,
								     .pool = e->pool},
							.limit = e->kind == SS_TRACE_LIMIT,
							.site = ss_sites_of(&a->sites, e),
							.device_free = e->device_free,
							.reserved = e->reserved,
							.used = e->used};
}

static struct ss_phase_totals totals(const struct ss_pass *p)
{
	struct ss_phase_totals now = {.level = p->memory.device};

	for (size_t i = 0; i < p->a->devices; i++) {
		const struct ss_usage *u = &p->a->device[i].usage;
		now.used += p->memory.device[p->a->device[i].device].used;
		now.allocs += u->allocs;
		now.frees += u->frees;
	}
	return now;
}

static void outside_changed(struct ss_pass *p, const struct ss_trace_item *e)
{
	uint8_t device = ss_trace_memory_device(&p->memory, e);
	struct ss_device_result *d = device_of(p, device);
	const struct ss_outside *now = &p->memory.outside[device];

	if (!d) {
		p->failed = true;
		return;
	}
	d->outside_end = *now;
	for (int k = 0; k < SS_TRACE_OUTSIDE_KINDS; k++) {
		if (now->bytes[k] > d->outside_peak.bytes[k]) {
			d->outside_peak.bytes[k] = now->bytes[k];
			d->outside_peak_ns[k] = e->time_ns;
		}
	}
	if (now->rest > d->outside_peak.rest) {
		d->outside_peak.rest = now->rest;
		d->rest_peak_ns = e->time_ns;
	}
	if (d->timeline.sample)
		ss_samples_outside(&d->timeline, now, e->time_ns);
}

void ss_pass_count_event(struct ss_pass *p, const struct ss_trace_item *e)
{
	struct ss_analysis *a = p->a;

	if (e->kind == SS_TRACE_OUTSIDE)
		outside_changed(p, e);
	if (ss_trace_item_lived(e)) {
		a->lived_blocks += e->kind == SS_TRACE_ALLOC;
		a->lived_bytes += e->kind == SS_TRACE_ALLOC ? e->rounded : 0;
		return;
	}
	if ((size_t)e->kind < sizeof(a->kind) / sizeof(a->kind[0]))
		a->kind[e->kind]++;
	if (e->kind == SS_TRACE_WAIT && e->flags < SS_WAIT_CAUSES) {
		struct ss_spent *spent = &a->wait[e->flags];
		spent->count++;
		spent->ns += e->duration_ns;
		spent->longest_ns = e->duration_ns > spent->longest_ns ? e->duration_ns :
									 spent->longest_ns;
		for (int by = 0; by < (p->config->charts ? SS_BYS : 1); by++) {
			struct ss_sites *s = by ? &a->group[by] : &a->sites;
			struct ss_site *site = &s->site[ss_sites_of(s, e)];
			site->waits++;
			site->wait_ns += e->duration_ns;
		}
	} else if (e->kind == SS_TRACE_TRIM && e->flags < SS_TRIM_CAUSES) {
		struct ss_pool_result *q = pool_of(p, e->pool);
		a->trim[e->flags].count++;
		a->trim_bytes[e->flags] += e->size;
		if (q)
			q->usage.trimmed += e->size;
	} else if (e->kind == SS_TRACE_PHASE) {
		const struct ss_phase_totals now = totals(p);
		p->failed |= !ss_phases_event(&a->phases, p->memory.reader, e, &now);
	} else if (e->kind == SS_TRACE_OOM || e->kind == SS_TRACE_LIMIT) {
		count_failure(p, e);
	} else if (e->kind == SS_TRACE_REUSABLE) { /* it may have ended a part of a block */
		levels_changed(p, ss_trace_memory_device(&p->memory, e), (uint16_t)e->pool, e);
	}
}

/* ---- the end ------------------------------------------------------------ */

static void finish_means(struct ss_usage *u, const struct ss_analysis *a)
{
	double ns = a->last_ns > a->first_ns ? (double)(a->last_ns - a->first_ns) : 1;

	pass_time(u, a->last_ns);
	u->asked_mean /= ns;
	u->used_mean /= ns;
	u->in_flight_mean /= ns;
	u->reserved_mean /= ns;
}

/* A block that lives at the end. */
static void site_keeps(const struct ss_analysis *a, struct ss_site *s, const struct ss_range *b)
{
	double span = (double)(a->last_ns - a->first_ns) + 1;

	if (b->begin_ns >= a->first_ns && b->begin_ns <= a->last_ns) {
		/* A time above 2^53 is rounded, perhaps to the end. */
		double at = 32 * ((double)(b->begin_ns - a->first_ns) / span);

		s->kept_in |= 1u << (at < 31 ? (unsigned)at : 31);
	}
	s->largest_live = b->asked > s->largest_live ? b->asked : s->largest_live;
	s->oldest_ns = !s->oldest_ns || b->begin_ns < s->oldest_ns ? b->begin_ns : s->oldest_ns;
}

void ss_pass_count_end(struct ss_pass *p)
{
	struct ss_analysis *a = p->a;
	int kinds = p->config->charts ? SS_BYS : 1;
	const struct ss_ranges *blocks = &p->memory.blocks;
	struct ss_ranges_walk walk = {0};

	const struct ss_phase_totals now = totals(p);
	ss_phases_end(&a->phases, &now, a->last_ns);
	for (size_t i = 0; i < a->devices; i++) {
		finish_means(&a->device[i].usage, a);
		if (a->device[i].timeline.sample)
			ss_samples_end(&a->device[i].timeline, a->last_ns);
	}
	for (size_t i = 0; i < a->pools; i++)
		finish_means(&a->pool[i].usage, a);
	for (int by = 0; by < kinds; by++) {
		struct ss_sites *s = by ? &a->group[by] : &a->sites;
		for (size_t i = 0; i < s->count; i++)
			site_changed(&s->site[i], a->last_ns);
	}
	for (const struct ss_range *b = ss_ranges_from(blocks, 0); b;
	     b = ss_ranges_next(blocks, &walk, b))
		for (int by = 0; by < kinds && !b->freed; by++)
			site_keeps(a, ss_pass_site(a, by, b), b);
}

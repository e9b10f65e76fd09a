/* SPDX-License-Identifier: MIT */
/* The report as JSON: all that the analyses have. Times are seconds since the trace began. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "cli/writers/json.h"

#define GROUPS_LISTED 200 /* functions, files .. that the page has */

static json_t *count(uint64_t n)
{
	return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

static json_t *time_of(const struct ss_analysis *a, uint64_t time_ns)
{
	return json_real(ss_report_seconds(a, time_ns));
}

static json_t *level_json(const struct ss_level *l)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "asked", count(l->asked), "used", count(l->used),
			 "in_flight", count(l->in_flight), "reserved", count(l->reserved));
}

static json_t *peak_json(const struct ss_analysis *a, const struct ss_level *l, uint64_t time_ns)
{
	json_t *o = level_json(l);

	json_object_set_new(o, "time", time_of(a, time_ns));
	return o;
}

static json_t *usage_json(const struct ss_analysis *a, const struct ss_usage *u)
{
	json_t *o = json_object();

	json_object_set_new(o, "used_peak", peak_json(a, &u->used_peak, u->used_peak_ns));
	json_object_set_new(o, "reserved_peak",
			    peak_json(a, &u->reserved_peak, u->reserved_peak_ns));
	json_object_set_new(o, "in_flight_peak",
			    json_pack("{s:o, s:o}", "in_flight", count(u->in_flight_peak), "time",
				      time_of(a, u->in_flight_peak_ns)));
	json_object_set_new(o, "end", level_json(&u->end));
	json_object_set_new(o, "mean",
			    json_pack("{s:o, s:o, s:o, s:o}", "asked", json_real(u->asked_mean),
				      "used", json_real(u->used_mean), "in_flight",
				      json_real(u->in_flight_mean), "reserved",
				      json_real(u->reserved_mean)));
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{"allocations", u->allocs}, {"frees", u->frees}, {"hits", u->hits},
		{"failed", u->failed},      {"maps", u->maps},   {"unmaps", u->unmaps},
		{"trimmed", u->trimmed},
	};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(o, counts[i].name, count(counts[i].n));
	return o;
}

static json_t *snapshot_json(const struct ss_analysis *a, const struct ss_snapshot *p, bool waste)
{
	json_t *o = peak_json(a, &p->level, p->time_ns), *holders = json_array();

	for (size_t i = 0; i < p->holders; i++) {
		json_array_append_new(holders,
				      json_pack("{s:i, s:o, s:o}", "site", (int)p->holder[i].site,
						"bytes", count(p->holder[i].bytes), "blocks",
						count(p->holder[i].blocks)));
	}
	json_object_set_new(o, "holders", holders);
	if (waste) {
		const struct ss_waste *w = &p->waste;
		json_object_set_new(o, "request", count(p->request));
		json_object_set_new(
			o, "waste",
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rounding",
				  count(w->rounding), "in_flight_own", count(w->in_flight_own),
				  "in_flight_others", count(w->in_flight_others), "fragmentation",
				  count(w->fragmentation), "other_pools", count(w->other_pools),
				  "idle", count(w->idle), "largest_hole", count(w->largest_hole)));
	}
	return o;
}

/* ---- lists -------------------------------------------------------------- */

static json_t *outside_json(const struct ss_analysis *a, const struct ss_device_result *d)
{
	json_t *o = json_object();

	for (int k = 0; k <= SS_TRACE_OUTSIDE_KINDS; k++) {
		bool rest = k == SS_TRACE_OUTSIDE_KINDS;
		uint64_t peak = rest ? d->outside_peak.rest : d->outside_peak.bytes[k];
		if (!peak)
			continue;
		json_object_set_new(
			o, rest ? "rest" : ss_report_outside_name(k),
			json_pack("{s:o, s:o, s:o}", "peak", count(peak), "peak_time",
				  time_of(a, rest ? d->rest_peak_ns : d->outside_peak_ns[k]), "end",
				  count(rest ? d->outside_end.rest : d->outside_end.bytes[k])));
	}
	return o;
}

static json_t *sizes_json(const struct ss_device_result *d)
{
	json_t *list = json_array();

	for (int i = 0; i < SS_SIZE_CLASSES; i++) {
		const struct ss_size_class *s = &d->size[i];
		if (!s->allocs && !s->live_blocks)
			continue;
		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "from",
						      count(i ? 1ull << i : 0), "allocations",
						      count(s->allocs), "bytes", count(s->bytes),
						      "live_blocks", count(s->live_blocks), "live",
						      count(s->live)));
	}
	return list;
}

static json_t *devices_json(const struct ss_analysis *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_device_result *d = &a->device[i];
		json_t *o = usage_json(a, &d->usage);
		char label[32];
		json_object_set_new(o, "device",
				    d->device == SS_NO_DEVICE ? json_null() :
								json_integer(d->device));
		json_object_set_new(o, "label",
				    json_string(ss_report_device_name(d->device, label)));
		json_object_set_new(o, "name", ss_json_text(d->name));
		json_object_set_new(o, "pci", ss_json_text(d->pci));
		json_object_set_new(o, "total", count(d->total));
		json_object_set_new(o, "outside", outside_json(a, d));
		json_object_set_new(o, "sizes", sizes_json(d));
		if (d->used_peak.event) {
			json_object_set_new(o, "at_used_peak",
					    snapshot_json(a, &d->used_peak, false));
		}
		if (d->reserved_peak.event) {
			json_object_set_new(o, "at_reserved_peak",
					    snapshot_json(a, &d->reserved_peak, true));
		}
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *pools_json(const struct ss_analysis *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->pools; i++) {
		const struct ss_pool_result *q = &a->pool[i];
		json_t *o = usage_json(a, &q->usage);
		json_object_set_new(o, "pool", count(q->id));
		json_object_set_new(o, "name", ss_json_text(q->name));
		json_object_set_new(o, "handle", json_sprintf("0x%" PRIx64, q->handle));
		json_object_set_new(o, "device",
				    q->device == SS_NO_DEVICE ? json_null() :
								json_integer(q->device));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *frame_json(const struct ss_frame *f)
{
	char name[512];
	json_t *o = json_pack("{s:o, s:o, s:i, s:o}", "function", ss_json_text(f->function),
			      "source", ss_json_text(f->source), "line", f->line, "module",
			      ss_json_text(f->module));

	if (strcmp(ss_report_function(f->function, name, sizeof(name)), f->function) != 0)
		json_object_set_new(o, "short", ss_json_text(name));
	return o;
}

/* The page has each frame once, in a list of its own, and the sites have numbers. */
static json_t *frames_json(const struct ss_sites *s, const struct ss_site *site, bool numbers)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < site->frames; i++) {
		json_array_append_new(list, numbers ? json_integer(site->frame[i]) :
						      frame_json(ss_site_frame(s, site, i)));
	}
	return list;
}

json_t *ss_report_frames_json(const struct ss_sites *s, const struct ss_site *site)
{
	return frames_json(s, site, false);
}

static json_t *all_frames_json(const struct ss_sites *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->frame_count; i++)
		json_array_append_new(list, frame_json(&s->frame[i]));
	return list;
}

static json_t *site_json(const struct ss_analysis *a, const struct ss_sites *sites, size_t i,
			 bool numbers)
{
	const struct ss_site *s = &sites->site[i];
	char name[SS_SITE_NAME];
	json_t *o = json_pack(
		"{s:i, s:o, s:o}", "site", (int)i, "name",
		ss_json_text(ss_report_site_name(sites, (uint32_t)i, name, sizeof(name))), "frames",
		frames_json(sites, s, numbers));
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{"allocations", s->allocs},
		{"frees", s->frees},
		{"bytes", s->bytes},
		{"peak", s->peak},
		{"live", s->live},
		{"live_blocks", s->live_blocks},
		{"live_asked", s->live_asked},
		{"largest_live", s->largest_live},
		{"repeats", s->repeats},
		{"waits", s->waits},
		{"failed", s->failed},
	};
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
		json_object_set_new(o, counts[k].name, count(counts[k].n));
	json_object_set_new(o, "suppressed", json_boolean(s->suppressed));
	json_object_set_new(o, "grows", json_boolean(ss_site_grows(s)));
	double ns = a->last_ns > a->first_ns ? (double)(a->last_ns - a->first_ns) : 1;
	json_object_set_new(o, "peak_time", time_of(a, s->peak_ns));
	json_object_set_new(o, "mean", json_real(s->byte_ns / ns));
	json_object_set_new(o, "mean_life",
			    s->frees ? json_real((double)s->lifetime_ns / (double)s->frees / 1e9) :
				       json_null());
	json_object_set_new(o, "longest_life", json_real((double)s->longest_ns / 1e9));
	json_object_set_new(o, "oldest_age",
			    json_real(s->oldest_ns ? ss_report_seconds(a, a->last_ns) -
							     ss_report_seconds(a, s->oldest_ns) :
						     0));
	json_object_set_new(o, "wait_time", json_real((double)s->wait_ns / 1e9));
	return o;
}

static json_t *sites_json(const struct ss_analysis *a, bool numbers)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->sites.count; i++) {
		const struct ss_site *s = &a->sites.site[i];
		if (s->allocs || s->peak || s->waits || s->failed)
			json_array_append_new(list, site_json(a, &a->sites, i, numbers));
	}
	return list;
}

/* The groups by function, file and so on; the group with the largest peak comes first. */
static json_t *groups_json(const struct ss_analysis *a)
{
	json_t *o = json_object();

	for (int by = SS_BY_SITE + 1; by < SS_BYS; by++) {
		struct ss_ranking r = {0};
		json_t *list = json_array();
		ss_rank_peaks(&a->group[by], GROUPS_LISTED, &r);
		for (size_t i = 0; r.site && i < r.count; i++)
			json_array_append_new(list, site_json(a, &a->group[by], r.site[i], true));
		json_object_set_new(o, ss_by_name(by, false), list);
		free(r.site);
	}
	return o;
}

static json_t *rankings_json(const struct ss_analysis *a)
{
	static const char *const name[SS_RANKINGS] = {
		[SS_RANKING_PEAK] = "peak",           [SS_RANKING_ALLOCS] = "most_allocations",
		[SS_RANKING_REPEATS] = "short_lived", [SS_RANKING_LEAKS] = "never_freed",
		[SS_RANKING_WAITS] = "waits",
	};
	json_t *o = json_object();

	for (int kind = 0; kind < SS_RANKINGS; kind++) {
		json_t *list = json_array();
		for (size_t i = 0; i < a->ranking[kind].count; i++)
			json_array_append_new(list, json_integer(a->ranking[kind].site[i]));
		json_object_set_new(o, name[kind], list);
	}
	return o;
}

static json_t *spent_json(const struct ss_analysis *a, json_t **trims)
{
	json_t *waits = json_array();

	*trims = json_array();
	for (int i = 0; i < SS_WAIT_CAUSES; i++) {
		const struct ss_spent *s = &a->wait[i];
		if (s->count) {
			json_array_append_new(waits,
					      json_pack("{s:s, s:o, s:f, s:f}", "cause",
							ss_wait_name(i), "count", count(s->count),
							"time", (double)s->ns / 1e9, "longest",
							(double)s->longest_ns / 1e9));
		}
	}
	for (int i = 0; i < SS_TRIM_CAUSES; i++) {
		if (a->trim[i].count) {
			json_array_append_new(*trims,
					      json_pack("{s:s, s:o, s:o}", "cause", ss_trim_name(i),
							"count", count(a->trim[i].count), "bytes",
							count(a->trim_bytes[i])));
		}
	}
	return waits;
}

static json_t *failures_json(const struct ss_analysis *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->failures; i++) {
		const struct ss_failure *f = &a->failure[i];
		json_t *o = snapshot_json(a, &f->snapshot, true);
		json_object_set_new(o, "kind", json_string(f->limit ? "limit" : "out of memory"));
		json_object_set_new(o, "device",
				    f->snapshot.device == SS_NO_DEVICE ?
					    json_null() :
					    json_integer(f->snapshot.device));
		json_object_set_new(o, "pool", count(f->snapshot.pool));
		json_object_set_new(o, "site", count(f->site));
		json_object_set_new(o, f->limit ? "limit" : "device_free", count(f->device_free));
		json_object_set_new(o, "recorded_reserved", count(f->reserved));
		json_object_set_new(o, "recorded_used", count(f->used));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *phases_json(const struct ss_analysis *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->phases.count; i++) {
		const struct ss_phase *p = &a->phases.phase[i];
		if (!p->count)
			continue;
		json_array_append_new(
			list,
			json_pack(
				"{s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:[o, o]}",
				"name", ss_json_text(p->name), "count", count(p->count), "time",
				(double)p->ns / 1e9, "longest", (double)p->longest_ns / 1e9,
				"used_peak", count(p->used_peak), "used_peak_time",
				time_of(a, p->used_peak_ns), "device",
				p->device == SS_NO_DEVICE ? json_null() : json_integer(p->device),
				"reserved_peak", count(p->reserved_peak), "grew", p->grew,
				"allocations", count(p->allocs), "frees", count(p->frees),
				"peak_range", time_of(a, p->best_begin_ns),
				time_of(a, p->best_end_ns)));
	}
	return list;
}

static json_t *marks_json(const struct ss_analysis *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->phases.marks; i++) {
		const struct ss_phase_mark *m = &a->phases.mark[i];
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "name",
						      ss_json_text(a->phases.phase[m->phase].name),
						      "time", time_of(a, m->time_ns), "thread",
						      count(m->tid)));
	}
	return list;
}

json_t *ss_report_process_json(const struct ss_analysis *a, bool charts)
{
	const struct {
		const char *name, *text;
	} texts[] = {
		{"path", a->path},
		{"program", a->exe},
		{"command", a->command},
		{"host", a->host},
		{"launcher", a->launcher},
		{"job", a->job},
		{"somashim", a->version},
		{"runtime", a->runtime},
		{"recording", ss_trace_end_name(a->end)},
		{"damage", a->problem ? a->problem : ""},
		{"rebuilt", a->sites.rebuilt ? a->sites.rebuilt : ""},
		{"leaks_title", ss_report_leaks_title(a)},
		{"libraries", a->libraries},
	};
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{"pid", a->pid},
		{"events", a->events},
		{"threads", a->threads},
		{"streams", a->streams},
		{"lost_events", a->lost_events},
		{"lost_stacks", a->lost_stacks},
		{"lost_names", a->lost_names},
		{"unknown_frees", a->unknown_frees},
		{"lost_frees", a->lost_frees},
		{"reset_blocks", a->reset_blocks},
		{"suppressed_blocks", a->suppressed_blocks},
		{"suppressed_bytes", a->suppressed_bytes},
		{"lived_blocks", a->lived_blocks},
		{"lived_bytes", a->lived_bytes},
		{"begin_ns", a->first_ns + a->real_offset},
		{"damaged_places", a->problems},
		{"allocations", a->kind[SS_TRACE_ALLOC]},
		{"frees", a->kind[SS_TRACE_FREE]},
		{"all_failures", a->failures_all},
	};
	json_t *o = json_object(), *trims;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_object_set_new(o, texts[i].name, ss_json_text(texts[i].text));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		json_object_set_new(o, counts[i].name, count(counts[i].n));
	json_object_set_new(o, "by", json_string(ss_by_name(a->sites.by, false)));
	json_object_set_new(o, "rank", a->rank < 0 ? json_null() : json_integer(a->rank));
	json_object_set_new(o, "ranks", a->ranks < 0 ? json_null() : json_integer(a->ranks));
	json_object_set_new(o, "seconds", time_of(a, a->last_ns));
	json_object_set_new(o, "devices", devices_json(a));
	json_object_set_new(o, "pools", pools_json(a));
	json_object_set_new(o, "sites", sites_json(a, charts));
	json_object_set_new(o, "rankings", rankings_json(a));
	json_object_set_new(o, "wait_causes", spent_json(a, &trims));
	json_object_set_new(o, "trims", trims);
	json_object_set_new(o, "failures", failures_json(a));
	json_object_set_new(o, "part",
			    ss_part_is_all(&a->part) ?
				    json_null() :
				    json_pack("[f, o]", (double)a->part.from_ns / 1e9,
					      a->part.to_ns ?
						      json_real((double)a->part.to_ns / 1e9) :
						      json_null()));
	json_object_set_new(o, "phases", phases_json(a));
	json_object_set_new(o, "marks", marks_json(a));
	if (charts) {
		json_object_set_new(o, "frames", all_frames_json(&a->sites));
		json_object_set_new(o, "groups", groups_json(a));
		json_object_set_new(o, "charts", ss_report_chart_json(a));
	}
	return o;
}

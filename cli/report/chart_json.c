/* SPDX-License-Identifier: MIT */
/* What only the page needs as JSON: time lines and address maps; and the comparison of ranks. */
#include <string.h>

#include "cli/report/report.h"
#include "cli/writers/json.h"

static json_t *timeline_json(const struct ss_analysis *a, const struct ss_device_result *d) {
	const struct ss_timeline *t = &d->timeline;
	json_t *time = json_array(), *used = json_array(), *reserved = json_array();
	json_t *flight = json_array(), *held = json_array(), *sites = json_array();

	for (size_t i = 0; i < t->count; i++) {
		const struct ss_sample *s = &t->sample[i];
		json_array_append_new(time, json_real((double)(t->span_ns * i) / 1e9));
		json_array_append_new(used, json_integer((json_int_t)s->used));
		json_array_append_new(reserved, json_integer((json_int_t)s->reserved));
		json_array_append_new(flight, json_integer((json_int_t)s->in_flight));
	}
	for (size_t c = 0; c < a->charted_count; c++) {
		json_t *line = json_array();
		bool any = false;
		for (size_t i = 0; i < t->count; i++) {
			json_array_append_new(line, json_integer((json_int_t)t->sample[i].site[c]));
			any |= t->sample[i].site[c] != 0;
		}
		if (any) {
			json_array_append(held, line);
			json_array_append_new(sites, json_integer(a->charted[c]));
		}
		json_decref(line);
	}
	return json_pack("{s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "device", d->device,
		"span", (double)t->span_ns / 1e9, "time", time, "used", used,
		"reserved", reserved, "in_flight", flight, "sites", sites, "held", held);
}

static json_t *map_json(const struct ss_analysis *a, const struct ss_address_map *m) {
	json_t *gaps = json_array();

	for (size_t i = 0; i < m->gaps; i++) {
		json_array_append_new(gaps, json_integer(m->gap[i]));
	}
	return json_pack("{s:f, s:i, s:I, s:I, s:I, s:s, s:s, s:o}",
		"time", ss_report_seconds(a, m->time_ns), "pool", (int)m->pool,
		"bytes", (json_int_t)m->bytes, "cell", (json_int_t)m->cell_bytes,
		"largest_hole", (json_int_t)m->largest_hole, "live", m->live,
		"in_flight", m->in_flight, "gaps", gaps);
}

json_t *ss_report_chart_json(const struct ss_analysis *a) {
	json_t *lines = json_array(), *maps = json_array();

	for (size_t i = 0; i < a->devices; i++) {
		json_array_append_new(lines, timeline_json(a, &a->device[i]));
	}
	for (size_t i = 0; i < a->maps; i++) {
		json_array_append_new(maps, map_json(a, &a->map[i]));
	}
	return json_pack("{s:o, s:o}", "devices", lines, "maps", maps);
}

/* ---- ranks -------------------------------------------------------------- */

static json_t *over_json(const struct ss_over_ranks *o, const struct ss_over *x) {
	static const char *const figure[SS_OVER_FIGURES] = {
		[SS_OVER_ALLOCS] = "allocations",
		[SS_OVER_FREES] = "frees",
		[SS_OVER_MEAN] = "mean",
		[SS_OVER_PEAK] = "peak",
		[SS_OVER_RESERVED] = "reserved",
		[SS_OVER_LIVE] = "never_freed",
	};
	char text[512];
	const char *name = x->name ? x->name : ss_report_site_name(&o->process[x->process]->sites,
		x->site, text, sizeof(text));
	json_t *json = json_pack("{s:o, s:i}", "name", ss_json_text(name), "in", (int)x->in);

	for (int f = 0; f < SS_OVER_FIGURES; f++) {
		const struct ss_spread *s = &x->figure[f];
		const struct ss_analysis *most = o->process[s->max_at];
		json_object_set_new(json, figure[f], json_pack(
			"{s:f, s:f, s:f, s:f, s:i, s:o, s:o}", "min", s->min, "mean", s->mean,
			"max", s->max, "imbalance", s->imbalance, "process", (int)s->max_at,
			"rank", most->rank < 0 ? json_null() : json_integer(most->rank),
			"host", ss_json_text(most->host)));
	}
	return json;
}

json_t *ss_report_ranks_json(const struct ss_over_ranks *o) {
	json_t *pools = json_array(), *sites = json_array();

	for (size_t i = 0; i < o->pools; i++) {
		json_array_append_new(pools, over_json(o, &o->pool[i]));
	}
	for (size_t i = 0; i < o->sites && i < SS_RANKED; i++) {
		json_array_append_new(sites, over_json(o, &o->site[i]));
	}
	return json_pack("{s:i, s:o, s:o}", "processes", (int)o->processes, "pools", pools,
		"sites", sites);
}

json_t *ss_report_json(struct ss_analysis *const *list, size_t count,
		       const struct ss_over_ranks *o, bool charts) {
	json_t *processes = json_array(), *root;

	for (size_t i = 0; i < count; i++) {
		json_array_append_new(processes, ss_report_process_json(list[i], charts));
	}
	root = json_pack("{s:i, s:o}", "version", 1, "processes", processes);
	if (o) {
		json_object_set_new(root, "over_ranks", ss_report_ranks_json(o));
	}
	return root;
}

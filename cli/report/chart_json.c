/* SPDX-License-Identifier: MIT */
/* What only the page needs as JSON: time lines and address maps. */
#include "cli/report/report.h"

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

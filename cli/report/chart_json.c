/* SPDX-License-Identifier: MIT */
/*
 * The JSON that only the page needs: time lines, lives of blocks and address maps. A row of values
 * is a text of numbers with base 36 and spaces between them; "v*n" is n times v. So a row is short
 * if it seldom changes, and browsers read texts fast.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/report/report.h"
#include "cli/writers/json.h"

/* Of the rows of all call sites; those with the smallest peaks are left out */
#define BYTES_PER_SAMPLE 512

/* Returns the end of what was written: at most 16 characters. */
static char *write_base36(char *to, uint64_t n)
{
	char digit[16], *at = digit;

	do {
		*at++ = "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36];
	} while (n /= 36);
	while (at > digit)
		*to++ = *--at;
	return to;
}

/* Values that are `stride` bytes apart, at least one. NULL: out of memory. The caller frees it. */
static char *row(const void *first, size_t stride, size_t count)
{
	char *text = malloc(count * 17 + 1), *to = text;
	const char *at = first;

	for (size_t i = 0, n; text && i < count; i += n, at += n * stride) {
		uint64_t value = *(const uint64_t *)at;
		for (n = 1; i + n < count && *(const uint64_t *)(at + n * stride) == value; n++) {}
		to = write_base36(to, value);
		if (n > 1) {
			*to++ = '*';
			to = write_base36(to, n);
		}
		*to++ = ' ';
	}
	if (text)
		to[to > text ? -1 : 0] = '\0';
	return text;
}

static json_t *sample_row(const struct ss_timeline *t, const uint64_t *first)
{
	char *text = row(first, sizeof(*t->sample), t->count);
	json_t *json = text ? json_string_nocheck(text) : NULL;

	free(text);
	return json;
}

static bool any(const struct ss_timeline *t, size_t columns, size_t column)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->held[i * columns + column])
			return true;
	return false;
}

/* The sites or groups of a device, by the number in their list, and the bytes that they held. */
static json_t *held_json(const struct ss_analysis *a, const struct ss_timeline *t, enum ss_by by)
{
	json_t *held = json_array(), *sites = json_array();
	size_t columns = a->column[SS_BYS], room = t->room * BYTES_PER_SAMPLE;

	for (size_t i = 0; i < a->charted[by].count; i++) {
		size_t column = a->column[by] + i;
		if (!any(t, columns, column))
			continue;
		char *text = row(t->held + column, columns * sizeof(*t->held), t->count);
		size_t length = text ? strlen(text) : 0;
		if (text && (by != SS_BY_SITE || length <= room)) {
			json_array_append_new(held, json_string_nocheck(text));
			json_array_append_new(
				sites, json_integer((json_int_t)(by == SS_BY_SITE ?
									 a->charted[by].site[i] :
									 i)));
			room -= by == SS_BY_SITE ? length : 0;
		}
		free(text);
	}
	return json_pack("{s:o, s:o}", "sites", sites, "held", held);
}

static json_t *timeline_json(const struct ss_analysis *a, const struct ss_device_result *d)
{
	const struct ss_timeline *t = &d->timeline;
	json_t *by = json_object(), *outside = json_object();

	for (int k = 0; k < SS_TRACE_OUTSIDE_KINDS; k++)
		if (d->outside_peak.bytes[k])
			json_object_set_new(outside, ss_report_outside_name(k),
					    sample_row(t, &t->sample->outside[k]));
	if (d->outside_peak.rest)
		json_object_set_new(outside, "rest", sample_row(t, &t->sample->rest));
	for (int kind = 0; kind < SS_BYS; kind++)
		json_object_set_new(by, ss_by_name(kind, false), held_json(a, t, kind));
	return json_pack("{s:i, s:f, s:I, s:o, s:o, s:o, s:o, s:o}", "device", d->device, "span",
			 (double)t->span_ns / 1e9, "count", (json_int_t)t->count, "used",
			 sample_row(t, &t->sample->used), "reserved",
			 sample_row(t, &t->sample->reserved), "in_flight",
			 sample_row(t, &t->sample->in_flight), "by", by, "outside", outside);
}

/* The number of a group in the list `names`, which it is added to. `at` has the numbers + 1 by
 * group. */
static json_t *name_number(const struct ss_sites *groups, json_t *names, uint32_t *at,
			   uint32_t group)
{
	if (!at[group]) {
		json_array_append_new(names, ss_json_text(groups->frame[group].function));
		at[group] = (uint32_t)json_array_size(names);
	}
	return json_integer(at[group] - 1);
}

static json_t *lives_json(const struct ss_analysis *a)
{
	const struct ss_sites *streams = &a->group[SS_BY_STREAM],
			      *threads = &a->group[SS_BY_THREAD];
	json_t *list = json_array(), *stream_names = json_array(), *thread_names = json_array();
	uint32_t *stream_at = calloc(streams->count, sizeof(*stream_at));
	uint32_t *thread_at = calloc(threads->count, sizeof(*thread_at));

	for (size_t i = 0; stream_at && thread_at && i < a->charted[SS_BY_SITE].count; i++) {
		const struct ss_lives *s = &a->lives[i];
		json_t *blocks = json_array();
		for (size_t k = 0; k < s->count; k++) {
			const struct ss_life *l = &s->life[k];
			json_array_append_new(
				blocks,
				json_pack(
					"[f, o, I, o, o]", ss_report_seconds(a, l->begin_ns),
					l->end_ns == UINT64_MAX ?
						json_null() :
						json_real(ss_report_seconds(a, l->end_ns)),
					(json_int_t)l->bytes,
					name_number(streams, stream_names, stream_at, l->stream),
					name_number(threads, thread_names, thread_at, l->thread)));
		}
		json_array_append_new(list, json_pack("{s:i, s:I, s:o}", "site",
						      (int)a->charted[SS_BY_SITE].site[i], "all",
						      (json_int_t)s->all, "blocks", blocks));
	}
	free(stream_at);
	free(thread_at);
	return json_pack("{s:o, s:o, s:o}", "sites", list, "streams", stream_names, "threads",
			 thread_names);
}

static json_t *map_json(const struct ss_analysis *a, const struct ss_address_map *m)
{
	json_t *gaps = json_array();

	for (size_t i = 0; i < m->gaps; i++)
		json_array_append_new(gaps, json_integer(m->gap[i]));
	return json_pack("{s:f, s:i, s:I, s:I, s:I, s:s, s:s, s:o}", "time",
			 ss_report_seconds(a, m->time_ns), "pool", (int)m->pool, "bytes",
			 (json_int_t)m->bytes, "cell", (json_int_t)m->cell_bytes, "largest_hole",
			 (json_int_t)m->largest_hole, "live", m->live, "in_flight", m->in_flight,
			 "gaps", gaps);
}

/* Ranges as [name, begin, end, thread, depth]. */
static json_t *spans_json(const struct ss_analysis *a)
{
	const struct ss_phases *p = &a->phases;
	json_t *list = json_array();

	for (size_t i = 0; i < p->spans; i++) {
		const struct ss_phase_span *s = &p->span[i];
		json_array_append_new(list, json_pack("[o, f, f, I, i]",
						      ss_json_text(p->phase[s->phase].name),
						      ss_report_seconds(a, s->begin_ns),
						      ss_report_seconds(a, s->end_ns),
						      (json_int_t)s->tid, (int)s->depth));
	}
	return list;
}

json_t *ss_report_chart_json(const struct ss_analysis *a)
{
	json_t *lines = json_array(), *maps = json_array();

	for (size_t i = 0; i < a->devices; i++)
		json_array_append_new(lines, timeline_json(a, &a->device[i]));
	for (size_t i = 0; i < a->maps; i++)
		json_array_append_new(maps, map_json(a, &a->map[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:I}", "devices", lines, "maps", maps, "lives",
			 lives_json(a), "spans", spans_json(a), "all_spans",
			 (json_int_t)a->phases.spans_all);
}

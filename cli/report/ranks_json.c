/* SPDX-License-Identifier: MIT */
/* The whole report as JSON: the processes, and the comparison of the ranks of a job. */
#include "cli/report/report.h"
#include "cli/writers/json.h"

static json_t *over_json(const struct ss_over_ranks *o, const struct ss_over *x)
{
	static const char *const figure[SS_OVER_FIGURES] = {
		[SS_OVER_ALLOCS] = "allocations", [SS_OVER_FREES] = "frees",
		[SS_OVER_MEAN] = "mean",          [SS_OVER_PEAK] = "peak",
		[SS_OVER_RESERVED] = "reserved",  [SS_OVER_LIVE] = "never_freed",
	};
	char text[SS_SITE_NAME];
	const char *name = x->name ? x->name :
				     ss_report_site_name(&o->process[x->process]->sites, x->site,
							 text, sizeof(text));
	json_t *json = json_pack("{s:o, s:i}", "name", ss_json_text(name), "in", (int)x->in);

	for (int f = 0; f < SS_OVER_FIGURES; f++) {
		const struct ss_spread *s = &x->figure[f];
		const struct ss_analysis *most = o->process[s->max_at];
		json_object_set_new(
			json, figure[f],
			json_pack("{s:f, s:f, s:f, s:f, s:i, s:o, s:o}", "min", s->min, "mean",
				  s->mean, "max", s->max, "imbalance", s->imbalance, "process",
				  (int)s->max_at, "rank",
				  most->rank < 0 ? json_null() : json_integer(most->rank), "host",
				  ss_json_text(most->host)));
	}
	return json;
}

static json_t *rows_json(const struct ss_over_ranks *o)
{
	json_t *list = json_array();

	for (size_t i = 0; i < o->processes; i++) {
		const struct ss_rank_row *r = &o->row[i];
		const struct ss_analysis *a = o->process[r->process];
		json_array_append_new(
			list,
			json_pack("{s:o, s:i, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "rank",
				  a->rank < 0 ? json_null() : json_integer(a->rank), "pid",
				  (int)a->pid, "host", ss_json_text(a->host), "path",
				  ss_json_text(a->path), "used_peak", (json_int_t)r->used_peak,
				  "reserved_peak", (json_int_t)r->reserved_peak, "used_at_end",
				  (json_int_t)r->end, "growing", (json_int_t)r->growing, "failures",
				  (json_int_t)r->failures));
	}
	return list;
}

#define MOST_STEPS 1000 /* of one GPU */

/* Seconds since the first change, and bytes. Of many steps, the highest of each group stays. */
static json_t *steps_json(const struct ss_shared_gpu *g)
{
	size_t group = (g->steps + MOST_STEPS - 1) / MOST_STEPS;
	json_t *list = json_array();

	for (size_t i = 0; i < g->steps; i += group) {
		size_t best = i;
		for (size_t k = i; k < i + group && k < g->steps; k++)
			best = g->step[k].reserved > g->step[best].reserved ? k : best;
		json_array_append_new(
			list, json_pack("[f, I]",
					(double)(g->step[best].time_ns - g->step[0].time_ns) / 1e9,
					(json_int_t)g->step[best].reserved));
	}
	return list;
}

static json_t *gpus_json(const struct ss_over_ranks *o)
{
	json_t *list = json_array();

	for (size_t i = 0; i < o->gpus; i++) {
		const struct ss_shared_gpu *g = &o->gpu[i];
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:I, s:I, s:I, s:f, s:o}", "host",
				  ss_json_text(g->host), "pci", ss_json_text(g->pci), "processes",
				  (json_int_t)g->processes, "peak", (json_int_t)g->peak,
				  "sum_of_peaks", (json_int_t)g->sum_of_peaks, "peak_time",
				  g->steps ? (double)(g->peak_ns - g->step[0].time_ns) / 1e9 : 0.0,
				  "steps", steps_json(g)));
	}
	return list;
}

json_t *ss_report_ranks_json(const struct ss_over_ranks *o)
{
	json_t *pools = json_array(), *sites = json_array();

	for (size_t i = 0; i < o->pools; i++)
		json_array_append_new(pools, over_json(o, &o->pool[i]));
	for (size_t i = 0; i < o->sites && i < SS_RANKED; i++)
		json_array_append_new(sites, over_json(o, &o->site[i]));
	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "processes", (int)o->processes, "pools",
			 pools, "sites", sites, "ranks", rows_json(o), "shared_gpus", gpus_json(o));
}

json_t *ss_report_json(struct ss_analysis *const *list, size_t count, const struct ss_over_ranks *o,
		       bool charts)
{
	json_t *processes = json_array(), *root;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(processes, ss_report_process_json(list[i], charts));
	root = json_pack("{s:i, s:o}", "version", 1, "processes", processes);
	if (o)
		json_object_set_new(root, "over_ranks", ss_report_ranks_json(o));
	return root;
}

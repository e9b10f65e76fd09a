/* SPDX-License-Identifier: MIT */
/* Chooses one run of a job if the recordings are of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/analysis/runs.h"
#include "cli/arguments.h"
#include "cli/plural.h"
#include "cli/report_run.h"

static void describe_run(struct ss_analysis *const *list, const size_t *run, size_t count,
			 size_t which)
{
	const struct ss_analysis *first = NULL;
	size_t processes = 0;
	char when[64] = "";

	for (size_t i = 0; i < count; i++) {
		if (run[i] == which) {
			processes++;
			first = !first || ss_analysis_begin(list[i]) < ss_analysis_begin(first) ?
					list[i] :
					first;
		}
	}
	if (first) {
		time_t t = (time_t)(ss_analysis_begin(first) / 1000000000);
		struct tm tm;
		strftime(when, sizeof(when), "%F %T", localtime_r(&t, &tm));
		fprintf(stderr, "somashim: report:   run %zu: %zu %s from %s%s%s\n", which + 1,
			processes, ss_plural(processes, "process", "processes"), when,
			first->job[0] ? ", job " : "", first->job);
	}
}

size_t ss_report_run(struct ss_analysis **list, size_t count, size_t wanted)
{
	size_t *run = calloc(count + 1, sizeof(*run)),
	       runs = run ? ss_runs_split(list, count, run) : 0, n = 0;
	size_t chosen = wanted ? wanted - 1 : runs - 1;

	if (runs == 0)
		ss_cli_error("report: out of memory");
	else if (chosen >= runs)
		ss_cli_error("report: there is no run %zu, only %zu", wanted, runs);
	if (runs > 1) {
		ss_cli_error("report: the files are of %zu runs; %s", runs,
			     wanted ? "this is what was asked for" :
				      "this is the newest, --run N shows another");
		for (size_t i = 0; i < runs; i++)
			describe_run(list, run, count, i);
	}
	for (size_t i = 0; i < count && chosen < runs; i++) {
		if (run[i] == chosen) {
			struct ss_analysis *other = list[n];
			size_t of = run[n];
			list[n] = list[i];
			run[n++] = run[i];
			list[i] = other;
			run[i] = of;
		}
	}
	free(run);
	return n;
}

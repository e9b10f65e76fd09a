/* SPDX-License-Identifier: MIT */
/* Analyses one file of a report: a recording, or a memory snapshot that becomes a recording, or one
 * phase of either. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report_analysis.h"
#include "cli/snapshot/snapshot_trace.h"
#include "cli/trace_files.h"

/* Looks for the range of --phase in a file that is shown as `path`. False with a line in `err`. */
static bool find_phase(const char *name, uint64_t number, const char *path, const char *file,
		       struct ss_part *part, char *err, size_t err_size)
{
	const struct ss_analysis_config config = {.phase = name, .phase_number = number};
	struct ss_analysis *all = ss_analysis_run(file, &config, err, err_size);
	uint64_t begin = 0, end = 0;

	if (!all)
		return false;
	const struct ss_phases *p = &all->phases;
	const struct ss_phase *found = NULL;
	size_t n = (size_t)snprintf(err, err_size, "%s: no phase `%s'%s", path, name,
				    p->count ? "; there is" :
					       ": the recording has none (roctxRangePush)");
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->phase[i].name, name) == 0 && p->phase[i].count)
			found = &p->phase[i];
		if (n < err_size && i < 10)
			n += (size_t)snprintf(err + n, err_size - n, "%s %.60s", i ? "," : "",
					      p->phase[i].name);
	}
	if (found) {
		begin = number ? p->wanted_begin_ns : found->best_begin_ns;
		end = number ? p->wanted_end_ns : found->best_end_ns;
		snprintf(err, err_size, "%s: there are %llu ranges `%s'", path,
			 (unsigned long long)found->count, name);
	}
	*part = (struct ss_part){begin - all->first_ns, end - all->first_ns};
	part->to_ns += part->to_ns == 0; /* an empty range at the begin; 0 means the end */
	ss_analysis_free(all);
	return end != 0;
}

struct ss_analysis *ss_report_analysis(const char *path, const struct ss_analysis_config *config,
				       const char *phase, uint64_t number, char *err,
				       size_t err_size)
{
	struct ss_analysis_config part = *config;
	struct ss_analysis *result = NULL;
	const char *file = path;
	char made[64];
	int fd = -1;

	if (!ss_is_trace(path) && ss_is_snapshot(path, true)) {
		fd = ss_snapshot_trace(path, made, err, err_size);
		file = fd >= 0 ? made : NULL;
	}
	if (file && phase && !find_phase(phase, number, path, file, &part.part, err, err_size))
		file = NULL;
	if (file)
		result = ss_analysis_run(file, &part, err, err_size);
	if (result && fd >= 0 && !ss_analysis_rename(result, path)) {
		ss_analysis_free(result);
		result = NULL;
		snprintf(err, err_size, "%s: out of memory", path);
	}
	if (fd >= 0)
		close(fd);
	return result;
}

/* SPDX-License-Identifier: MIT */
/* Folded stacks: "main;solve;allocate 4096" per line. Sums need the whole trace, so this is
 * written from the analysis. */
#include <stdlib.h>

#include "cli/convert/convert.h"

/* A function's name must not look like the end of a frame or of the line. */
static void write_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : *name == '\n' ? ' ' : *name, out);
}

static void write_line(FILE *out, const struct ss_sites *s, uint32_t site, const char *prefix,
		       uint64_t value)
{
	const struct ss_site *at = &s->site[site];

	if (value == 0)
		return;
	fputs(prefix, out);
	for (uint32_t i = at->frames; i-- > 0;) {
		const struct ss_frame *f = ss_site_frame(s, at, i);
		write_name(out, f->function);
		if (f->source[0]) {
			fputs(" (", out);
			write_name(out, ss_frame_file(f));
			fprintf(out, f->line ? ":%d)" : ")", f->line);
		}
		fputs(i ? ";" : "", out);
	}
	fprintf(out, "%s %llu\n", at->frames ? "" : "unknown", (unsigned long long)value);
}

static void write_peaks(struct ss_convert *c, const struct ss_analysis *a)
{
	bool several = a->devices > 1 && c->config->device < 0;

	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_snapshot *p = &a->device[i].used_peak;
		uint64_t rest = p->level.used;
		char prefix[32] = "";
		if (!ss_convert_wants(c, a->device[i].device))
			continue;
		if (several)
			snprintf(prefix, sizeof(prefix), "GPU %d;", a->device[i].device);
		for (size_t k = 0; k < p->holders; k++) {
			write_line(c->out, &a->sites, p->holder[k].site, prefix,
				   p->holder[k].bytes);
			rest -= p->holder[k].bytes;
		}
		if (p->event && rest) {
			fprintf(c->out, "%sother call sites %llu\n", prefix,
				(unsigned long long)rest);
		}
	}
}

bool ss_convert_folded(struct ss_convert *c)
{
	const struct ss_analysis_config config = {.files = c->files,
						  .part = c->config->part,
						  .progress = c->config->progress,
						  .arg = c->config->arg};
	struct ss_analysis *a = ss_analysis_run(c->config->path, &config, c->err, c->err_size);

	if (!a)
		return false;
	if (c->config->value == SS_FOLDED_PEAK)
		write_peaks(c, a);
	for (size_t i = 0; c->config->value != SS_FOLDED_PEAK && i < a->sites.count; i++) {
		const struct ss_site *s = &a->sites.site[i];
		write_line(c->out, &a->sites, (uint32_t)i, "",
			   c->config->value == SS_FOLDED_LEAKS ? s->live : s->bytes);
	}
	ss_analysis_free(a);
	return true;
}

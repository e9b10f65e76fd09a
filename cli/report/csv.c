/* SPDX-License-Identifier: MIT */
/* Call sites, or groups of them, as CSV (RFC 4180) for spreadsheets and scripts: one row for each
 * site of each process. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "core/base/utf8.h"

/* In quotes. A text that begins as a formula of a spreadsheet gets a blank in front. */
static void put_text(FILE *out, const char *text)
{
	char *clean = strdup(text);

	if (clean)
		ss_utf8_clean(clean);
	fputc('"', out);
	if (text[0] && strchr("=+-@", text[0]))
		fputc(' ', out);
	for (const char *at = clean ? clean : ""; *at; at++) {
		if (*at == '"')
			fputc('"', out);
		fputc(*at, out);
	}
	fputc('"', out);
	free(clean);
}

/* The frames, innermost first: "function (file:line) < ...". */
static void put_stack(FILE *out, const struct ss_sites *sites, const struct ss_site *s)
{
	char *text = ss_site_text(sites, s, true);

	for (char *at = text; at && *at; at++)
		if (*at == '\n')
			*at = at[1] ? '|' : '\0';
	put_text(out, text ? text : "");
	free(text);
}

static void put_site(FILE *out, const struct ss_analysis *a, uint32_t i)
{
	const struct ss_site *s = &a->sites.site[i];
	double ns = a->last_ns > a->first_ns ? (double)(a->last_ns - a->first_ns) : 1;
	char name[SS_SITE_NAME];

	put_text(out, a->path);
	fprintf(out, ",%" PRIu32 ",", a->pid);
	if (a->rank >= 0)
		fprintf(out, "%d", a->rank);
	fprintf(out, ",%" PRIu32 ",", i);
	put_text(out, ss_report_site_name(&a->sites, i, name, sizeof(name)));
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9f,%.0f,", s->allocs,
		s->frees, s->bytes, s->peak, ss_report_seconds(a, s->peak_ns), s->byte_ns / ns);
	if (s->frees)
		fprintf(out, "%.9f", (double)s->lifetime_ns / (double)s->frees / 1e9);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%d,%d,%" PRIu64 ",%" PRIu64 ",%.9f,%" PRIu64 ",",
		s->live, s->live_blocks, ss_site_grows(s), s->suppressed, s->repeats, s->waits,
		(double)s->wait_ns / 1e9, s->failed);
	put_stack(out, &a->sites, s);
	fputs("\r\n", out);
}

void ss_report_csv(FILE *out, struct ss_analysis *const *list, size_t count)
{
	fputs("path,pid,rank,site,name,allocations,frees,bytes,peak,peak_time,mean,mean_life,live,"
	      "live_blocks,grows,suppressed,repeats,waits,wait_time,failed,stack\r\n",
	      out);
	for (size_t p = 0; p < count; p++) {
		for (size_t i = 0; i < list[p]->sites.count; i++) {
			const struct ss_site *s = &list[p]->sites.site[i];
			if (s->allocs || s->peak || s->waits || s->failed)
				put_site(out, list[p], (uint32_t)i);
		}
	}
}

void ss_report_difference_csv(FILE *out, const struct ss_difference *d)
{
	static const char *const name[SS_DIFFERENCE_FIGURES] = {
		[SS_DIFFERENCE_PEAK] = "peak",
		[SS_DIFFERENCE_LIVE] = "live",
		[SS_DIFFERENCE_ALLOCS] = "allocations",
		[SS_DIFFERENCE_BYTES] = "bytes",
	};
	char text[SS_SITE_NAME];

	fputs("name,in_a,in_b", out);
	for (int f = 0; f < SS_DIFFERENCE_FIGURES; f++)
		fprintf(out, ",%s_a,%s_b", name[f], name[f]);
	fputs("\r\n", out);
	for (size_t i = 0; i < d->count; i++) {
		const struct ss_difference_site *x = &d->site[i];
		put_text(out, ss_report_site_name(x->sites, x->site, text, sizeof(text)));
		fprintf(out, ",%d,%d", x->in[0], x->in[1]);
		for (int f = 0; f < SS_DIFFERENCE_FIGURES; f++)
			fprintf(out, ",%.0f,%.0f", x->figure[0][f], x->figure[1][f]);
		fputs("\r\n", out);
	}
}

/* SPDX-License-Identifier: MIT */
/* Prints the difference between two recordings as text and as JSON. */
#include "cli/plural.h"
#include "cli/report/report.h"
#include "cli/writers/json.h"

static const char *bytes(double n)
{
	static char text[8][32];
	static unsigned next;

	return ss_report_bytes(text[next++ % 8], (uint64_t)n);
}

/* With its sign: "+1.50 MiB". */
static const char *change(double from, double to)
{
	static char text[8][34];
	static unsigned next;
	char *out = text[next++ % 8];

	out[0] = to < from ? '-' : '+';
	ss_report_bytes(out + 1, (uint64_t)(to < from ? from - to : to - from));
	return to == from ? "=" : out;
}

static void print_total(FILE *out, const char *name, double a, double b)
{
	fprintf(out, "  %-16s %12s %12s %13s\n", name, bytes(a), bytes(b), change(a, b));
}

static void print_site(FILE *out, const struct ss_difference_site *x)
{
	const double *a = x->figure[0], *b = x->figure[1];
	char name[SS_SITE_NAME];

	fprintf(out, "  %13s %12s %12s %13s %10.0f %10.0f  %s%s\n",
		change(a[SS_DIFFERENCE_PEAK], b[SS_DIFFERENCE_PEAK]), bytes(a[SS_DIFFERENCE_PEAK]),
		bytes(b[SS_DIFFERENCE_PEAK]), change(a[SS_DIFFERENCE_LIVE], b[SS_DIFFERENCE_LIVE]),
		a[SS_DIFFERENCE_ALLOCS], b[SS_DIFFERENCE_ALLOCS],
		!x->in[0] ? "new: " :
		!x->in[1] ? "gone: " :
			    "",
		ss_report_site_name(x->sites, x->site, name, sizeof(name)));
}

void ss_report_difference_text(FILE *out, const struct ss_difference *d, const char *a,
			       const char *b, size_t most)
{
	const struct ss_difference_side *s = d->side;
	size_t half = d->count > most ? most / 2 : 0;

	fprintf(out, "A: %s\nB: %s\n", a, b);
	if (s[0].processes > 1 || s[1].processes > 1)
		fprintf(out, "means over %zu and %zu %s\n", s[0].processes, s[1].processes,
			ss_plural(s[1].processes, "process", "processes"));
	fprintf(out, "\n  %-16s %12s %12s %13s\n", "", "A", "B", "change");
	print_total(out, "used peak", s[0].used_peak, s[1].used_peak);
	print_total(out, "reserved peak", s[0].reserved_peak, s[1].reserved_peak);
	print_total(out, "used at the end", s[0].end, s[1].end);
	fprintf(out, "  %-16s %12.0f %12.0f\n  %-16s %12.0f %12.0f\n", "allocations", s[0].allocs,
		s[1].allocs, "failures", s[0].failures, s[1].failures);
	fprintf(out, "\nWhat changed, what grew most first\n  %13s %12s %12s %13s %10s %10s  %s\n",
		"peak", "A", "B", "at the end", "allocs A", "B",
		d->count ? ss_report_sites_head(d->site[0].sites) : "");
	/* If there are many sites, those that grew most and those that shrank most are printed. */
	for (size_t i = 0; i < d->count; i++) {
		if (half && i == most - half) {
			fprintf(out, "  and %zu more between these\n", d->count - most);
			i = d->count - half;
		}
		print_site(out, &d->site[i]);
	}
	if (d->count == 0)
		fprintf(out, "  none\n");
}

static json_t *pair(const struct ss_difference_site *x, enum ss_difference_figure f)
{
	return json_pack("[f, f]", x->figure[0][f], x->figure[1][f]);
}

static json_t *side_json(const struct ss_difference_side *s, const char *name)
{
	return json_pack("{s:o, s:I, s:f, s:f, s:f, s:f, s:f}", "name", ss_json_text(name),
			 "processes", (json_int_t)s->processes, "used_peak", s->used_peak,
			 "reserved_peak", s->reserved_peak, "used_at_end", s->end, "allocations",
			 s->allocs, "failures", s->failures);
}

json_t *ss_report_difference_json(const struct ss_difference *d, const char *a, const char *b)
{
	json_t *sites = json_array();

	for (size_t i = 0; i < d->count; i++) {
		const struct ss_difference_site *x = &d->site[i];
		char name[SS_SITE_NAME];
		json_array_append_new(
			sites,
			json_pack("{s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "name",
				  ss_json_text(ss_report_site_name(x->sites, x->site, name,
								   sizeof(name))),
				  "in_a", x->in[0], "in_b", x->in[1], "peak",
				  pair(x, SS_DIFFERENCE_PEAK), "live", pair(x, SS_DIFFERENCE_LIVE),
				  "allocations", pair(x, SS_DIFFERENCE_ALLOCS), "bytes",
				  pair(x, SS_DIFFERENCE_BYTES), "frames",
				  ss_report_frames_json(x->sites, &x->sites->site[x->site])));
	}
	enum ss_by by = d->count ? d->site[0].sites->by : SS_BY_SITE;
	return json_pack("{s:i, s:{s:s, s:o, s:o, s:o}}", "version", 1, "difference", "by",
			 ss_by_name(by, false), "a", side_json(&d->side[0], a), "b",
			 side_json(&d->side[1], b), "sites", sites);
}

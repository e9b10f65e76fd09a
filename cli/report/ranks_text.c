/* SPDX-License-Identifier: MIT */
/* The comparison of the processes of a job as text: columns as in AMReX's TinyProfiler. */
#include <inttypes.h>
#include <string.h>

#include "cli/report/report.h"

static const char *bytes(double n)
{
	static char text[8][32];
	static unsigned next;

	return ss_report_bytes(text[next++ % 8], (uint64_t)n);
}

/* "rank 3 on node1", or the process id outside of a job. */
static void print_where(FILE *out, const struct ss_analysis *a)
{
	if (a->rank >= 0)
		fprintf(out, "rank %d", a->rank);
	else
		fprintf(out, "pid %u", a->pid);
	fprintf(out, "%s%s", a->host[0] ? " on " : "", a->host);
}

static void print_table(FILE *out, const struct ss_over_ranks *o, const struct ss_over *list,
			size_t count, size_t most, const char *title)
{
	fprintf(out, "\n%s\n  %9s %9s %11s %11s %11s %11s %11s %11s %9s\n", title, "Nalloc",
		"Nfree", "AvgMem min", "avg", "max", "MaxMem min", "avg", "max", "max/avg");
	for (size_t i = 0; i < count && i < most; i++) {
		const struct ss_over *x = &list[i];
		const struct ss_spread *mean = &x->figure[SS_OVER_MEAN];
		const struct ss_spread *peak = &x->figure[SS_OVER_PEAK];
		char name[SS_SITE_NAME];
		fprintf(out, "  %9.0f %9.0f %11s %11s %11s %11s %11s %11s %9.2f  ",
			x->figure[SS_OVER_ALLOCS].mean * (double)o->processes,
			x->figure[SS_OVER_FREES].mean * (double)o->processes, bytes(mean->min),
			bytes(mean->mean), bytes(mean->max), bytes(peak->min), bytes(peak->mean),
			bytes(peak->max), peak->imbalance);
		fprintf(out, "%s\n%*s",
			x->name ? x->name :
				  ss_report_site_name(&o->process[x->process]->sites, x->site, name,
						      sizeof(name)),
			85, "most in ");
		print_where(out, o->process[peak->max_at]);
		if (x->in < o->processes)
			fprintf(out, ", in %zu of %zu processes", x->in, o->processes);
		fprintf(out, "\n");
	}
	if (count > most)
		fprintf(out, "  and %zu more\n", count - most);
}

static void print_rows(FILE *out, const struct ss_over_ranks *o, size_t most)
{
	fprintf(out, "\nProcesses, the worst first\n  %11s %11s %11s %11s %9s\n", "used peak",
		"reserved", "at the end", "growing", "failures");
	for (size_t i = 0; i < o->processes && i < most; i++) {
		const struct ss_rank_row *r = &o->row[i];
		fprintf(out, "  %11s %11s %11s %11s %9" PRIu64 "  ", bytes((double)r->used_peak),
			bytes((double)r->reserved_peak), bytes((double)r->end),
			bytes((double)r->growing), r->failures);
		print_where(out, o->process[r->process]);
		fprintf(out, "\n");
	}
	if (o->processes > most)
		fprintf(out, "  and %zu more (--json and -o have all)\n", o->processes - most);
}

static void print_gpus(FILE *out, const struct ss_over_ranks *o, size_t most)
{
	for (size_t i = 0; i < o->gpus && i < most; i++) {
		const struct ss_shared_gpu *g = &o->gpu[i];
		if (i == 0) {
			fprintf(out,
				"\nGPUs that several processes share: reserved together\n  %9s "
				"%11s %11s\n",
				"processes", "at most", "if at once");
		}
		fprintf(out, "  %9zu %11s %11s  %s on %s\n", g->processes, bytes((double)g->peak),
			bytes((double)g->sum_of_peaks), g->pci, g->host[0] ? g->host : "this host");
	}
	if (o->gpus > most)
		fprintf(out, "  and %zu more\n", o->gpus - most);
}

void ss_report_ranks_text(FILE *out, const struct ss_over_ranks *o, size_t most)
{
	char title[32];

	fprintf(out, "%zu processes\n", o->processes);
	print_rows(out, o, most);
	print_gpus(out, o, most);
	print_table(out, o, o->pool, o->pools, most, "Pools: used memory");
	enum ss_by by = o->process[0]->sites.by;
	snprintf(title, sizeof(title), "By %s", ss_by_name(by, false));
	print_table(out, o, o->site, o->sites, most,
		    by == SS_BY_SITE ? "Call sites, innermost first" : title);
}

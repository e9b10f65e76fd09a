/* SPDX-License-Identifier: MIT */
/* The report of one process as text for a terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plural.h"
#include "cli/report/report.h"
#include "core/base/utf8.h"

static const char *bytes(uint64_t n)
{
	static char text[8][32];
	static unsigned next;

	return ss_report_bytes(text[next++ % 8], n);
}

static const char *site_name(const struct ss_analysis *a, uint32_t site)
{
	static char text[SS_SITE_NAME];

	return ss_report_site_name(&a->sites, site, text, sizeof(text));
}

static const char *device_name(int device)
{
	static char text[32];

	return ss_report_device_name(device, text);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100 * (double)part / (double)all : 0;
}

/* ---- the process -------------------------------------------------------- */

static void print_process(FILE *out, const struct ss_analysis *a)
{
	const uint64_t allocs = a->kind[SS_TRACE_ALLOC], frees = a->kind[SS_TRACE_FREE];
	char *path = strdup(a->path); /* anybody may have named files in a folder */

	if (path)
		ss_utf8_clean(path);
	fprintf(out, "%s\n", path ? path : "");
	free(path);
	fprintf(out, "  %s\n",
		a->command[0] ? a->command :
		a->exe[0]     ? a->exe :
				"program not known");
	if (a->pid)
		fprintf(out, "  process %" PRIu32 "%s%s", a->pid, a->host[0] ? " on " : "",
			a->host);
	else
		fprintf(out, "  process not known");
	if (a->rank >= 0)
		fprintf(out, ", rank %d", a->rank);
	if (a->rank >= 0 && a->ranks >= 0)
		fprintf(out, " of %d", a->ranks);
	if (a->job[0])
		fprintf(out, ", %s job %s", a->launcher, a->job);
	if (a->end != SS_TRACE_END_CLOSED)
		fprintf(out, "; recording: %s", ss_trace_end_name(a->end));
	fprintf(out, "\n");
	fprintf(out, "  %" PRIu64 " %s in %.3f s, %zu %s, %zu %s; %" PRIu64 " %s, %" PRIu64 " %s\n",
		a->events, ss_plural(a->events, "event", "events"),
		ss_report_seconds(a, a->last_ns), a->threads,
		ss_plural(a->threads, "thread", "threads"), a->streams,
		ss_plural(a->streams, "stream", "streams"), allocs,
		ss_plural(allocs, "allocation", "allocations"), frees,
		ss_plural(frees, "free", "frees"));
	if (!ss_part_is_all(&a->part)) {
		fprintf(out, "  from %.3f s", (double)a->part.from_ns / 1e9);
		if (a->part.to_ns)
			fprintf(out, " to %.3f s", (double)a->part.to_ns / 1e9);
		fprintf(out, " of the recording; times count from there\n");
	}
	if (a->lived_blocks) {
		fprintf(out, "  %" PRIu64 " %s, %s, lived before the recording begins\n",
			a->lived_blocks, ss_plural(a->lived_blocks, "block", "blocks"),
			bytes(a->lived_bytes));
	}
	if (a->lost_events || a->lost_stacks) {
		fprintf(out, "  lost while recording: %" PRIu64 " %s, %" PRIu64 " %s\n",
			a->lost_events, ss_plural(a->lost_events, "event", "events"),
			a->lost_stacks, ss_plural(a->lost_stacks, "call stack", "call stacks"));
	}
	if (a->lost_names) {
		fprintf(out,
			"  %" PRIu64 " %s of Python without a name: the program has more functions "
			"than a recording keeps\n",
			a->lost_names, ss_plural(a->lost_names, "frame", "frames"));
	}
	if (a->unknown_frees) {
		fprintf(out, "  %" PRIu64 " %s from before the recording\n", a->unknown_frees,
			ss_plural(a->unknown_frees, "free of a block", "frees of blocks"));
	}
	if (a->lost_frees) {
		fprintf(out, "  %" PRIu64 " %s allocated again\n", a->lost_frees,
			ss_plural(a->lost_frees, "free is missing: its address was",
				  "frees are missing: the addresses were"));
	}
	if (a->reset_blocks) {
		fprintf(out, "  %" PRIu64 " %s memory, as a device reset does\n", a->reset_blocks,
			ss_plural(a->reset_blocks, "block went with its",
				  "blocks went with their"));
	}
	if (a->sites.rebuilt) {
		fprintf(out,
			"  %s was built after the recording, so names are missing (--debug-path "
			"finds a copy)\n",
			a->sites.rebuilt);
	}
	if (a->problem)
		fprintf(out, "  damaged in %zu %s: %s\n", a->problems,
			ss_plural(a->problems, "place", "places"), a->problem);
}

/* ---- peaks -------------------------------------------------------------- */

static void print_usage(FILE *out, const struct ss_analysis *a, const struct ss_usage *u,
			const char *name)
{
	fprintf(out, "  %-20.20s %12s %9.3f %12s %12s | %12s %9.3f %12s\n", name,
		bytes(u->used_peak.used), ss_report_seconds(a, u->used_peak_ns),
		bytes(u->used_peak.in_flight), bytes(u->used_peak.reserved),
		bytes(u->reserved_peak.reserved), ss_report_seconds(a, u->reserved_peak_ns),
		bytes(u->end.used));
}

static void print_peaks(FILE *out, const struct ss_analysis *a)
{
	char name[64];

	fprintf(out, "\nPeaks\n  %-20s %12s %9s %12s %12s | %12s %9s %12s\n", "", "used", "at s",
		"in flight", "reserved", "reserved", "at s", "used at end");
	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_device_result *d = &a->device[i];
		snprintf(name, sizeof(name), "%s %.40s", device_name(d->device), d->pci);
		print_usage(out, a, &d->usage, name);
		for (size_t k = 0; k < a->pools; k++) {
			if (a->pool[k].device == d->device) {
				snprintf(name, sizeof(name), "  %s",
					 a->pool[k].name[0] ? a->pool[k].name :
							      "pool without name");
				print_usage(out, a, &a->pool[k].usage, name);
			}
		}
	}
}

static void print_holders(FILE *out, const struct ss_analysis *a, const struct ss_snapshot *p,
			  size_t most, const char *indent)
{
	size_t n = p->holders < most ? p->holders : most;

	for (size_t i = 0; i < n; i++) {
		const struct ss_holder *h = &p->holder[i];
		fprintf(out, "%s%12s %5.1f %% %9" PRIu64 "  %s\n", indent, bytes(h->bytes),
			percent(h->bytes, p->level.used), h->blocks, site_name(a, h->site));
	}
	if (p->holders > n) {
		fprintf(out, "%sand %zu more %s\n", indent, p->holders - n,
			ss_by_name(a->sites.by, p->holders - n != 1));
	}
}

static void print_waste(FILE *out, const struct ss_snapshot *p, const char *indent)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} row[] = {
		{"asked for by the program", p->level.asked},
		{"rounding of block sizes", p->waste.rounding},
		{"in flight on the same stream", p->waste.in_flight_own},
		{"in flight on other streams", p->waste.in_flight_others},
		{"fragmentation: holes that are too small", p->waste.fragmentation},
		{"free in other pools", p->waste.other_pools},
		{"free and large enough", p->waste.idle},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (row[i].bytes) {
			fprintf(out, "%s%12s %5.1f %%  %s\n", indent, bytes(row[i].bytes),
				percent(row[i].bytes, p->level.reserved), row[i].name);
		}
	}
}

static void print_pool_above(FILE *out, const struct ss_analysis *a, const struct ss_snapshot *p)
{
	const char *how, *name = ss_report_pool_above(&a->sites, p, &how);

	if (name) {
		fprintf(out,
			"  Most of it is held by %s, a pool above HIP: the owners of what is "
			"inside "
			"are not seen. To see\n  them: %s (docs/frameworks.md)\n",
			name, how);
	}
}

static void print_devices(FILE *out, const struct ss_analysis *a, size_t most)
{
	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_device_result *d = &a->device[i];
		if (d->used_peak.event) {
			fprintf(out,
				"\nWho held %s at its peak of %s used, at %.3f s\n"
				"  %12s %7s %9s  %s\n",
				device_name(d->device), bytes(d->used_peak.level.used),
				ss_report_seconds(a, d->used_peak.time_ns), "bytes", "share",
				"blocks", ss_report_sites_head(&a->sites));
			print_holders(out, a, &d->used_peak, most, "  ");
			print_pool_above(out, a, &d->used_peak);
		}
		if (d->reserved_peak.event) {
			fprintf(out,
				"\nWhere the %s reserved of %s were when it had most, at %.3f s",
				bytes(d->reserved_peak.level.reserved), device_name(d->device),
				ss_report_seconds(a, d->reserved_peak.time_ns));
			if (d->reserved_peak.request) {
				fprintf(out, ": it grew for a block of %s",
					bytes(d->reserved_peak.request));
			}
			fprintf(out, "\n");
			print_waste(out, &d->reserved_peak, "  ");
			fprintf(out,
				"  in the mean over time: reserved %s, asked for %s, rounding %s, "
				"in flight %s\n",
				bytes((uint64_t)d->usage.reserved_mean),
				bytes((uint64_t)d->usage.asked_mean),
				bytes((uint64_t)(d->usage.used_mean - d->usage.asked_mean)),
				bytes((uint64_t)d->usage.in_flight_mean));
		}
	}
}

/* ---- call sites --------------------------------------------------------- */

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_row(FILE *out, const struct ss_analysis *a, int kind, const struct ss_site *s)
{
	char life[32] = "-"; /* nothing of it was freed */

	if (s->frees)
		snprintf(life, sizeof(life), "%.3f", ms(s->lifetime_ns) / (double)s->frees);
	switch (kind) {
	case SS_RANKING_ALLOCS:
		fprintf(out, "  %10" PRIu64 " %12s %12s %12s", s->allocs,
			bytes(s->bytes / s->allocs), bytes(s->peak), life);
		break;
	case SS_RANKING_REPEATS:
		fprintf(out, "  %10" PRIu64 " %12s %12s %12s", s->repeats,
			bytes(s->bytes / s->allocs), bytes(s->peak), life);
		break;
	case SS_RANKING_LEAKS:
		fprintf(out, "  %10" PRIu64 " %12s %12s %12.3f", s->live_blocks, bytes(s->live),
			bytes(s->largest_live),
			ss_report_seconds(a, a->last_ns) - ss_report_seconds(a, s->oldest_ns));
		break;
	default: fprintf(out, "  %10" PRIu64 " %12.3f", s->waits, ms(s->wait_ns));
	}
}

static void print_suppressed(FILE *out, const struct ss_analysis *a)
{
	if (a->suppressed_blocks) {
		fprintf(out, "\n%s, but suppressed: %" PRIu64 " %s, %s\n", ss_report_leaks_title(a),
			a->suppressed_blocks, ss_plural(a->suppressed_blocks, "block", "blocks"),
			bytes(a->suppressed_bytes));
	}
}

static void print_rankings(FILE *out, const struct ss_analysis *a, size_t most)
{
	const struct {
		int kind;
		const char *title, *head;
	} list[] = {
		{SS_RANKING_ALLOCS, "Who allocates most often",
		 "    allocs    mean size         peak  mean life ms"},
		{SS_RANKING_REPEATS, "Short-lived blocks that the caller could keep",
		 "   repeats    mean size         peak  mean life ms"},
		{SS_RANKING_LEAKS, ss_report_leaks_title(a),
		 "    blocks        bytes      largest  oldest s ago"},
		{SS_RANKING_WAITS, "Who waits", "     waits     total ms"},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const struct ss_ranking *r = &a->ranking[list[i].kind];
		size_t n = r->count < most ? r->count : most;
		if (n == 0)
			continue;
		fprintf(out, "\n%s\n  %s  %s\n", list[i].title, list[i].head + 2,
			ss_report_sites_head(&a->sites));
		for (size_t k = 0; k < n; k++) {
			print_row(out, a, list[i].kind, &a->sites.site[r->site[k]]);
			bool grows = list[i].kind == SS_RANKING_LEAKS &&
				     ss_site_grows(&a->sites.site[r->site[k]]);
			fprintf(out, "  %s%s\n", grows ? "still growing: " : "",
				site_name(a, r->site[k]));
		}
		if (r->all > n) {
			fprintf(out, "  and %zu more %s\n", r->all - n,
				ss_by_name(a->sites.by, r->all - n != 1));
		}
	}
}

/* ---- outside of the pools --------------------------------------------------- */

static void print_outside(FILE *out, const struct ss_analysis *a)
{
	static const char *const says[SS_TRACE_OUTSIDE_KINDS] = {
		[SS_TRACE_OUTSIDE_MANAGED] = "managed memory (hipMallocManaged)",
		[SS_TRACE_OUTSIDE_HOST] = "host memory (hipHostMalloc)",
		[SS_TRACE_OUTSIDE_ARRAY] = "arrays",
		[SS_TRACE_OUTSIDE_DEVICE] = "device memory that the runtime gave",
		[SS_TRACE_OUTSIDE_KERNEL] = "all that the kernel counts for the process",
	};
	const char *title = "\nOutside of the pools\n          peak      at s       at end\n";

	for (size_t i = 0; i < a->devices; i++) {
		const struct ss_device_result *d = &a->device[i];
		for (int k = 0; k < SS_TRACE_OUTSIDE_KINDS; k++) {
			if (!d->outside_peak.bytes[k])
				continue;
			fprintf(out, "%s  %12s %9.3f %12s  %s: %s\n", title,
				bytes(d->outside_peak.bytes[k]),
				ss_report_seconds(a, d->outside_peak_ns[k]),
				bytes(d->outside_end.bytes[k]), device_name(d->device), says[k]);
			title = "";
		}
		if (d->outside_peak.rest) {
			fprintf(out,
				"  %12s %9.3f %12s  %s: of that neither pools, arrays nor the "
				"runtime: "
				"code objects, scratch, queues%s%s\n",
				bytes(d->outside_peak.rest), ss_report_seconds(a, d->rest_peak_ns),
				bytes(d->outside_end.rest), device_name(d->device),
				a->libraries[0] ? ", " : "", a->libraries);
		}
	}
}

/* ---- phases -------------------------------------------------------------- */

static int highest_first(const void *a, const void *b)
{
	const struct ss_phase *x = *(const struct ss_phase *const *)a;
	const struct ss_phase *y = *(const struct ss_phase *const *)b;

	if (x->used_peak != y->used_peak)
		return x->used_peak < y->used_peak ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void print_phase(FILE *out, const struct ss_analysis *a, const struct ss_phase *p)
{
	char name[256], grew[40];

	snprintf(name, sizeof(name), "%s", p->name);
	ss_utf8_clean(name);
	snprintf(grew, sizeof(grew), "%s%s", p->grew < 0 ? "-" : "",
		 bytes((uint64_t)(p->grew < 0 ? -p->grew : p->grew)));
	fprintf(out, "  %8" PRIu64 " %12.3f %12s %9.3f %12s %12s %10" PRIu64 "  %s\n", p->count,
		ms(p->ns), bytes(p->used_peak), ss_report_seconds(a, p->used_peak_ns),
		bytes(p->reserved_peak), grew, p->allocs, name);
}

static void print_phases(FILE *out, const struct ss_analysis *a, size_t most)
{
	const struct ss_phases *p = &a->phases;
	const struct ss_phase **row = calloc(p->count + 1, sizeof(*row));
	size_t count = 0;

	for (size_t i = 0; row && i < p->count; i++)
		if (p->phase[i].count)
			row[count++] = &p->phase[i];
	if (count) {
		qsort(row, count, sizeof(*row), highest_first);
		fprintf(out, "\nPhases\n  %8s %12s %12s %9s %12s %12s %10s  name\n", "ranges",
			"total ms", "used peak", "at s", "reserved", "grew by", "allocs");
	}
	for (size_t i = 0; i < count && i < most; i++)
		print_phase(out, a, row[i]);
	if (count > most)
		fprintf(out, "  and %zu more %s\n", count - most,
			ss_plural(count - most, "name", "names"));
	free(row);
}

/* ---- time and failures -------------------------------------------------- */

static void print_spent(FILE *out, const struct ss_analysis *a)
{
	const char *title = "\nTime in waits and in calls of the driver\n"
			    "     count     total ms   longest ms\n";

	for (int i = 0; i < SS_WAIT_CAUSES; i++) {
		const struct ss_spent *s = &a->wait[i];
		if (s->count) {
			fprintf(out, "%s%10" PRIu64 " %12.3f %12.3f  %s\n", title, s->count,
				ms(s->ns), ms(s->longest_ns), ss_wait_name(i));
			title = "";
		}
	}
	title = "\nMemory released\n     count        bytes\n";
	for (int i = 0; i < SS_TRIM_CAUSES; i++) {
		if (a->trim[i].count) {
			fprintf(out, "%s%10" PRIu64 " %12s  %s\n", title, a->trim[i].count,
				bytes(a->trim_bytes[i]), ss_trim_name(i));
			title = "";
		}
	}
}

static void print_failures(FILE *out, const struct ss_analysis *a, size_t most)
{
	size_t n = a->failures < most ? a->failures : most;

	for (size_t i = 0; i < n; i++) {
		const struct ss_failure *f = &a->failure[i];
		const struct ss_snapshot *p = &f->snapshot;
		fprintf(out,
			"\n%s at %.3f s: %s asked for on %s, %s %s\n  by %s\n"
			"  used %s, in flight %s, reserved %s, largest hole of the pool %s\n",
			f->limit ? "Limit reached" : "Out of memory",
			ss_report_seconds(a, p->time_ns), bytes(p->request), device_name(p->device),
			f->limit ? "the limit is" : "the device has free", bytes(f->device_free),
			site_name(a, f->site), bytes(p->level.used), bytes(p->level.in_flight),
			bytes(p->level.reserved), bytes(p->waste.largest_hole));
		fprintf(out, "  where the reserved memory was\n");
		print_waste(out, p, "  ");
		fprintf(out, "  who held it\n");
		print_holders(out, a, p, 5, "  ");
	}
	if (a->failures_all > n)
		fprintf(out, "\nand %" PRIu64 " more %s\n", a->failures_all - n,
			ss_plural(a->failures_all - n, "failure", "failures"));
}

void ss_report_text(FILE *out, const struct ss_analysis *a, size_t most)
{
	print_process(out, a);
	print_failures(out, a, most);
	print_peaks(out, a);
	print_outside(out, a);
	print_phases(out, a, most);
	print_devices(out, a, most);
	print_rankings(out, a, most);
	print_suppressed(out, a);
	print_spent(out, a);
}

/* SPDX-License-Identifier: MIT */
/* Reads the conditions of `somashim report --fail-if`, and looks which of them hold. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/report/report.h"
#include "cli/report_conditions.h"
#include "config/values.h"

static const struct {
	const char *name, *says;
	bool bytes;
} figures[SS_CONDITION_FIGURES] = {
	[SS_CONDITION_PEAK] = {"peak", "in use at most", true},
	[SS_CONDITION_RESERVED] = {"reserved", "reserved at most", true},
	[SS_CONDITION_LEAKS] = {"leaks", "never freed", true},
	[SS_CONDITION_GROWING] = {"growing", "held by call sites that hold more and more", true},
	[SS_CONDITION_FAILURES] = {"failures", "failed allocations", false},
	[SS_CONDITION_ALLOCATIONS] = {"allocations", "allocations", false},
};

const char *ss_condition_add(struct ss_conditions *c, const char *text)
{
	struct ss_condition *to = &c->at[c->count];
	size_t name = strcspn(text, "<>= \t");
	const char *at = text + name;
	uint64_t whole, fraction;

	if (c->count == SS_CONDITIONS_MAX)
		return "too many conditions";
	*to = (struct ss_condition){.figure = SS_CONDITION_FIGURES};
	for (int f = 0; f < SS_CONDITION_FIGURES; f++)
		if (strlen(figures[f].name) == name && strncmp(text, figures[f].name, name) == 0)
			to->figure = f;
	if (to->figure == SS_CONDITION_FIGURES)
		return "it begins with peak, reserved, leaks, growing, failures or allocations";
	snprintf(to->text, sizeof(to->text), "%s", text);
	at += strspn(at, " \t");
	if (*at) {
		if (*at++ != '>')
			return "a figure is compared by > or >=";
		to->or_equal = *at == '=';
		at += to->or_equal;
		at += strspn(at, " \t");
		const char *end = ss_parse_decimal(at, &whole, &fraction);
		if (end && strcmp(end, "%") == 0)
			to->percent = (double)whole + (double)fraction / 1e9;
		else if (!ss_parse_size(at, &to->limit))
			return "behind > stands a number, a size (8G) or a percentage (5%)";
	}
	c->count++;
	return NULL;
}

static bool exceeds(const struct ss_condition *c, uint64_t value)
{
	return c->or_equal ? value >= c->limit : value > c->limit;
}

static const char *amount_text(enum ss_condition_figure f, uint64_t value, char out[32])
{
	if (figures[f].bytes)
		return ss_report_bytes(out, value);
	snprintf(out, 32, "%" PRIu64, value);
	return out;
}

/* ---- processes ------------------------------------------------------------ */

/* A figure of a process. *device: the device of the figure; -1: all devices. */
static uint64_t figure_of(const struct ss_analysis *a, enum ss_condition_figure f, int *device)
{
	uint64_t sum = 0, most = 0;

	*device = -1;
	for (size_t i = 0; i < a->devices && f <= SS_CONDITION_RESERVED; i++) {
		const struct ss_usage *u = &a->device[i].usage;
		uint64_t value = f == SS_CONDITION_PEAK ? u->used_peak.used :
							  u->reserved_peak.reserved;
		if (value > most) {
			most = value;
			*device = a->device[i].device;
		}
	}
	for (size_t i = 0; i < a->sites.count; i++) {
		const struct ss_site *s = &a->sites.site[i];
		if (!s->suppressed && (f == SS_CONDITION_LEAKS || ss_site_grows(s)))
			sum += s->live;
	}
	switch (f) {
	case SS_CONDITION_PEAK:
	case SS_CONDITION_RESERVED: return most;
	case SS_CONDITION_FAILURES: return a->failures_all;
	case SS_CONDITION_ALLOCATIONS: return a->kind[SS_TRACE_ALLOC];
	default: return sum;
	}
}

bool ss_conditions_hold(const struct ss_conditions *c, struct ss_analysis *const *list,
			size_t count)
{
	bool any = false;

	for (size_t i = 0; i < c->count; i++) {
		const struct ss_condition *k = &c->at[i];
		for (size_t p = 0; p < count; p++) {
			int device;
			uint64_t value = figure_of(list[p], k->figure, &device);
			char amount[32], name[32] = "", rank[32] = "";
			if (!exceeds(k, value))
				continue;
			any = true;
			if (device >= 0)
				snprintf(name, sizeof(name), " on GPU %d", device);
			if (list[p]->rank >= 0)
				snprintf(rank, sizeof(rank), " (rank %d)", list[p]->rank);
			ss_cli_error("report: %s: %s %s%s, process %" PRIu32 "%s: %s", k->text,
				     amount_text(k->figure, value, amount), figures[k->figure].says,
				     device == SS_NO_DEVICE ? "" : name, list[p]->pid, rank,
				     list[p]->path);
		}
	}
	return any;
}

/* ---- a difference --------------------------------------------------------- */

static double side_figure(const struct ss_difference_side *s, enum ss_condition_figure f)
{
	const double figure[SS_CONDITION_FIGURES] = {[SS_CONDITION_PEAK] = s->used_peak,
						     [SS_CONDITION_RESERVED] = s->reserved_peak,
						     [SS_CONDITION_LEAKS] = s->end,
						     [SS_CONDITION_FAILURES] = s->failures,
						     [SS_CONDITION_ALLOCATIONS] = s->allocs};

	return figure[f];
}

bool ss_conditions_hold_difference(const struct ss_conditions *c, const struct ss_difference *d)
{
	bool any = false;

	for (size_t i = 0; i < c->count; i++) {
		const struct ss_condition *k = &c->at[i];
		double a = side_figure(&d->side[0], k->figure);
		double b = side_figure(&d->side[1], k->figure), grew = b > a ? b - a : 0;
		char amount[32], before[32];
		bool holds = k->percent > 0 ? 100 * grew > k->percent * a :
					      exceeds(k, (uint64_t)grew);
		if (!holds)
			continue;
		any = true;
		ss_cli_error("report: %s: %s %s, before it was %s", k->text,
			     amount_text(k->figure, (uint64_t)b, amount), figures[k->figure].says,
			     amount_text(k->figure, (uint64_t)a, before));
	}
	return any;
}

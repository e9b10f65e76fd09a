/* SPDX-License-Identifier: MIT */
/*
 * The report on an allocation that failed: who holds the device's memory, and what was tried.
 *
 * Locks: none of its own.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/statistics.h"
#include "shim/process/kernel_sample.h"
#include "shim/process/log.h"
#include "shim/process/oom_limiter.h"
#include "shim/process/oom_report.h"
#include "shim/process/service.h"

struct report {
	const struct ss_oom *oom;
	FILE *out;
};

static void put_device(const struct ss_oom_device *d, void *arg)
{
	const struct report *r = arg;
	uint64_t mine = d->free_bytes + d->reserved;
	FILE *out = r->out;

	fprintf(out, "somashim: out of memory: %" PRIu64 " bytes on device %d; ", r->oom->size,
		r->oom->device);
	if (d->known)
		fprintf(out,
			"the device has %" PRIu64 " of %" PRIu64
			" free, this process's pools hold %" PRIu64 ", others about %" PRIu64 "\n",
			d->free_bytes, d->total_bytes, d->reserved,
			d->total_bytes > mine ? d->total_bytes - mine : 0);
	else
		fprintf(out,
			"what the device has free it does not say, this process's pools hold "
			"%" PRIu64 "\n",
			d->reserved);
	ss_kernel_put(out, r->oom->device, d->reserved);
	if (d->limit)
		fprintf(out,
			"somashim:   SOMASHIM_LIMIT is %" PRIu64
			"; past the pools the process took %" PRIu64 "\n",
			d->limit, d->past_pools);
	if (d->cause[0])
		fprintf(out, "somashim:   a limit was hit: %s\n", d->cause);
	if (r->oom->refused)
		fputs("somashim:   the driver failed, and did not say that memory is short\n", out);
	if (r->oom->max_size)
		fprintf(out, "somashim:   the pool's maxSize is %" PRIu64 "\n", r->oom->max_size);
}

static void put_stream(void *native, uint64_t free_bytes, void *arg)
{
	const struct report *r = arg;

	fprintf(r->out, "somashim:     stream %p holds %" PRIu64 " free bytes\n", native,
		free_bytes);
}

static void put_pool(const struct ss_oom_pool *p, void *arg)
{
	const struct report *r = arg;

	fprintf(r->out,
		"somashim:   %s pool (%s): reserved %" PRIu64 ", used %" PRIu64
		", in flight %" PRIu64 ", completed %" PRIu64 ", exported %" PRIu64
		", largest free run %" PRIu64 "\n",
		p->kind, p->backing, p->reserved, p->used, p->in_flight, p->completed, p->exported,
		p->largest_free);
}

static void put_tried(uint64_t tried, FILE *out)
{
	const char *before = "somashim:   tried: ";

	if (!tried)
		fprintf(out, "%snothing, since it would not fit if all idle memory were released",
			before);
	for (unsigned i = 0; i < SS_LADDER_ROWS; i++)
		if (tried >> i & 1) {
			fprintf(out, "%s%s", before, ss_ladder_row(i));
			before = ", ";
		}
	fputc('\n', out);
}

static void put_all(struct ss_core *core, const struct ss_oom *oom, bool last, FILE *out)
{
	static const struct ss_oom_visitor visitor = {put_device, put_stream, put_pool};
	struct report r = {oom, out};

	ss_oom_visit(core, oom->device, &visitor, &r);
	put_tried(oom->tried, out);
	if (last)
		fputs("somashim:   further failures are only counted "
		      "(SOMASHIM_OOM_REPORTS=all reports each)\n",
		      out);
}

/* The report is composed in memory, so that reports of several threads do not mix. Without host
 * memory for that, the report is written piece by piece. */
void ss_shim_oom_report(struct ss_core *core, const struct ss_oom *oom)
{
	static _Atomic uint64_t failures;
	FILE *log = ss_shim_log_file(), *out;
	enum ss_oom_print print;
	char *text = NULL;
	size_t length = 0;
	uint64_t count;

	print = ss_oom_print(ss_options.oom_reports, &failures, &count);
	if (print == SS_OOM_PRINT_NOTHING)
		return;
	if (print == SS_OOM_PRINT_COUNT) {
		fprintf(log,
			"somashim: out of memory: %" PRIu64 " times so far, this time %" PRIu64
			" bytes on device %d\n",
			count, oom->size, oom->device);
	} else {
		out = open_memstream(&text, &length);
		put_all(core, oom, print == SS_OOM_PRINT_LAST, out ? out : log);
		if (out)
			fclose(out);
		if (text)
			fputs(text, log);
	}
	fflush(log);
	free(text);
}

/* SPDX-License-Identifier: MIT */
/*
 * The table of SOMASHIM_STATS=1 and of `somashim dump`.
 *
 * Locks: none of its own.
 */
#include <inttypes.h>

#include "core/core.h"
#include "core/statistics.h"
#include "driver/rocm/rocm.h"
#include "shim/process/stats.h"

#define MIB ((double)(1 << 20))

static void print_counts(const struct ss_pool_stats *s, FILE *out)
{
	uint64_t hits = s->allocations - s->misses;

	fprintf(out,
		"somashim:   allocations %" PRIu64 ", frees %" PRIu64 ", hits %" PRIu64
		" (%.1f %%), misses %" PRIu64 ", out of memory %" PRIu64 "\n",
		s->allocations, s->frees, hits,
		s->allocations ? 100.0 * (double)hits / (double)s->allocations : 0.0, s->misses,
		s->out_of_memory);
}

static void print_ended(const struct ss_device_stats *d, void *arg)
{
	const struct ss_pool_stats *s = d->ended;
	FILE *out = arg;

	if (!d->ended_count)
		return;
	fprintf(out,
		"somashim: device %d, %" PRIu64 " pools that are no more (destroyed or reset)\n",
		d->device, d->ended_count);
	print_counts(s, out);
	fprintf(out,
		"somashim:   grown %" PRIu64
		" times, the largest reserved %.1f MiB, used %.1f MiB, "
		"released %.1f MiB\n",
		s->grown, (double)s->reserved_high / MIB, (double)s->used_high / MIB,
		(double)s->released_bytes / MIB);
}

/* Prints the steps of the ladder that found or made memory for allocations that were no hit. */
static void print_ladder(const struct ss_pool_stats *s, FILE *out)
{
	const char *before = "somashim:   steps that helped a miss: ";

	for (unsigned i = 0; i < SS_LADDER_ROWS; i++)
		if (s->served[i]) {
			fprintf(out, "%s%s %" PRIu64, before, ss_ladder_row(i), s->served[i]);
			before = ", ";
		}
	if (*before == ',')
		fputc('\n', out);
}

static void print_pool(const struct ss_pool_stats *s, void *arg)
{
	FILE *out = arg;

	fprintf(out, "somashim: device %d %s pool (%s)\n", s->device, s->kind, s->backing);
	print_counts(s, out);
	fprintf(out,
		"somashim:   reuse: same stream %" PRIu64 ", completed %" PRIu64 ", event %" PRIu64
		", null-stream join %" PRIu64 ", device-side wait %" PRIu64 "\n",
		s->reuse_same_stream, s->reuse_completed, s->reuse_event, s->reuse_implicit,
		s->reuse_internal);
	fprintf(out,
		"somashim:   segments %" PRIu64 " (grown %" PRIu64
		" times), reserved %.1f MiB (high %.1f), used %.1f MiB (high %.1f), "
		"released %.1f MiB, trims %" PRIu64 ", remaps %" PRIu64 ", waits %" PRIu64 "\n",
		s->segments, s->grown, (double)s->reserved / MIB, (double)s->reserved_high / MIB,
		(double)s->used / MIB, (double)s->used_high / MIB, (double)s->released_bytes / MIB,
		s->trims, s->remaps, s->waits);
	print_ladder(s, out);
}

static void print_aside(struct ss_core *core, int dev, FILE *out)
{
	uint64_t bytes = ss_set_aside(core, dev);

	if (bytes)
		fprintf(out,
			"somashim: device %d, set aside %.1f MiB (the runtime gives no access to "
			"it, "
			"and does not unmap it)\n",
			dev, (double)bytes / MIB);
}

void ss_shim_stats_table(struct ss_core *core, FILE *out)
{
	static const struct ss_stats_visitor visitor = {print_ended, print_pool};
	struct ss_pool_stats total;

	ss_stats(core, &visitor, out);
	for (int dev = 0; dev < ss_rocm_devices; dev++)
		print_aside(core, dev, out);
	ss_stats_total(core, &total);
	fprintf(out,
		"somashim: fences recorded %" PRIu64 ", busy streams asked %" PRIu64
		", driver calls %" PRIu64 " in %.3f ms "
		"(the sum over all threads), host memory for metadata %.1f KiB\n",
		total.fences, total.busy_queries, total.driver_calls, (double)total.driver_ns / 1e6,
		(double)ss_host_bytes(core) / 1024);
	fflush(out);
}

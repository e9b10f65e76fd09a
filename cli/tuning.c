/* SPDX-License-Identifier: MIT */
/* `somashim replay --try` and `--advise`: how each option changes a replay. */
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/tuning.h"
#include "config/options.h"
#include "core/driver.h"

/* The options that are tried, one at a time. The first row changes nothing. */
static const struct {
	const char *name, *value;
} variants[] = {
	{NULL, NULL},          {"BACKING", "hip"},         {"BACKING", "hsa"},
	{"BACKING", "vmm"},    {"DECAY_MS", "0"},          {"DECAY_MS", "100"},
	{"DECAY_MS", "10000"}, {"RELEASE_THRESHOLD", "0"}, {"RELEASE_THRESHOLD", "max"},
	{"ALIGN_LARGE", "2M"}, {"IPC_WHOLE", "2M"},
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static void variant_name(size_t i, char *out, size_t size)
{
	if (variants[i].name)
		snprintf(out, size, "SOMASHIM_%s=%s", variants[i].name, variants[i].value);
	else
		snprintf(out, size, "(as asked)");
}

/* Driver calls and misses of the whole log, including those while the pools grew. */
static uint64_t total_work(const struct ss_replay_result *r)
{
	return r->driver_calls + r->allocations - r->hits;
}

/* Lower is better. Failures outweigh everything. Memory comes next: 1 % of the peak
 * outweighs driver calls once they are few. The total work decides between variants that
 * behave the same after the peak. */
static double cost(const struct ss_replay_result *r)
{
	double calls = ss_calls_per_100(r), hits = ss_ratio(r->hits, r->allocations);

	return 1e6 * ss_ratio(r->failed, r->allocations) +
	       ss_ratio(r->reserved_peak, r->used_peak) + (hits < 0.9 ? 10 * (0.9 - hits) : 0) +
	       (calls > 5 ? (calls - 5) / 10 : 0) + calls / 1000 +
	       ss_ratio(total_work(r), r->allocations) / 10000;
}

/* An option is advised only if it is clearly better: fewer failures, a peak that is 1 %
 * lower, or, with no more memory, 10 % fewer driver calls and misses that are at least one
 * per 100 allocations. */
static bool clearly_better(const struct ss_replay_result *r, const struct ss_replay_result *now)
{
	if (r->failed != now->failed)
		return r->failed < now->failed;
	if (r->reserved_peak < now->reserved_peak - now->reserved_peak / 100)
		return true;
	uint64_t less = total_work(r) < total_work(now) ? total_work(now) - total_work(r) : 0;
	return r->reserved_peak <= now->reserved_peak && less > 0 && 10 * less >= total_work(now) &&
	       100 * less >= now->allocations;
}

static int replay_variant(const char *path, const struct ss_events *ev,
			  const struct ss_replay_config *asked, size_t i,
			  struct ss_replay_result *r)
{
	struct ss_replay_config config = *asked;
	struct ss_options options = *asked->options;
	char err[256];

	config.options = &options;
	if (variants[i].name)
		ss_options_set(&options, variants[i].name, variants[i].value);
	if (!ss_replay(ev, &config, r, err, sizeof(err))) {
		ss_cli_error("replay: %s: %s", path, err);
		return r->refused ? 2 : 1;
	}
	return 0;
}

static void print_row(size_t i, const struct ss_replay_result *r)
{
	char name[64];

	variant_name(i, name, sizeof(name));
	printf("%-36s %15llu %8.4f %6.2f%% %10llu %9.2f%s\n", name,
	       (unsigned long long)r->reserved_peak, ss_ratio(r->reserved_peak, r->used_peak),
	       100 * ss_ratio(r->hits, r->allocations), (unsigned long long)r->driver_calls,
	       ss_calls_per_100(r), r->failed ? " out of memory" : "");
}

/* Options whose effect a log cannot show would otherwise look useless. */
static void print_footnotes(void)
{
	printf("# a log has no synchronizations: what RELEASE_THRESHOLD and DECAY_MS=0 do there "
	       "is\n"
	       "# not seen here\n");
}

static void print_advice(const struct ss_replay_result *now, size_t best,
			 const struct ss_replay_result *r)
{
	char name[64];

	if (best == 0) {
		printf("# nothing that was tried is clearly better than the options as they are\n");
		return;
	}
	variant_name(best, name, sizeof(name));
	printf("# reserved peak %.4f of used instead of %.4f, %.2f driver calls per 100 instead "
	       "of %.2f,\n# %llu driver calls and misses in all instead of %llu\n",
	       ss_ratio(r->reserved_peak, r->used_peak),
	       ss_ratio(now->reserved_peak, now->used_peak), ss_calls_per_100(r),
	       ss_calls_per_100(now), (unsigned long long)total_work(r),
	       (unsigned long long)total_work(now));
	struct ss_options advised = {0};
	ss_options_set(&advised, variants[best].name, variants[best].value);
	if (advised.backing == SS_BACKING_VMM) {
		printf("# run somashim doctor first: on some runtimes virtual memory does not "
		       "work, "
		       "and a vmm\n# pool that grows waits for all work on blocking streams "
		       "(docs/known-problems.md)\n");
	}
	printf("export %s\n", name);
}

int ss_tuning(const char *path, const struct ss_events *ev, const struct ss_replay_config *config,
	      bool all, bool advise)
{
	struct ss_replay_result results[VARIANTS];
	size_t best = 0;

	if (all) {
		printf("%-36s %15s %8s %7s %10s %9s\n", "", "reserved peak", "of used", "hits",
		       "driver", "after/100");
	}
	for (size_t i = 0; i < VARIANTS; i++) {
		struct ss_replay_result *r = &results[i];
		int status = replay_variant(path, ev, config, i, r);
		if (status)
			return status;
		if (cost(r) < cost(&results[best]) && clearly_better(r, &results[0]))
			best = i;
		if (all)
			print_row(i, r);
	}
	if (all)
		print_footnotes();
	if (advise)
		print_advice(&results[0], best, &results[best]);
	return 0;
}

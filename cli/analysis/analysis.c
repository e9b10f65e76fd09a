/* SPDX-License-Identifier: MIT */
/* Opens a trace and runs the two passes over it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/pass.h"
#include "live/kernel_memory.h"

const char *ss_wait_name(enum ss_trace_wait_cause cause)
{
	static const char *const name[SS_WAIT_CAUSES] = {
		[SS_TRACE_WAIT_FREE] = "hipFree waits for the device",
		[SS_TRACE_WAIT_MEMORY] = "an allocation waits for freed memory",
		[SS_TRACE_WAIT_STREAM] = "hipStreamSynchronize",
		[SS_TRACE_WAIT_EVENT] = "hipEventSynchronize",
		[SS_TRACE_WAIT_DEVICE] = "hipDeviceSynchronize",
		[SS_TRACE_WAIT_DRIVER_ALLOC] = "driver: memory is taken",
		[SS_TRACE_WAIT_DRIVER_FREE] = "driver: memory is given back",
		[SS_TRACE_WAIT_DRIVER_MAP] = "driver: memory is mapped",
		[SS_TRACE_WAIT_DRIVER_OTHER] = "driver: other calls",
	};

	return cause < SS_WAIT_CAUSES ? name[cause] : "?";
}

const char *ss_trim_name(enum ss_trace_trim_cause cause)
{
	static const char *const name[SS_TRIM_CAUSES] = {
		[SS_TRACE_TRIM_CALL] = "hipMemPoolTrimTo",
		[SS_TRACE_TRIM_DECAY] = "idle for long",
		[SS_TRACE_TRIM_THRESHOLD] = "more than the release threshold",
		[SS_TRACE_TRIM_OOM] = "another allocation needed it",
		[SS_TRACE_TRIM_RESET] = "device reset or pool destroyed",
	};

	return cause < SS_TRIM_CAUSES ? name[cause] : "?";
}

/* ---- the process -------------------------------------------------------- */

static char *join_args(char **args)
{
	size_t length = 1;

	for (size_t i = 0; args && args[i]; i++)
		length += strlen(args[i]) + 1;
	char *text = calloc(1, length), *to = text;
	for (size_t i = 0; text && args && args[i]; i++) {
		to = stpcpy(to, i ? " " : "");
		to = stpcpy(to, args[i]);
	}
	return text;
}

static void read_libraries(struct ss_analysis *a, const struct ss_trace_reader *r)
{
	size_t count, n = 0;
	const struct ss_trace_module_def *m = ss_trace_reader_modules(r, &count);

	for (size_t i = 0; i < count; i++) {
		const char *name = ss_memory_library(m[i].path);
		if (name && !strstr(a->libraries, name) &&
		    n + strlen(name) + 3 < sizeof(a->libraries))
			n += (size_t)sprintf(a->libraries + n, "%s%s", n ? ", " : "", name);
	}
}

static bool read_process(struct ss_analysis *a, const struct ss_trace_reader *r, const char *path)
{
	const struct ss_trace_process_def *p = ss_trace_reader_process(r);
	const char *problem = ss_trace_reader_problem(r, &a->problems);

	a->path = strdup(path);
	a->problem = problem ? strdup(problem) : NULL;
	a->exe = strdup(p->exe);
	a->host = strdup(p->host);
	a->launcher = strdup(p->launcher);
	a->job = strdup(p->job);
	a->version = strdup(p->version);
	a->runtime = strdup(p->runtime);
	a->command = join_args(p->args);
	a->pid = p->pid;
	a->rank = p->rank;
	a->ranks = p->ranks;
	a->end = p->end;
	a->real_offset = p->realtime_ns - p->boottime_ns;
	a->lost_events = p->lost_events;
	a->lost_stacks = p->lost_stacks;
	a->lost_names = p->lost_names;
	read_libraries(a, r);
	ss_trace_reader_threads(r, &a->threads);
	ss_trace_reader_streams(r, &a->streams);
	return a->path && a->exe && a->host && a->launcher && a->job && a->version && a->runtime &&
	       a->command && !problem == !a->problem;
}

/* ---- the passes --------------------------------------------------------- */

static void tell_progress(const struct ss_pass *p, uint64_t all, double base, double part)
{
	if (p->config->progress && p->event % 65536 == 0 && all)
		p->config->progress(p->config->arg, base + part * (double)p->event / (double)all);
}

static bool run_pass(struct ss_pass *p, struct ss_trace_reader *r, bool first)
{
	struct ss_analysis *a = p->a;
	uint64_t all = ss_trace_reader_events(r);
	struct ss_trace_item e, next;

	if (!ss_trace_memory_init(&p->memory, r, &a->sites, first ? ss_pass_count : ss_pass_hold,
				  p))
		return false;
	ss_window_begin(&p->window, r, &p->config->part);
	bool more = ss_window_next(&p->window, &next);
	for (p->event = 1; more; p->event++) {
		e = next;
		more = ss_window_next(&p->window, &next);
		if (first) {
			a->first_ns = p->event == 1 ? e.time_ns : a->first_ns;
			a->last_ns = e.time_ns > a->last_ns ? e.time_ns : a->last_ns;
		} else {
			ss_pass_before_event(p, &e);
		}
		if (!ss_trace_memory_apply(&p->memory, &e))
			return false;
		(first ? ss_pass_count_event : ss_pass_after_event)(p, &e);
		if (first && ss_trace_item_lived(&e) && !(more && ss_trace_item_lived(&next)))
			ss_pass_count_begin(p, &e);
		if (p->failed)
			return false;
		tell_progress(p, all, first ? 0 : 0.5, 0.5);
	}
	if (first) {
		ss_pass_sort_devices(p);
		a->events = p->event - 1;
		a->unknown_frees = p->memory.unknown_frees;
		a->lost_frees = p->memory.lost_frees;
		a->reset_blocks = p->memory.reset_blocks;
	}
	p->failed |= p->window.failed;
	(first ? ss_pass_count_end : ss_pass_look_end)(p);
	ss_window_finish(&p->window);
	ss_trace_memory_finish(&p->memory);
	return !p->failed;
}

static bool run(struct ss_analysis *a, struct ss_trace_reader *r,
		const struct ss_analysis_config *config)
{
	struct ss_pass p = {.a = a, .config = config};

	a->part = config->part;
	a->phases.wanted = config->phase;
	a->phases.wanted_number = config->phase_number;

	p.pool_at = calloc(SS_POOLS, sizeof(*p.pool_at));
	bool ok = p.pool_at && run_pass(&p, r, true) && ss_pass_plan(&p);
	if (ok) {
		ss_trace_reader_rewind(r);
		ok = run_pass(&p, r, false);
	}
	ss_trace_memory_finish(&p.memory);
	ss_window_finish(&p.window);
	ss_pass_plan_free(&p);
	free(p.pool_at);
	return ok;
}

static void mark_who_allocates(struct ss_sites *s, const struct ss_trace_reader *r)
{
	for (uint32_t stack = 0; stack < s->stacks; stack++)
		if (ss_trace_reader_allocates(r, stack))
			s->site[s->of_stack[stack]].allocates = true;
}

/* Reads the call sites, and makes the groups of them that lists and charts show. */
static bool read_sites(struct ss_analysis *a, struct ss_trace_reader *r,
		       const struct ss_analysis_config *config)
{
	if (!ss_sites_read(&a->sites, r, config->files))
		return false;
	if (config->charts || config->by != SS_BY_SITE)
		mark_who_allocates(&a->sites, r);
	for (int by = SS_BY_SITE + 1; config->charts && by < SS_BYS; by++)
		if (!ss_sites_put_together(&a->group[by], &a->sites, r, by))
			return false;
	if (!config->charts && config->by != SS_BY_SITE) {
		a->calls = a->sites;
		if (!ss_sites_put_together(&a->sites, &a->calls, r, config->by))
			return false;
		a->sites.rebuilt = a->calls.rebuilt;
		a->calls.rebuilt = NULL;
	}
	return true;
}

static void suppress(struct ss_analysis *a, const struct ss_analysis_config *config)
{
	for (size_t i = 0; config->suppressed && i < a->sites.count; i++) {
		struct ss_site *s = &a->sites.site[i];
		if (s->live_blocks && config->suppressed(config->suppressions, &a->sites, s)) {
			s->suppressed = true;
			a->suppressed_blocks += s->live_blocks;
			a->suppressed_bytes += s->live;
		}
	}
}

struct ss_analysis *ss_analysis_run(const char *path, const struct ss_analysis_config *config,
				    char *err, size_t err_size)
{
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, err_size);
	struct ss_analysis *a = r ? calloc(1, sizeof(*a)) : NULL;

	if (!a) {
		if (r) {
			snprintf(err, err_size, "%s: out of memory", path);
			ss_trace_reader_close(r);
		}
		return NULL;
	}
	bool good = read_process(a, r, path) && read_sites(a, r, config) && run(a, r, config);
	if (good)
		suppress(a, config);
	if (!good || !ss_rank_sites(a)) {
		snprintf(err, err_size, "%s: out of memory", path);
		ss_analysis_free(a);
		a = NULL;
	} else { /* a report may hold a thousand analyses */
		ss_sites_end_lookups(&a->sites);
		ss_sites_finish(&a->calls);
	}
	ss_trace_reader_close(r);
	return a;
}

bool ss_analysis_rename(struct ss_analysis *a, const char *path)
{
	char *copy = strdup(path);

	if (copy) {
		free(a->path);
		a->path = copy;
	}
	return copy != NULL;
}

void ss_analysis_free(struct ss_analysis *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->devices; i++) {
		free(a->device[i].used_peak.holder);
		free(a->device[i].reserved_peak.holder);
		free(a->device[i].timeline.sample);
		free(a->device[i].timeline.held);
		free(a->device[i].step);
	}
	for (size_t i = 0; i < a->failures; i++)
		free(a->failure[i].snapshot.holder);
	for (size_t i = 0; i < SS_RANKINGS; i++)
		free(a->ranking[i].site);
	for (size_t i = 0; i < a->maps; i++) {
		free(a->map[i].live);
		free(a->map[i].in_flight);
		free(a->map[i].gap);
	}
	char *texts[] = {a->path, a->problem, a->exe,     a->host,   a->launcher,
			 a->job,  a->command, a->version, a->runtime};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (size_t i = 0; a->lives && i < a->charted[SS_BY_SITE].count; i++)
		free(a->lives[i].life);
	for (int by = 0; by < SS_BYS; by++) {
		free(a->charted[by].site);
		ss_sites_finish(&a->group[by]);
	}
	free(a->lives);
	ss_phases_finish(&a->phases);
	ss_sites_finish(&a->sites);
	ss_sites_finish(&a->calls);
	free(a->device);
	free(a->pool);
	free(a->failure);
	free(a->map);
	free(a);
}

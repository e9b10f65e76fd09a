/* SPDX-License-Identifier: MIT */
/* `somashim replay LOG`: shows, without a GPU, how the pools would serve a program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/plural.h"
#include "cli/replay.h"
#include "cli/trace_files.h"
#include "cli/tuning.h"
#include "cli/writers/json.h"
#include "config/options.h"

#define GIB (1ull << 30)
#define MIN_VRAM (64 * GIB)
/* Defaults of the clock: the device takes a fifth longer for a command than the host for a call. */
#define HOST_US 10
#define DEVICE_NS_PER_HOST_US 1200
#define QUEUE 1024
#define MOST_US 1000000 /* per call or command */
#define PROGRESS_EVENTS 200000 /* logs this long get a progress bar */

struct arguments {
	const char *path;
	struct ss_options options;
	struct ss_replay_config config;
	int device;
	uint64_t host_us, device_us; /* 0: not given */
	bool json, try, advise, fit, clock;
};

enum {
	BACKING = 256,
	SET,
	CLASSIC,
	LAG,
	CLOCK,
	HOST,
	COMMAND,
	QUEUED,
	SEGMENT,
	CHUNK,
	NO_REMAP,
	EVENTS,
	VRAM,
	FIT,
	DEVICE,
	TRY,
	ADVISE,
	JSON
};

static const struct argp_option options[] = {
	{"backing", BACKING, "hip|hsa|vmm", 0, "Where memory comes from (default: auto)", 0},
	{"set", SET, "NAME=VALUE", 0, "Set any SOMASHIM_ variable, named without the prefix", 0},
	{"classic", CLASSIC, NULL, 0, "Replay as hipMalloc and hipFree", 0},
	{"lag", LAG, "N", 0, "The device is N commands behind (default: always idle)", 0},
	{"clock", CLOCK, NULL, 0, "The host runs ahead of a device that needs a fifth longer", 0},
	{"host-us", HOST, "N", 0, "With a clock: microseconds per call of the host (10)", 0},
	{"device-us", COMMAND, "N", 0,
	 "With a clock: microseconds per command of the device (1.2 times the host's)", 0},
	{"queue", QUEUED, "N", 0,
	 "With a clock: the host waits if the device is N commands behind "
	 "(1024)",
	 0},
	{"segment-us", SEGMENT, "N", 0,
	 "With a clock: microseconds of a call that takes a segment or releases it (none)", 0},
	{"chunk-us", CHUNK, "N", 0,
	 "With a clock: microseconds of each call that makes, maps, opens, unmaps or releases a "
	 "chunk (none)",
	 0},
	{"no-remap", NO_REMAP, NULL, 0,
	 "vmm: what is mapped stays where it is, as on ROCm 7.0 to 7.13", 0},
	{"events", EVENTS, NULL, 0,
	 "Each stream waits for an event of the stream that acted before it", 0},
	{"vram", VRAM, "SIZE", 0, "Device memory (default: twice the peak, and at least 64G)", 0},
	{"fit", FIT, NULL, 0, "Find the smallest device on which no allocation fails", 0},
	{"device", DEVICE, "N", 0, "Which device of a memory snapshot", 0},
	{"try", TRY, NULL, 0, "Compare what each option would change", 0},
	{"advise", ADVISE, NULL, 0, "Print the best option as a line to export", 0},
	{"json", JSON, NULL, 0, "Print one JSON object", 0},
	{0},
};

static json_t *failure_json(const struct ss_replay_result *r)
{
	return r->failed ? json_pack("{s:o, s:I, s:I, s:I}", "line",
				     r->first.at == SS_EVENT_BEFORE ? json_null() :
								      json_integer(r->first.at),
				     "size", (json_int_t)r->first.size, "live",
				     (json_int_t)r->first.live, "largest_hole",
				     (json_int_t)r->first.largest_hole) :
			   json_null();
}

static json_t *growth_json(const struct ss_replay_result *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "took_calls", (json_int_t)r->took,
			 "took_bytes", (json_int_t)r->took_bytes, "map_calls", (json_int_t)r->maps,
			 "unmap_calls", (json_int_t)r->unmaps, "set_access_calls",
			 (json_int_t)r->set_access, "gave_calls", (json_int_t)r->gave, "gave_bytes",
			 (json_int_t)r->gave_bytes);
}

/* The figures of the clock; NULL without a clock. */
static json_t *clock_json(const struct ss_replay_config *c, const struct ss_replay_result *r)
{
	return !c->device_ns ?
		       NULL :
		       json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "host_ns",
				 (json_int_t)c->host_ns, "device_ns", (json_int_t)c->device_ns,
				 "queue", (json_int_t)c->queue, "driver_us",
				 (json_int_t)r->driver / 1000, "device_end_us",
				 (json_int_t)r->device_end / 1000, "queue_full_us",
				 (json_int_t)r->queue_full / 1000, "waits", (json_int_t)r->waits,
				 "waited_us", (json_int_t)r->waited / 1000, "idle_us",
				 (json_int_t)r->device_idle / 1000, "idle_share",
				 ss_json_rounded(ss_ratio(r->device_idle, r->device_end)));
}

static int print_json(const struct arguments *a, const struct ss_events *ev,
		      const struct ss_replay_result *r)
{
	return ss_json_print(json_pack(
		"{s:i, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, "
		"s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o*}",
		"version", 1, "reserved_peak", (json_int_t)r->reserved_peak, "used_peak",
		(json_int_t)r->used_peak, "ratio",
		ss_json_rounded(ss_ratio(r->reserved_peak, r->used_peak)), "program_reserved_peak",
		ev->reserved_peak ? json_integer((json_int_t)ev->reserved_peak) : json_null(),
		"allocations", (json_int_t)r->allocations, "frees", (json_int_t)r->frees, "failed",
		(json_int_t)r->failed, "hits", (json_int_t)r->hits, "hit_rate",
		ss_json_rounded(ss_ratio(r->hits, r->allocations)), "driver_calls",
		(json_int_t)r->driver_calls, "driver_calls_after_peak",
		(json_int_t)r->driver_calls_after, "allocations_after_peak",
		(json_int_t)r->allocations_after, "driver_calls_per_100_after_peak",
		ss_json_rounded(ss_calls_per_100(r)), "set_access", (json_int_t)r->set_access,
		"fences", (json_int_t)r->fences, "remaps", (json_int_t)r->remaps, "released_bytes",
		(json_int_t)r->released, "host_bytes", (json_int_t)r->host_bytes, "streams",
		(json_int_t)ev->stream_count, "before_blocks", (json_int_t)ev->before_blocks,
		"before_bytes", (json_int_t)ev->before_bytes, "failures_in_log",
		(json_int_t)ev->failures, "unknown_frees", (json_int_t)ev->unknown_frees, "seconds",
		ss_json_rounded(r->seconds), "vram", (json_int_t)a->config.vram, "first_failure",
		failure_json(r), "growth", growth_json(r), "clock", clock_json(&a->config, r)));
}

static void print_clock(const struct ss_replay_config *c, const struct ss_replay_result *r)
{
	printf("clock            %.3f us per call, %.3f us per command, %u in the queue\n",
	       1e-3 * (double)c->host_ns, 1e-3 * (double)c->device_ns, c->queue);
	printf("device           done after %.3f ms; the queue was full for %.3f ms\n",
	       1e-6 * (double)r->device_end, 1e-6 * (double)r->queue_full);
	if (c->segment_ns || c->chunk_ns)
		printf("driver           %.3f ms in its calls\n", 1e-6 * (double)r->driver);
	printf("waits            %llu, %.3f ms in all; the device was idle for %.3f ms of that "
	       "(%.2f %% of its time)\n",
	       (unsigned long long)r->waits, 1e-6 * (double)r->waited,
	       1e-6 * (double)r->device_idle, 100 * ss_ratio(r->device_idle, r->device_end));
}

static void print_text(const struct arguments *a, const struct ss_events *ev,
		       const struct ss_replay_result *r)
{
	if (a->fit)
		printf("smallest device  %llu bytes\n", (unsigned long long)a->config.vram);
	printf("allocations      %llu on %u %s, %llu failed\n", (unsigned long long)r->allocations,
	       ev->stream_count, ss_plural(ev->stream_count, "stream", "streams"),
	       (unsigned long long)r->failed);
	printf("used peak        %llu bytes\n", (unsigned long long)r->used_peak);
	printf("reserved peak    %llu bytes, %.4f of used\n", (unsigned long long)r->reserved_peak,
	       ss_ratio(r->reserved_peak, r->used_peak));
	if (ev->reserved_peak) {
		printf("PyTorch's peak   %llu bytes reserved in the program itself, %.4f of used; "
		       "these pools need %.1f %% of that\n",
		       (unsigned long long)ev->reserved_peak,
		       ss_ratio(ev->reserved_peak, r->used_peak),
		       100 * ss_ratio(r->reserved_peak, ev->reserved_peak));
	}
	printf("hits             %llu (%.2f %%)\n", (unsigned long long)r->hits,
	       100 * ss_ratio(r->hits, r->allocations));
	printf("driver calls     %llu, of them %llu after the peak (%.2f per 100 allocations)\n",
	       (unsigned long long)r->driver_calls, (unsigned long long)r->driver_calls_after,
	       ss_calls_per_100(r));
	printf("growth           %llu %s took %llu bytes, %llu released %llu; %llu mapped, "
	       "%llu "
	       "unmapped, %llu gave access\n",
	       (unsigned long long)r->took, ss_plural(r->took, "call", "calls"),
	       (unsigned long long)r->took_bytes, (unsigned long long)r->gave,
	       (unsigned long long)r->gave_bytes, (unsigned long long)r->maps,
	       (unsigned long long)r->unmaps, (unsigned long long)r->set_access);
	printf("fences           %llu\n", (unsigned long long)r->fences);
	printf("released         %llu bytes, %llu %s\n", (unsigned long long)r->released,
	       (unsigned long long)r->remaps, ss_plural(r->remaps, "remap", "remaps"));
	printf("host metadata    %llu bytes at the peak\n", (unsigned long long)r->host_bytes);
	printf("blocks checked   %llu, no overlap\n",
	       (unsigned long long)(r->allocations - r->failed));
	if (ev->before_blocks) {
		printf("before the %-6s%llu %s, %llu bytes lived before %s\n",
		       ev->device < 0 ? "log" : "trace", (unsigned long long)ev->before_blocks,
		       ss_plural(ev->before_blocks, "block", "blocks"),
		       (unsigned long long)ev->before_bytes,
		       ev->no_history ? "the snapshot, which has no history" : "the history");
	}
	if (ev->failures) {
		printf("failed before    %llu %s failed in the program itself\n",
		       (unsigned long long)ev->failures,
		       ss_plural(ev->failures, "allocation", "allocations"));
	}
	if (ev->unknown_frees) {
		printf("skipped          %llu %s whose size the log does not have\n",
		       (unsigned long long)ev->unknown_frees,
		       ss_plural(ev->unknown_frees, "free of a block", "frees of blocks"));
	}
}

/* Returns the exit status. */
static int replay_once(struct arguments *a, const struct ss_events *ev)
{
	struct ss_replay_result r;
	char err[256];
	int status = 0;

	bool ok = a->fit ? ss_replay_fit(ev, &a->config, &r, err, sizeof(err)) :
			   ss_replay(ev, &a->config, &r, err, sizeof(err));
	if (!ok) {
		ss_cli_error("replay: %s: %s", a->path, err);
		return r.refused ? SS_EXIT_USAGE : 1;
	}
	if (r.failed) {
		snprintf(err, sizeof(err), ev->device < 0 ? "in line %u" : "at trace entry %u",
			 r.first.at);
		ss_cli_error(
			"replay: %s: out of memory: %llu of %llu %s failed, first %s: "
			"%llu "
			"%s with %llu live, and the largest hole has %llu",
			a->path, (unsigned long long)r.failed, (unsigned long long)r.allocations,
			ss_plural(r.allocations, "allocation", "allocations"),
			r.first.at == SS_EVENT_BEFORE ? "a block from before the history" : err,
			(unsigned long long)r.first.size, ss_plural(r.first.size, "byte", "bytes"),
			(unsigned long long)r.first.live, (unsigned long long)r.first.largest_hole);
	}
	if (a->json) {
		status = print_json(a, ev, &r);
	} else {
		print_text(a, ev, &r);
		if (a->config.device_ns)
			print_clock(&a->config, &r);
	}
	return status ? status : r.failed != 0;
}

static void set_option(struct ss_options *opt, const char *text, struct argp_state *state)
{
	char name[64];
	const char *value = strchr(text, '=');

	if (!value || (size_t)(value - text) >= sizeof(name)) {
		argp_error(state, "--set wants NAME=VALUE, not %s", text);
		return;
	}
	memcpy(name, text, (size_t)(value - text));
	name[value - text] = '\0';
	const char *bare = strncasecmp(name, "SOMASHIM_", 9) == 0 ? name + 9 : name;
	if (strlen(value + 1) >= sizeof(opt->log)) {
		argp_error(state, "--set %s: the value is too long, %zu characters at most", name,
			   sizeof(opt->log) - 1);
	}
	if (!ss_options_set(opt, bare, value + 1)) {
		argp_error(state,
			   "--set %s: no such option, or not a value of it; "
			   "`somashim options' lists them",
			   text);
	}
}

static uint64_t positive(struct argp_state *state, const char *option, const char *arg,
			 uint64_t max)
{
	uint64_t n = ss_arguments_number(state, option, arg, max);

	if (!n)
		argp_error(state, "%s wants a number from 1 on", option);
	return n;
}

static void set_clock(struct arguments *a, struct argp_state *state)
{
	struct ss_replay_config *c = &a->config;

	if (!a->clock && !a->host_us && !a->device_us && !c->queue && !c->segment_ns &&
	    !c->chunk_ns)
		return;
	if (c->lag)
		argp_error(state, "a device has a clock or a fixed --lag");
	a->host_us = a->host_us ? a->host_us : HOST_US;
	c->host_ns = 1000 * a->host_us;
	c->device_ns = a->device_us ? 1000 * a->device_us : DEVICE_NS_PER_HOST_US * a->host_us;
	c->queue = c->queue ? c->queue : QUEUE;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case BACKING:
		if (!ss_options_set(&a->options, "BACKING", arg))
			argp_error(state, "there is no backing %s", arg);
		return 0;
	case SET: set_option(&a->options, arg, state); return 0;
	case CLASSIC: a->config.classic = true; return 0;
	case LAG: a->config.lag = ss_arguments_number(state, "--lag", arg, 1 << 24); return 0;
	case CLOCK: a->clock = true; return 0;
	case HOST: a->host_us = positive(state, "--host-us", arg, MOST_US); return 0;
	case COMMAND: a->device_us = positive(state, "--device-us", arg, MOST_US); return 0;
	case QUEUED: a->config.queue = (uint32_t)positive(state, "--queue", arg, 1 << 24); return 0;
	case SEGMENT:
		a->config.segment_ns = 1000 * positive(state, "--segment-us", arg, MOST_US);
		return 0;
	case CHUNK:
		a->config.chunk_ns = 1000 * positive(state, "--chunk-us", arg, MOST_US);
		return 0;
	case NO_REMAP: a->config.no_remap = true; return 0;
	case EVENTS: a->config.events = true; return 0;
	case VRAM:
		a->config.vram = ss_arguments_number(state, "--vram", arg, 8ull << 40);
		if (!a->config.vram)
			argp_error(state, "--vram: a device has memory");
		return 0;
	case DEVICE: a->device = (int)ss_arguments_number(state, "--device", arg, 1024); return 0;
	case FIT: a->fit = true; return 0;
	case TRY: a->try = true; return 0;
	case ADVISE: a->advise = true; return 0;
	case JSON: a->json = true; return 0;
	case ARGP_KEY_ARG:
		if (a->path)
			argp_error(state, "one log at a time, not %s too", arg);
		a->path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	case ARGP_KEY_SUCCESS:
		set_clock(a, state);
		if (a->json && (a->try || a->advise)) {
			argp_error(state,
				   "--json prints one replay, --try and --advise compare many");
		}
		if (a->fit && (a->try || a->advise || a->config.vram)) {
			argp_error(state, "--fit finds the size of the device: not with --vram, "
					  "--try or --advise");
		}
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "LOG",
	.doc = "Runs an allocation log on the pools, over a device that exists as bookkeeping "
	       "only.\v"
	       "LOG is an RMM CSV or a PyTorch memory snapshot, plain or compressed by gzip, xz "
	       "or zstd, or saved by torch.save; - is standard input.",
};

int ss_cmd_replay(int argc, char **argv)
{
	struct arguments a = {.device = -1};
	struct ss_events ev;
	char err[512];

	ss_options_read(&a.options, environ, stderr);
	/* A replay must not write into the files that the environment names for programs. */
	a.options.log[0] = a.options.report[0] = '\0';
	ss_arguments_parse(&argp, argc, argv, 0, &a);
	if (ss_is_trace(a.path)) {
		return ss_cli_error("replay: %s: a recording: see it with `somashim report', or "
				    "make a log of it "
				    "with `somashim convert --to rmm'",
				    a.path);
	}
	if (!ss_events_read(&ev, a.path, a.device, err, sizeof(err)))
		return ss_cli_error("replay: %s: %s", a.path, err);
	if (ev.devices > 1 && a.device < 0) {
		ss_cli_error("replay: %s: the snapshot has %u devices; this is device %d, --device "
			     "chooses another",
			     a.path, ev.devices, ev.device);
	}
	if (ev.cut)
		ss_cli_error("replay: %s: line %llu is cut off, and left out", a.path, ev.cut);
	if (!a.config.vram) {
		a.config.vram = (2 * ev.peak + GIB - 1) / GIB * GIB;
		a.config.vram = a.config.vram < MIN_VRAM ? MIN_VRAM : a.config.vram;
	}
	a.config.progress = ev.count > PROGRESS_EVENTS && isatty(STDERR_FILENO);
	a.config.options = &a.options;
	int status = a.try || a.advise ? ss_tuning(a.path, &ev, &a.config, a.try, a.advise) :
					 replay_once(&a, &ev);
	ss_events_finish(&ev);
	return status;
}

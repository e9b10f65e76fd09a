/* SPDX-License-Identifier: MIT */
/* `somashim replay LOG`: what the pools would make of a program, without a GPU. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/options.h"

#define GIB (1ull << 30)

struct args {
	const char *path;
	struct ss_options options;
	struct ss_replay_config config;
	int device;
	bool json, try, advise;
};

double ss_ratio(uint64_t a, uint64_t b) {
	return b ? (double)a / (double)b : 0;
}

double ss_calls_per_100(const struct ss_replay_result *r) {
	return 100 * ss_ratio(r->driver_calls_after, r->allocations_after);
}

static void print_json(const struct ss_events *ev, const struct ss_replay_result *r) {
	printf("{\"reserved_peak\": %llu, \"used_peak\": %llu, \"ratio\": %.4f, "
		"\"allocations\": %llu, \"frees\": %llu, \"failed\": %llu, \"hits\": %llu, "
		"\"hit_rate\": %.4f, \"driver_calls\": %llu, \"driver_calls_after_peak\": %llu, "
		"\"allocations_after_peak\": %llu, \"driver_calls_per_100_after_peak\": %.2f, "
		"\"set_access\": %llu, \"fences\": %llu, \"remaps\": %llu, "
		"\"released_bytes\": %llu, \"host_bytes\": %llu, \"streams\": %u, "
		"\"unknown_frees\": %llu, \"seconds\": %.3f}\n",
		(unsigned long long)r->reserved_peak, (unsigned long long)r->used_peak,
		ss_ratio(r->reserved_peak, r->used_peak), (unsigned long long)r->allocations,
		(unsigned long long)r->frees, (unsigned long long)r->failed,
		(unsigned long long)r->hits, ss_ratio(r->hits, r->allocations),
		(unsigned long long)r->driver_calls, (unsigned long long)r->driver_calls_after,
		(unsigned long long)r->allocations_after, ss_calls_per_100(r),
		(unsigned long long)r->set_access, (unsigned long long)r->fences,
		(unsigned long long)r->remaps, (unsigned long long)r->released,
		(unsigned long long)r->host_bytes, ev->stream_count,
		(unsigned long long)ev->unknown_frees, r->seconds);
}

static void print_text(const struct ss_events *ev, const struct ss_replay_result *r) {
	printf("allocations      %llu on %u streams, %llu failed\n",
		(unsigned long long)r->allocations, ev->stream_count,
		(unsigned long long)r->failed);
	printf("used peak        %llu bytes\n", (unsigned long long)r->used_peak);
	printf("reserved peak    %llu bytes, %.4f of used\n",
		(unsigned long long)r->reserved_peak, ss_ratio(r->reserved_peak, r->used_peak));
	printf("hits             %llu (%.2f %%)\n", (unsigned long long)r->hits,
		100 * ss_ratio(r->hits, r->allocations));
	printf("driver calls     %llu, of them %llu after the peak (%.2f per 100 allocations)\n",
		(unsigned long long)r->driver_calls, (unsigned long long)r->driver_calls_after,
		ss_calls_per_100(r));
	printf("fences           %llu\n", (unsigned long long)r->fences);
	printf("given back       %llu bytes, %llu remaps\n", (unsigned long long)r->released,
		(unsigned long long)r->remaps);
	printf("host metadata    %llu bytes at the peak\n", (unsigned long long)r->host_bytes);
	printf("blocks checked   %llu, no overlap\n",
		(unsigned long long)(r->allocations - r->failed));
	if (ev->unknown_frees) {
		printf("skipped          %llu frees of blocks from before the log\n",
			(unsigned long long)ev->unknown_frees);
	}
}

/* The exit status of one replay, which is said if it is none. */
static int play(const struct args *a, const struct ss_events *ev, struct ss_replay_result *r) {
	char err[256];

	if (!ss_replay(ev, &a->config, r, err, sizeof(err))) {
		ss_cli_error("replay: %s: %s", a->path, err);
		return r->refused ? 2 : 1;
	}
	if (r->failed) {
		ss_cli_error("replay: %s: out of memory: %llu of %llu allocations failed", a->path,
			(unsigned long long)r->failed, (unsigned long long)r->allocations);
	}
	return 0;
}

static int usage(FILE *out) {
	fputs("usage: somashim replay [OPTIONS] LOG\n"
		"  LOG is an RMM CSV or a PyTorch memory snapshot, as it is or packed by gzip,\n"
		"  xz or zstd; - is standard input\n"
		"  --backing hip|hsa|vmm   where memory comes from (default: auto)\n"
		"  --set NAME=VALUE        any option, without its SOMASHIM_\n"
		"  --classic               as hipMalloc and hipFree\n"
		"  --lag N                 the device is N commands behind (default: idle)\n"
		"  --vram SIZE             of the device (default: twice the peak, 64G at least)\n"
		"  --device N              of a snapshot\n"
		"  --try                   what each option would change\n"
		"  --advise                which option is best, as a line to export\n"
		"  --json                  one object\n", out);
	return out == stderr ? 2 : 0;
}

static bool set_option(struct ss_options *options, const char *text) {
	char name[64];
	const char *value = strchr(text, '=');

	if (!value || (size_t)(value - text) >= sizeof(name)) {
		ss_cli_error("replay: --set wants NAME=VALUE, not %s", text);
		return false;
	}
	memcpy(name, text, (size_t)(value - text));
	name[value - text] = '\0';
	const char *bare = strncasecmp(name, "SOMASHIM_", 9) == 0 ? name + 9 : name;
	if (strlen(value + 1) >= sizeof(options->log)) {
		ss_cli_error("replay: --set %s: the value is too long, %zu characters at most", name,
			sizeof(options->log) - 1);
		return false;
	}
	if (!ss_options_set(options, bare, value + 1)) {
		ss_cli_error("replay: --set %s: no such option, or not a value of it; "
			"`somashim options` lists them", text);
		return false;
	}
	return true;
}

static bool parse(int argc, char **argv, struct args *a) {
	bool options = true;
	const char *v;

	for (int i = 1; i < argc; i++) {
		if (!options || argv[i][0] != '-' || strcmp(argv[i], "-") == 0) {
			if (a->path) {
				ss_cli_error("replay: one log, not %s too", argv[i]);
				return false;
			}
			a->path = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			options = false;
		} else if ((v = ss_cli_value(argc, argv, &i, "--backing"))) {
			if (!ss_options_set(&a->options, "BACKING", v)) {
				ss_cli_error("replay: there is no backing %s", v);
				return false;
			}
		} else if ((v = ss_cli_value(argc, argv, &i, "--set"))) {
			if (!set_option(&a->options, v)) {
				return false;
			}
		} else if ((v = ss_cli_value(argc, argv, &i, "--lag"))) {
			a->config.lag = ss_cli_number("--lag", v, 1 << 24);
		} else if ((v = ss_cli_value(argc, argv, &i, "--vram"))) {
			a->config.vram = ss_cli_number("--vram", v, 8ull << 40);
		} else if ((v = ss_cli_value(argc, argv, &i, "--device"))) {
			a->device = (int)ss_cli_number("--device", v, 1024);
		} else if (strcmp(argv[i], "--classic") == 0) {
			a->config.classic = true;
		} else if (strcmp(argv[i], "--try") == 0) {
			a->try = true;
		} else if (strcmp(argv[i], "--advise") == 0) {
			a->advise = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			a->json = true;
		} else if (ss_cli_help(argv[i])) {
			exit(usage(stdout));
		} else {
			ss_cli_error("replay: unknown option %s", argv[i]);
			return false;
		}
	}
	if (!a->path) {
		usage(stderr);
		return false;
	}
	if (a->json && (a->try || a->advise)) {
		ss_cli_error("replay: --json prints one run, --try and --advise compare many");
		return false;
	}
	return true;
}

int ss_cmd_replay(int argc, char **argv) {
	struct ss_replay_result result;
	struct args a = { .device = -1 };
	struct ss_events ev;
	char err[512];
	int status = 0;

	ss_options_read(&a.options, environ, stderr);
	/* What a program writes is no place for what is only played. */
	a.options.journal[0] = a.options.log[0] = a.options.report[0] = '\0';
	if (!parse(argc, argv, &a)) {
		return 2;
	}
	if (!ss_events_read(&ev, a.path, a.device, err, sizeof(err))) {
		return ss_cli_error("replay: %s: %s", a.path, err);
	}
	if (ev.cut) {
		ss_cli_error("replay: %s: line %llu is cut off, and left out", a.path, ev.cut);
	}
	if (!a.config.vram) {
		a.config.vram = (2 * ev.peak + GIB - 1) / GIB * GIB;
		a.config.vram = a.config.vram < 64 * GIB ? 64 * GIB : a.config.vram;
	}
	a.config.progress = ev.count > 200000 && isatty(STDERR_FILENO);
	a.config.options = &a.options;
	if (a.try || a.advise) {
		status = ss_try(a.path, &ev, &a.config, a.try, a.advise);
	} else {
		status = play(&a, &ev, &result);
		if (status == 0) {
			(a.json ? print_json : print_text)(&ev, &result);
		}
	}
	ss_events_finish(&ev);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* `somashim report FILE...`: what recordings say about device memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report/report.h"
#include "cli/trace_files.h"
#include "cli/writers/json.h"
#include "cli/writers/output.h"

#define SAMPLES 2048         /* of a time line in a page */
#define SAMPLES_OF_MANY 256  /* ... in the page of a job with more than MANY processes */
#define MANY 8

struct arguments {
	struct ss_trace_files files;
	const char *output, *debug_path;
	size_t most;
	bool json;
};

enum { JSON = 256, TOP, DEBUG_PATH };

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "Write a page for a browser, one file that needs no network", 0 },
	{ "json", JSON, NULL, 0, "Print one JSON object", 0 },
	{ "top", TOP, "N", 0, "Lines of each list (default: 10)", 0 },
	{ "debug-path", DEBUG_PATH, "DIR[:DIR...]", 0,
	  "Directories with debug files and copies of the program's libraries", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state) {
	struct arguments *a = state->input;
	char err[512];

	switch (key) {
	case 'o': a->output = arg; return 0;
	case JSON: a->json = true; return 0;
	case TOP: a->most = (size_t)ss_arguments_number(state, "--top", arg, 1 << 20); return 0;
	case DEBUG_PATH: a->debug_path = arg; return 0;
	case ARGP_KEY_ARG:
		if (!ss_trace_files_add(&a->files, arg, err, sizeof(err))) {
			exit(ss_cli_error("report: %s", err));
		}
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	case ARGP_KEY_SUCCESS:
		if (a->json && a->output) {
			argp_error(state, "either --json or --output");
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options, .parser = parse, .children = ss_arguments_common, .args_doc = "FILE...",
	.doc = "Shows what recordings say about device memory: peaks and who held the memory, what was "
	       "never freed, waste, waits, failures.\v"
	       "FILE is a recording of `somashim record', or a directory of them. Several are compared "
	       "as the ranks of a job.",
};

struct progress {
	size_t at, count;
};

static void draw(void *arg, double part) {
	const struct progress *p = arg;

	ss_progress_draw(((double)p->at + part) / (double)p->count);
}

static int by_rank(const void *a, const void *b) {
	const struct ss_analysis *x = *(struct ss_analysis *const *)a;
	const struct ss_analysis *y = *(struct ss_analysis *const *)b;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) :
		strcmp(x->path, y->path);
}

/* The analyses of all files, sorted by rank. A file that cannot be read is reported and left
 * out, unless it is the only one. */
static size_t analyze(const struct arguments *a, struct ss_analysis **list) {
	struct progress progress = { .count = a->files.count };
	bool bar = isatty(STDERR_FILENO);
	struct ss_analysis_config config = { .files = ss_symbol_files_open(a->debug_path), .charts = a->output,
		.samples = a->files.count > MANY ? SAMPLES_OF_MANY : SAMPLES,
		.progress = bar ? draw : NULL, .arg = &progress };
	size_t count = 0;
	char err[1024];

	for (; progress.at < a->files.count; progress.at++) {
		list[count] = ss_analysis_run(a->files.path[progress.at], &config, err, sizeof(err));
		if (bar) {
			ss_progress_clear();
		}
		if (list[count]) {
			count++;
		} else {
			ss_cli_error("report: %s%s", err, ss_is_log(a->files.path[progress.at]) ?
				": a log of allocations, for `somashim replay'" : "");
		}
	}
	qsort(list, count, sizeof(*list), by_rank);
	return count;
}

static int write_page(const struct arguments *a, const json_t *data) {
	struct ss_output out;
	char err[1024];

	if (!data) {
		return ss_cli_error("report: out of memory");
	}
	if (!ss_output_open(&out, a->output, (const char *const *)a->files.path, a->files.count, err,
			    sizeof(err))) {
		return ss_cli_error("report: %s", err);
	}
	snprintf(err, sizeof(err), "out of memory");
	bool ok = ss_report_page(out.file, data) || ferror(out.file); /* the end says why */
	return ss_output_close(&out, ok, err, sizeof(err)) ? 0 : ss_cli_error("report: %s", err);
}

/* Returns the exit status. */
static int print(const struct arguments *a, struct ss_analysis **list, size_t count,
		 const struct ss_over_ranks *o) {
	if (a->json) {
		return ss_json_print(ss_report_json(list, count, o, false));
	}
	if (a->output) {
		json_t *data = ss_report_json(list, count, o, true);
		int status = write_page(a, data);
		json_decref(data);
		return status;
	}
	if (o) {
		ss_report_ranks_text(stdout, o, a->most);
	}
	for (size_t i = 0; i < count; i++) {
		if (i || o) {
			printf("\n----\n");
		}
		ss_report_text(stdout, list[i], a->most);
	}
	return 0;
}

int ss_cmd_report(int argc, char **argv) {
	struct arguments a = { .most = 10 };
	struct ss_over_ranks over;

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	if (a.output && !ss_report_page_possible()) {
		return ss_cli_error("report: --output: this somashim was built without d3 "
			"(Debian: node-d3), so it cannot make pages");
	}
	struct ss_analysis **list = calloc(a.files.count, sizeof(*list));
	if (!list) {
		return ss_cli_error("report: out of memory");
	}
	size_t count = analyze(&a, list);
	int status = count == a.files.count ? 0 : SS_EXIT_USAGE;
	if (count > 1 && !ss_over_ranks(&over, list, count)) {
		status = ss_cli_error("report: out of memory");
	} else if (count) {
		int printed = print(&a, list, count, count > 1 ? &over : NULL);
		status = printed ? printed : status;
		if (count > 1) {
			ss_over_ranks_finish(&over);
		}
	}
	for (size_t i = 0; i < count; i++) {
		ss_analysis_free(list[i]);
	}
	free(list);
	ss_trace_files_finish(&a.files);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * `somashim record PROGRAM`: runs the program under somashim with a recording of everything
 * that happens to device memory, and says at the end where the recording is.
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/exit_summary.h"
#include "cli/framework.h"
#include "cli/recorded_summary.h"
#include "cli/ring/fold.h"
#include "cli/ring/size.h"
#include "cli/run_preload.h"
#include "cli/run_report.h"
#include "cli/trace_files.h"
#include "cli/writers/output.h"
#include "config/options.h"
#include "trace/file_name.h"

#define PATTERN_BYTES sizeof(((struct ss_options *)0)->trace)

struct arguments {
	bool audit;
	const char *framework;    /* NULL: none */
	struct ss_ring_size ring; /* bytes 0: everything is kept */
	const char *output;       /* a pattern of trace/file_name.h */
	char **program;           /* its name and arguments, as for exec */
};

static const struct argp_option options[] = {
	SS_RUN_AUDIT,
	SS_FRAMEWORK,
	{"output", 'o', "FILE", 0,
	 "Write the recording to FILE; %p in it is the process id, %h the host, %r the rank, "
	 "%q{VAR} a variable "
	 "(default: PROGRAM.%p.trace)",
	 0},
	{"ring", 'r', "TIME|SIZE", 0,
	 "Keep the newest events only: those of the last TIME (10m; s, m, h, d), or what fits into "
	 "SIZE (512M; K, M, G, T), or "
	 "both with a comma; a TIME has at most 1G. `somashim dump --trace PID' writes them out "
	 "while the program runs",
	 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case SS_RUN_AUDIT_KEY: a->audit = true; return 0;
	case SS_FRAMEWORK_KEY: a->framework = ss_framework_argument(arg); return 0;
	case 'o':
		if (ss_output_is_stdout(arg))
			argp_error(state, "--output: a recording is a file, and cannot be written "
					  "to standard output");
		a->output = arg;
		return 0;
	case 'r':
		if (!ss_ring_size_parse(arg, &a->ring)) {
			argp_error(state,
				   "--ring: '%s' is no time of 1s to 366d, no size of 4M to 64G, "
				   "and not both with a "
				   "comma between them",
				   arg);
		}
		return 0;
	case ARGP_KEY_ARG: a->program = ss_arguments_program(state); return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "PROGRAM [ARGUMENT...]",
	.doc = "Runs PROGRAM under somashim and records what happens to device memory, with one "
	       "file "
	       "per process: of a name that is taken, the next one (FILE.2).\v`somashim report "
	       "FILE' shows a recording.",
};

/* The pattern as an absolute one, as the program may change its directory before it uses a
 * device. */
static bool make_pattern(const struct arguments *a, char *pattern)
{
	const char *name = strrchr(a->program[0], '/');
	const char *tail = a->output ? a->output : ".%p.trace";
	char cwd[PATH_MAX];

	pattern[0] = '\0';
	if (!a->output || a->output[0] != '/') {
		if (!getcwd(cwd, sizeof(cwd)) ||
		    !ss_file_name_append(pattern, PATTERN_BYTES, cwd) ||
		    !ss_file_name_append(pattern, PATTERN_BYTES, "/"))
			return false;
	}
	if (!a->output &&
	    !ss_file_name_append(pattern, PATTERN_BYTES, name ? name + 1 : a->program[0]))
		return false;
	if (strlen(pattern) + strlen(tail) >= PATTERN_BYTES)
		return false;
	strcat(pattern, tail);
	return true;
}

/* Says where the recording is. Files that began before `start` are of earlier runs. `running`:
 * processes that the program started have not ended. */
static void print_files(const char *pattern, uint64_t start, bool running)
{
	char wild[2 * PATTERN_BYTES + 2];
	size_t count = 0;
	glob_t found = {0};

	if (!ss_file_glob(pattern, wild, sizeof(wild)) || glob(wild, 0, NULL, &found) != 0)
		found.gl_pathc = 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (ss_trace_start(found.gl_pathv[i]) >= start) {
			char *other = found.gl_pathv[count];
			found.gl_pathv[count++] = found.gl_pathv[i];
			found.gl_pathv[i] = other;
		}
	}
	if (count > 0) {
		ss_recorded_summary(found.gl_pathv, count);
	} else if (!running) {
		fprintf(stderr,
			"somashim: nothing was recorded in %s: the program used no device, or "
			"the file could not be written (said above)\n",
			pattern);
	}
	if (count > 0)
		ss_framework_say_hidden(found.gl_pathv[0]);
	if (running) {
		fprintf(stderr,
			"somashim: the program has ended, but processes that it started run on: "
			"they "
			"record to %s\n",
			pattern);
	}
	if (found.gl_pathv)
		globfree(&found);
}

int ss_cmd_record(int argc, char **argv)
{
	struct arguments a = {0};
	char pattern[PATTERN_BYTES], err[8192];
	struct timespec start;
	pid_t started;

	ss_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &a);
	if (a.framework && !ss_framework_set(a.framework, false, err, sizeof(err)))
		return ss_cli_error("record: %s", err);
	if (!make_pattern(&a, pattern))
		return ss_cli_error("record: the name of the recording is too long");
	/* A program may run for hours before it uses a device and cannot write. */
	if (!ss_file_possible(pattern)) {
		return ss_cli_error("record: %s: %s", a.output ? a.output : pattern,
				    errno == ENODEV ? "it is no regular file" : strerror(errno));
	}
	if (!ss_preload_enter(a.program[0], a.audit, true, err, sizeof(err)))
		return ss_cli_error("record: %s", err);
	struct ss_report *report = ss_run_report_open(err, sizeof(err));
	if (!report)
		ss_cli_error("record: %s: whether it is used will not be said", err);
	setenv("SOMASHIM_TRACE", pattern, 1);
	unsetenv("SOMASHIM_TRACE_RING");
	if (a.ring.bytes) {
		char bytes[32];
		snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)a.ring.bytes);
		setenv("SOMASHIM_TRACE_RING", bytes, 1);
		if (!ss_ring_keep(pattern, a.ring.keep_ns)) {
			return ss_cli_error(
				"record: the process that keeps the ring cannot be started: %s",
				strerror(errno));
		}
	}
	clock_gettime(CLOCK_REALTIME, &start);
	int status = ss_child_run(a.program, &started);
	if (report && !ss_run_report_close(report, err, sizeof(err))) {
		ss_cli_error("record: %s", err);
		report = NULL;
	}
	ss_ring_keep_end(); /* the file may be copied from now on */
	if (started && report)
		ss_exit_warning(report, a.program[0], status);
	if (started && ss_job_rank() == 0) { /* one line per job */
		print_files(pattern, (uint64_t)start.tv_sec * 1000000000u + (uint64_t)start.tv_nsec,
			    ss_child_others());
	}
	return ss_child_exit(status);
}

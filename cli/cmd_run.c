/* SPDX-License-Identifier: MIT */
/*
 * `somashim run PROGRAM`: runs the program with the preload in place, and says at the end whether
 * it was used. With --quiet it executes the program in its own place and says nothing.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/exit_summary.h"
#include "cli/framework.h"
#include "cli/killed_summary.h"
#include "cli/run_preload.h"
#include "cli/run_report.h"
#include "cli/run_selftest.h"

struct arguments {
	bool audit, quiet, no_selftest;
	const char *framework; /* NULL: none */
	char **program;        /* its name and arguments, as for exec */
};

enum { NO_SELFTEST = 256 };

static const struct argp_option options[] = {
	SS_RUN_AUDIT,
	SS_FRAMEWORK,
	{"no-self-test", NO_SELFTEST, NULL, 0,
	 "Never try whether virtual memory works, not even once on a new runtime, driver or device",
	 0},
	{"quiet", 'q', NULL, 0, "Become the program and say nothing", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case SS_RUN_AUDIT_KEY: a->audit = true; return 0;
	case SS_FRAMEWORK_KEY: a->framework = ss_framework_argument(arg); return 0;
	case NO_SELFTEST: a->no_selftest = true; return 0;
	case 'q': a->quiet = true; return 0;
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
	.doc = "Runs PROGRAM under somashim and says at the end what somashim did.\v"
	       "`somashim options' lists the variables that set limits, thresholds, logs and more; "
	       "`man libsomashim' explains them, and the messages.",
};

int ss_cmd_run(int argc, char **argv)
{
	struct arguments a = {0};
	struct ss_report *report = NULL;
	char err[8192];
	pid_t started;

	ss_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &a);
	if (a.framework && !ss_framework_set(a.framework, a.quiet, err, sizeof(err)))
		return ss_cli_error("run: %s", err);
	if (!ss_preload_enter(a.program[0], a.audit, a.quiet, err, sizeof(err)))
		return ss_cli_error("run: %s", err);
	if (!a.quiet) {
		if (ss_job_rank() == 0) /* one table per job */
			setenv("SOMASHIM_STATS", "1", 0);
		report = ss_run_report_open(err, sizeof(err));
		if (!report)
			ss_cli_error("run: %s: how it is used will not be said", err);
	}
	if (!report)
		return ss_child_exec(a.program);
	if (!a.no_selftest)
		ss_run_selftest_start(report);
	int status = ss_child_run(a.program, &started);
	ss_run_selftest_stop();
	bool known = ss_run_report_close(report, err, sizeof(err));
	if (started && WIFSIGNALED(status))
		ss_killed_summary(started);
	if (started && !known)
		ss_cli_error("run: %s", err);
	if (started) {
		if (known)
			ss_exit_summary(report, a.program[0], status);
		if (ss_child_others()) {
			fprintf(stderr, "somashim: the program has ended, but processes that it "
					"started run on: "
					"what they do from now on is not said\n");
		}
	}
	return ss_child_exit(status);
}

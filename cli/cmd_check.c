/* SPDX-License-Identifier: MIT */
/*
 * `somashim check PROGRAM`: runs the program with the checker, and says at the end what it found,
 * with the words and options of compute-sanitizer.
 */
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/check/found.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/run_preload.h"
#include "config/options.h"

enum {
	KEY_RACES = 256,
	KEY_LEAK,
	KEY_EXITCODE,
	KEY_JSON,
	KEY_SARIF,
	KEY_SUPPRESSIONS,
	KEY_LOG,
	KEY_PADDING,
	KEY_MERGE
};

struct arguments {
	bool audit, leak, merge;
	const char *tools, *races, *padding, *json, *sarif, *suppressions, *log;
	int error_status;
	char **program; /* or the files */
};

static const struct argp_option options[] = {
	SS_RUN_AUDIT,
	{"tool", 't', "LIST", 0,
	 "What to look for: order, bounds, free, leak, or all, in a list (default: "
	 "order,bounds,free)",
	 0},
	{"leak-check", KEY_LEAK, "full|no", 0, "full: as --tool leak beside the others", 0},
	{"track-stream-ordered-races", KEY_RACES, "WHICH", 0,
	 "Errors of order: all, use-before-alloc or use-after-free (default: all)", 0},
	{"padding", KEY_PADDING, "BYTES", 0,
	 "Bytes behind each block that the tool bounds watches, at most 4096 (default: 256)", 0},
	{"error-exitcode", KEY_EXITCODE, "N", 0,
	 "Exit with N if errors were found and the program ended with 0 (default: 0)", 0},
	{"json", KEY_JSON, "FILE", OPTION_ARG_OPTIONAL,
	 "Also write what was found as JSON (default: to stdout)", 0},
	{"sarif", KEY_SARIF, "FILE", 0, "Also write it as SARIF 2.1.0", 0},
	{"suppressions", KEY_SUPPRESSIONS, "FILE", 0,
	 "Leave out findings that a line of FILE describes: FAULT FUNCTION-OR-MODULE...", 0},
	{"merge", KEY_MERGE, NULL, 0,
	 "Run nothing: make one report of FILEs of --json or SOMASHIM_CHECK_FILE", 0},
	{"log-file", KEY_LOG, "FILE", 0, "Write the report to FILE (default: stderr)", 0},
	{0},
};

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || (c && strcmp(word, c) == 0);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct ss_options test;

	switch (key) {
	case SS_RUN_AUDIT_KEY: a->audit = true; return 0;
	case 't':
		ss_options_default(&test);
		if (!ss_options_set(&test, "CHECK", arg) || !test.check) {
			argp_error(state,
				   "--tool=%s: it is no list of order, bounds, free, leak, all",
				   arg);
		}
		a->tools = arg;
		return 0;
	case KEY_LEAK:
		if (!is_one_of(arg, "full", "no", NULL))
			argp_error(state, "--leak-check=%s: it is neither full nor no", arg);
		a->leak = strcmp(arg, "full") == 0;
		return 0;
	case KEY_RACES:
		if (!is_one_of(arg, "all", "use-before-alloc", "use-after-free")) {
			argp_error(state,
				   "--track-stream-ordered-races=%s: it is none of all, "
				   "use-before-alloc, use-after-free",
				   arg);
		}
		a->races = arg;
		return 0;
	case KEY_EXITCODE:
		a->error_status = (int)ss_arguments_number(state, "error-exitcode", arg, 255);
		return 0;
	case KEY_PADDING:
		(void)ss_arguments_number(state, "padding", arg, 4096);
		a->padding = arg;
		return 0;
	case KEY_JSON: a->json = arg ? arg : "-"; return 0;
	case KEY_SARIF: a->sarif = arg; return 0;
	case KEY_SUPPRESSIONS: a->suppressions = arg; return 0;
	case KEY_MERGE: a->merge = true; return 0;
	case KEY_LOG: a->log = arg; return 0;
	case ARGP_KEY_ARG: a->program = ss_arguments_program(state); return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "PROGRAM [ARGUMENT...]\n--merge FILE...",
	.doc = "Runs PROGRAM and tells where it uses device memory in a wrong order of streams, "
	       "frees it wrongly, or "
	       "never.\vNothing is said that is not certain; the last lines say what was not "
	       "checked.",
};

static void remove_files(const char *folder, const char *wild)
{
	glob_t files = {0};

	if (glob(wild, 0, NULL, &files) == 0) {
		for (size_t i = 0; i < files.gl_pathc; i++)
			unlink(files.gl_pathv[i]);
		globfree(&files);
	}
	rmdir(folder);
}

static bool report(const struct arguments *a, const struct ss_check_report *f)
{
	FILE *out = a->log ? fopen(a->log, "we") : stderr;

	if (!out) {
		ss_cli_error("check: %s: %s", a->log, strerror(errno));
		return false;
	}
	ss_found_text(f, out);
	if (out != stderr && fclose(out) != 0) {
		ss_cli_error("check: %s: %s", a->log, strerror(errno));
		return false;
	}
	if ((a->json && !ss_found_json(f, a->json)) || (a->sarif && !ss_found_sarif(f, a->sarif))) {
		ss_cli_error("check: the JSON or SARIF file could not be written");
		return false;
	}
	return true;
}

/* The exit status for what was found. -1: the program's own. */
static int judge(const struct arguments *a, char *const *paths, const struct ss_suppressions *s,
		 bool running)
{
	struct ss_check_report found;
	char err[8192];
	int status = -1;

	if (!ss_found_read(&found, paths, s, err, sizeof(err)))
		return ss_cli_error("check: %s", err);
	if (json_array_size(found.processes) == 0 && json_array_size(found.findings) == 0) {
		fprintf(stderr, "somashim: nothing was checked: the program used no device, or was "
				"killed before it ended\n");
	}
	if (running) {
		fprintf(stderr, "somashim: processes that the program started run on: they were "
				"not checked to their end\n");
	}
	if (!report(a, &found))
		status = SS_EXIT_USAGE;
	else if (found.errors && a->error_status)
		status = a->error_status;
	ss_found_finish(&found);
	return status;
}

static int judge_files(const struct arguments *a, const char *wild, const struct ss_suppressions *s,
		       bool running)
{
	glob_t files = {0};
	int status;

	(void)glob(wild, 0, NULL, &files);
	status = judge(a, files.gl_pathv, s, running);
	globfree(&files);
	return status;
}

int ss_cmd_check(int argc, char **argv)
{
	struct arguments a = {.tools = "order,bounds,free", .races = "all"};
	struct ss_suppressions *s = NULL;
	const char *tmp = getenv("TMPDIR");
	char folder[4096], pattern[4200], wild[4200], tools[256], err[8192];
	pid_t started;

	ss_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &a);
	if (a.suppressions && !(s = ss_suppressions_read(a.suppressions, err, sizeof(err))))
		return ss_cli_error("check: %s", err);
	if (a.merge) {
		int merged = judge(&a, a.program, s, false);
		ss_suppressions_free(s);
		return merged < 0 ? 0 : merged;
	}
	snprintf(folder, sizeof(folder), "%s/somashim-check.XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		ss_suppressions_free(s);
		return ss_cli_error("check: %s: %s", folder, strerror(errno));
	}
	snprintf(pattern, sizeof(pattern), "%s/%%p.json", folder);
	snprintf(wild, sizeof(wild), "%s/*.json", folder);
	snprintf(tools, sizeof(tools), "%s%s", a.tools, a.leak ? ",leak" : "");
	if (!ss_preload_enter(a.audit ? a.program[0] : NULL, true, err, sizeof(err))) {
		remove_files(folder, wild);
		ss_suppressions_free(s);
		return ss_cli_error("check: %s", err);
	}
	setenv("SOMASHIM_CHECK", tools, 1);
	setenv("SOMASHIM_CHECK_RACES", a.races, 1);
	if (a.padding)
		setenv("SOMASHIM_CHECK_PADDING", a.padding, 1);
	setenv("SOMASHIM_CHECK_FILE", pattern, 1);
	int status = ss_child_run(a.program, &started);
	int judged = started ? judge_files(&a, wild, s, ss_child_others()) : -1;
	remove_files(folder, wild);
	ss_suppressions_free(s);
	if (judged >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return judged;
	return ss_child_exit(status);
}

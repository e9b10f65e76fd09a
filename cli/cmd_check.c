/* SPDX-License-Identifier: MIT */
/*
 * `somashim check PROGRAM`: runs the program with the checker, and says at the end what it found,
 * with the words and options of compute-sanitizer.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/arguments.h"
#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/exit_summary.h"
#include "cli/plural.h"
#include "cli/readers/temporary_file.h"
#include "cli/run_preload.h"
#include "cli/run_report.h"
#include "cli/writers/output.h"
#include "config/options.h"
#include "trace/file_name.h"

enum {
	KEY_RACES = 256,
	KEY_LEAK,
	KEY_EXITCODE,
	KEY_JSON,
	KEY_SARIF,
	KEY_SUPPRESSIONS,
	KEY_GEN,
	KEY_LOG,
	KEY_PADDING,
	KEY_FRONT,
	KEY_GUARD,
	KEY_POSSIBLE,
	KEY_API,
	KEY_KERNEL,
	KEY_LAUNCHES,
	KEY_LIMIT,
	KEY_PERCENT,
	KEY_REQUIRE,
	KEY_MERGE
};

struct arguments {
	bool audit, leak, merge, possible;
	const char *require; /* yes or no; NULL: not said */
	const char *percent, *api, *kernel, *launches;
	unsigned long limit; /* of findings in the report; 0: none */
	const char *tools, *races, *padding, *front, *guard, *json, *sarif, *suppressions, *gen,
		*log;
	int error_status;
	char **program; /* or the files */
};

static const struct argp_option options[] = {
	SS_RUN_AUDIT,
	{"tool", 't', "LIST", 0,
	 "What to look for: order, race, bounds, free, leak, poison, guard, or all of these; init, "
	 "unused; in a list (default: order,race,bounds,free)",
	 0},
	{"leak-check", KEY_LEAK, "full|no", 0, "full: as --tool leak beside the others", 0},
	{"track-stream-ordered-races", KEY_RACES, "WHICH", 0,
	 "Errors of order: all, use-before-alloc or use-after-free (default: all)", 0},
	{"padding", KEY_PADDING, "BYTES", 0,
	 "Bytes behind each block that the tool bounds watches, at most 4096 (default: 256)", 0},
	{"padding-front", KEY_FRONT, "BYTES", 0,
	 "Bytes in front of each block that it watches, at most 4096 (default: 0)", 0},
	{"guard", KEY_GUARD, "BYTES", 0,
	 "The least block that the tool guard ends at an unmapped page (default: 1M)", 0},
	{"possible", KEY_POSSIBLE, NULL, 0,
	 "Also report possible errors: addresses in values that a kernel is passed", 0},
	{"report-api-errors", KEY_API, "all|explicit|no", 0,
	 "Also report calls of HIP that fail; explicit: but for those that ROCm's own libraries "
	 "make (default: no)",
	 0},
	{"kernel-name", KEY_KERNEL, "NAME", 0,
	 "Check only the kernels with NAME in their name, as the linker knows it; kne=NAME: only "
	 "the "
	 "one of this name",
	 0},
	{"launch-count", KEY_LAUNCHES, "N", 0,
	 "Check only the first N launches of (these) kernels (default: 0: all)", 0},
	{"init-percent", KEY_PERCENT, "N", 0,
	 "The tool init reports a copy to the host if at least N percent of it were never "
	 "written (default: 100)",
	 0},
	{"print-limit", KEY_LIMIT, "N", 0,
	 "Print at most N findings in the report; --json and --sarif have all (default: 0: no "
	 "limit)",
	 0},
	{"error-exitcode", KEY_EXITCODE, "N", 0,
	 "Exit with N if errors were found and the program ended with 0 (default: 0)", 0},
	{"require-device", KEY_REQUIRE, "yes|no", OPTION_ARG_OPTIONAL,
	 "Exit with 3 if the program ended with 0, but used no device, or was not checked to its "
	 "end (default: no; with --error-exitcode: yes)",
	 0},
	{"json", KEY_JSON, "FILE", OPTION_ARG_OPTIONAL,
	 "Also write what was found as JSON (default: to stdout)", 0},
	{"sarif", KEY_SARIF, "FILE", 0, "Also write it as SARIF 2.1.0", 0},
	{"suppressions", KEY_SUPPRESSIONS, "FILE", 0,
	 "Leave out findings that a line of FILE describes: FAULT FUNCTION-OR-MODULE...", 0},
	{"gen-suppressions", KEY_GEN, "FILE", 0, "Write a line for each finding that suppresses it",
	 0},
	{"merge", KEY_MERGE, NULL, 0,
	 "Run nothing: make one report of FILEs of --json or SOMASHIM_CHECK_FILE", 0},
	{"log-file", KEY_LOG, "FILE", 0, "Write the report to FILE (default: stderr)", 0},
	{0},
};

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || (c && strcmp(word, c) == 0);
}

static bool same_file(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
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
				   "--tool=%s: it is no list of order, race, bounds, free, leak, "
				   "poison, guard, all, init, unused",
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
	case KEY_API:
		if (!is_one_of(arg, "all", "explicit", "no"))
			argp_error(state, "--report-api-errors=%s: it is none of all, explicit, no",
				   arg);
		a->api = arg;
		return 0;
	case KEY_KERNEL:
		ss_options_default(&test);
		if (!arg[0] || !ss_options_set(&test, "CHECK_KERNEL", arg))
			argp_error(state, "--kernel-name: the name is %s",
				   arg[0] ? "too long" : "empty");
		a->kernel = arg;
		return 0;
	case KEY_LAUNCHES:
		(void)ss_arguments_number(state, "launch-count", arg, INT_MAX);
		a->launches = arg;
		return 0;
	case KEY_PERCENT:
		ss_options_default(&test);
		if (!ss_options_set(&test, "CHECK_INIT_PERCENT", arg))
			argp_error(state, "--init-percent=%s: it is no number from 1 to 100", arg);
		a->percent = arg;
		return 0;
	case KEY_LIMIT:
		a->limit = (unsigned long)ss_arguments_number(state, "print-limit", arg, INT_MAX);
		return 0;
	case KEY_EXITCODE:
		a->error_status = (int)ss_arguments_number(state, "error-exitcode", arg, 255);
		return 0;
	case KEY_PADDING:
		(void)ss_arguments_number(state, "padding", arg, SS_PADDING_MOST);
		a->padding = arg;
		return 0;
	case KEY_FRONT:
		(void)ss_arguments_number(state, "padding-front", arg, SS_PADDING_MOST);
		a->front = arg;
		return 0;
	case KEY_GUARD:
		ss_options_default(&test);
		if (!ss_options_set(&test, "CHECK_GUARD", arg))
			argp_error(state, "--guard=%s: it is no size, such as 64K", arg);
		a->guard = arg;
		return 0;
	case KEY_REQUIRE:
		a->require = arg ? arg : "yes";
		if (!is_one_of(a->require, "yes", "no", NULL))
			argp_error(state, "--require-device=%s: it is neither yes nor no", arg);
		return 0;
	case KEY_POSSIBLE: a->possible = true; return 0;
	case KEY_JSON: a->json = arg ? arg : "-"; return 0;
	case KEY_SARIF: a->sarif = arg; return 0;
	case KEY_SUPPRESSIONS: a->suppressions = arg; return 0;
	case KEY_GEN: a->gen = arg; return 0;
	case KEY_MERGE: a->merge = true; return 0;
	case KEY_LOG: a->log = arg; return 0;
	case ARGP_KEY_ARG: a->program = ss_arguments_program(state); return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	case ARGP_KEY_SUCCESS:
		if (same_file(a->log, a->json) || same_file(a->json, a->sarif) ||
		    same_file(a->log, a->sarif) || same_file(a->gen, a->log) ||
		    same_file(a->gen, a->json) || same_file(a->gen, a->sarif))
			argp_error(state, "two of --log-file, --json, --sarif and "
					  "--gen-suppressions name one file");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "PROGRAM [ARGUMENT...]\n--merge FILE...",
	.doc = "Runs PROGRAM and tells where it uses device memory in a wrong order of streams, "
	       "frees it wrongly, or never.\v"
	       "Tools:\n"
	       "  order    uses and frees in a wrong order of streams\n"
	       "  race     copies and memsets of the same bytes that nothing orders\n"
	       "  bounds   writes in front of a block or behind it\n"
	       "  free     invalid and double frees\n"
	       "  leak     blocks that are never freed\n"
	       "  poison   writes into freed blocks\n"
	       "  guard    the device faults behind large blocks\n"
	       "  init     copies to the host of bytes that were never written\n"
	       "  unused   blocks that were never written\n"
	       "Nothing is said that is not certain; the last lines say what was not checked.",
};

/* The files that the options name, as they are opened before the program runs: it may take
 * hours. */
struct outputs {
	struct ss_output log, json, sarif, gen;
};

/* False with a message in `err`. `inputs` ends with NULL. */
static bool outputs_open(struct outputs *o, const struct arguments *a, char *const *inputs,
			 char *err, size_t size)
{
	const struct {
		struct ss_output *out;
		const char *path;
	} all[] = {
		{&o->log, a->log}, {&o->json, a->json}, {&o->sarif, a->sarif}, {&o->gen, a->gen}};
	size_t count = 0;

	memset(o, 0, sizeof(*o));
	while (inputs && inputs[count])
		count++;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].path && !ss_output_open(all[i].out, all[i].path,
						   (const char *const *)inputs, count, err, size))
			return false;
	if (!o->log.file)
		o->log.file = stderr;
	return true;
}

/* Writes the last of each, or removes what is not `good`. False with a message in `err`. */
static bool outputs_close(struct outputs *o, bool good, char *err, size_t size)
{
	struct ss_output *all[] = {&o->log, &o->json, &o->sarif, &o->gen};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->path && all[i]->file)
			good = ss_output_close(all[i], good, err, size);
	return good;
}

/* False with a message in `err`. */
static bool write_report(struct outputs *o, const struct ss_check_report *f, size_t limit,
			 char *err, size_t size)
{
	ss_found_text(f, limit, o->log.file);
	bool good = (!o->json.file || ss_found_json(f, o->json.file) || ferror(o->json.file)) &&
		    (!o->sarif.file || ss_found_sarif(f, o->sarif.file) || ferror(o->sarif.file)) &&
		    (!o->gen.file || ss_suppressions_write(f, o->gen.file) || ferror(o->gen.file));

	snprintf(err, size, "out of memory");
	good = outputs_close(o, good, err, size); /* this says why a file could not be written */
	if (good && !o->log.path && (fflush(stderr) != 0 || ferror(stderr)))
		good = false;
	return good;
}

/* The exit status of a run that does not show what it was meant to show. */
#define EXIT_NOT_CHECKED 3

/* Says which processes were not checked to their end. `used`: how many used a device. False: there
 * are such, or none used one. */
static bool all_checked(const struct ss_check_report *found, size_t used, bool running)
{
	size_t ended = json_array_size(found->processes);
	uint64_t forgotten = 0, bypassed = 0;

	for (size_t i = 0; i < ended; i++) {
		const json_t *process = json_array_get(found->processes, i);
		forgotten += number(process, "forgotten");
		bypassed += number(process, "bypassed");
	}
	if (!used && !ended && json_array_size(found->findings) == 0)
		fprintf(stderr, "somashim: nothing was checked\n");
	else if (running)
		fprintf(stderr, "somashim: processes that the program started run on: they were "
				"not checked to their end\n");
	else if (ended < used)
		fprintf(stderr,
			"somashim: %zu %s that used a device %s killed before the end, or became "
			"another program: not all was checked, and leaks are not known\n",
			used - ended, ss_plural(used - ended, "process", "processes"),
			ss_plural(used - ended, "was", "were"));
	else if (forgotten)
		fprintf(stderr, "somashim: host memory was out: not all was checked\n");
	else if (bypassed)
		fprintf(stderr, "somashim: not all was checked: calls went past somashim\n");
	else
		return ended != 0;
	return false;
}

/* The exit status for what was found. -1: the program's own. `used`: of a run, how many processes
 * used a device; NULL: there was no run. `unwritten`: processes that could not write what they
 * found. */
static int judge(const struct arguments *a, struct outputs *o, char *const *paths,
		 struct ss_suppressions *s, const size_t *used, unsigned unwritten)
{
	bool require = a->require ? strcmp(a->require, "yes") == 0 : a->error_status != 0;
	/* The end of the process frees it at once, not finding by finding. */
	static struct ss_check_report found;
	char err[8192];
	int status = -1;

	ss_cli_say_nameless("check");
	if (!ss_found_read(&found, paths, s, err, sizeof(err))) {
		ss_cli_error("check: %s", err);
		outputs_close(o, false, err, sizeof(err));
		return SS_EXIT_USAGE;
	}
	if (s)
		ss_suppressions_say_unused(s, a->suppressions);
	bool all = !used || all_checked(&found, *used, ss_child_others());
	if (!write_report(o, &found, a->limit, err, sizeof(err)))
		status = ss_cli_error("check: %s", err);
	else if (unwritten)
		status = ss_cli_error(
			"check: %u %s could not write all that was found (said above)", unwritten,
			ss_plural(unwritten, "process", "processes"));
	else if (found.errors && a->error_status)
		status = a->error_status;
	else if (require && !all)
		status = EXIT_NOT_CHECKED;
	return status;
}

/* A process that was killed before it found anything left an empty file. */
static void drop_empty(char **paths)
{
	char **to = paths;
	struct stat st;

	for (char **path = paths; path && *path; path++)
		if (stat(*path, &st) == 0 && st.st_size > 0)
			*to++ = *path;
		else
			free(*path);
	if (to)
		*to = NULL;
}

/* Reports on the files that are given. Returns the exit status. */
static int merge(const struct arguments *a, struct ss_suppressions *s)
{
	struct outputs o;
	char err[8192];

	if (!outputs_open(&o, a, a->program, err, sizeof(err))) {
		ss_cli_error("check: %s", err);
		outputs_close(&o, false, err, sizeof(err));
		return SS_EXIT_USAGE;
	}
	int status = judge(a, &o, a->program, s, NULL, 0);
	return status < 0 ? 0 : status;
}

/* Runs the program, with its findings in `folder`, and reports on them. Returns the exit status. */
static int run(const struct arguments *a, struct ss_suppressions *s, const char *folder)
{
	char pattern[sizeof(((struct ss_options *)0)->check_file)] = "", tools[256], err[8192];
	struct outputs o;
	pid_t started;

	if (!ss_file_name_append(pattern, sizeof(pattern) - strlen("/%p.json"), folder))
		return ss_cli_error("check: %s: the name is too long: see TMPDIR", folder);
	strcat(pattern, "/%p.json");
	if (!ss_preload_enter(a->program[0], a->audit, true, err, sizeof(err)))
		return ss_cli_error("check: %s", err);
	if (!outputs_open(&o, a, NULL, err, sizeof(err))) {
		ss_cli_error("check: %s", err);
		outputs_close(&o, false, err, sizeof(err));
		return SS_EXIT_USAGE;
	}
	snprintf(tools, sizeof(tools), "%s%s", a->tools, a->leak ? ",leak" : "");
	setenv("SOMASHIM_CHECK", tools, 1);
	setenv("SOMASHIM_CHECK_RACES", a->races, 1);
	if (a->padding)
		setenv("SOMASHIM_CHECK_PADDING", a->padding, 1);
	if (a->front)
		setenv("SOMASHIM_CHECK_FRONT", a->front, 1);
	if (a->guard)
		setenv("SOMASHIM_CHECK_GUARD", a->guard, 1);
	if (a->kernel)
		setenv("SOMASHIM_CHECK_KERNEL", a->kernel, 1);
	if (a->launches)
		setenv("SOMASHIM_CHECK_LAUNCHES", a->launches, 1);
	if (a->percent)
		setenv("SOMASHIM_CHECK_INIT_PERCENT", a->percent, 1);
	setenv("SOMASHIM_CHECK_API", a->api ? a->api : "no", 1);
	setenv("SOMASHIM_CHECK_POSSIBLE", a->possible ? "1" : "0", 1);
	setenv("SOMASHIM_CHECK_FILE", pattern, 1);
	struct ss_report *report = ss_run_report_open(err, sizeof(err));
	if (!report) {
		ss_cli_error("check: %s", err);
		outputs_close(&o, false, err, sizeof(err));
		return SS_EXIT_USAGE;
	}
	int status = ss_child_run(a->program, &started), judged = -1;
	bool known = ss_run_report_close(report, err, sizeof(err));
	if (started) {
		char **paths = ss_temporary_files(folder);
		size_t used = report->used;
		drop_empty(paths);
		if (known)
			ss_exit_warning(report, a->program[0], status);
		judged = judge(a, &o, paths, s, known ? &used : NULL, report->unwritten);
		if (!known)
			judged = ss_cli_error("check: %s", err);
		else if (!paths)
			judged = ss_cli_error("check: what was found cannot be read");
		ss_temporary_files_free(paths);
	} else {
		outputs_close(&o, false, err, sizeof(err));
	}
	if (judged >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return judged;
	ss_temporary_folder_remove(folder);
	return ss_child_exit(status);
}

int ss_cmd_check(int argc, char **argv)
{
	struct arguments a = {.tools = "order,race,bounds,free", .races = "all"};
	struct ss_suppressions *s = NULL;
	char folder[PATH_MAX], err[8192];
	int status;

	ss_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &a);
	if (a.suppressions && !(s = ss_suppressions_read(a.suppressions, err, sizeof(err))))
		return ss_cli_error("check: %s", err);
	if (a.merge) {
		status = merge(&a, s);
	} else if (!ss_temporary_folder("somashim-check", folder)) {
		status = ss_cli_error("check: %s: %s", folder, strerror(errno));
	} else {
		status = run(&a, s, folder);
		ss_temporary_folder_remove(folder);
	}
	ss_suppressions_free(s);
	return status;
}

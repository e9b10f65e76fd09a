/* SPDX-License-Identifier: MIT */
/* `somashim report FILE...`: prints what recordings show about device memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/check/found.h"
#include "cli/cli.h"
#include "cli/plural.h"
#include "cli/progress.h"
#include "cli/report/report.h"
#include "cli/report_analysis.h"
#include "cli/report_conditions.h"
#include "cli/report_run.h"
#include "cli/report_suppressions.h"
#include "cli/trace_files.h"
#include "cli/writers/json.h"
#include "cli/writers/output.h"

#define SAMPLES 2048         /* of a time line in a page */
#define SAMPLES_OF_MANY 256  /* ... in the page of a job with more than MANY processes */
#define LIVES 20000          /* blocks whose lives are in a page */
#define LIVES_OF_MANY 2000
#define MANY 8
#define WORST 5              /* processes of such a job that are shown one by one */

struct arguments {
	struct ss_trace_files files;
	const char *output, *debug_path;
	size_t most;
	size_t details;      /* processes that are shown one by one; SIZE_MAX: as many as fit */
	size_t run;          /* from 1; 0: the newest */
	size_t names, first; /* arguments that are files; files of the first of them */
	const char *name[2];
	enum ss_by by;
	bool json, csv, diff;
	struct ss_conditions fail_if;
	struct ss_part part;
	const char *phase; /* NULL: all of the recording */
	uint64_t phase_number;
	const char *suppressions_path;
	struct ss_suppressions *suppressions; /* NULL: none */
	struct ss_symbol_files *symbols;
};

enum {
	JSON = 256,
	CSV,
	TOP,
	BY,
	DEBUG_PATH,
	DETAILS,
	RUN,
	DIFF,
	FAIL_IF,
	SUPPRESSIONS,
	PHASE,
	FROM,
	TO
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0,
	 "Write a page for a browser, one file that needs no network (-: standard output)", 0},
	{"json", JSON, NULL, 0, "Print one JSON object", 0},
	{"csv", CSV, NULL, 0, "Print all call sites as CSV", 0},
	{"fail-if", FAIL_IF, "FIGURE>N", 0,
	 "End with status 1 if the peak, reserved, leaks, growing, failures or allocations are "
	 "more "
	 "(peak>8G; leaks; with --diff: peak>5%); may be given several times",
	 0},
	{"phase", PHASE, "NAME[#N]", 0,
	 "Only that range of roctx: the one with the highest peak, or the Nth of its name", 0},
	{"from", FROM, "SECONDS", 0, "Only what happened from then on (1.5; 20ms)", 0},
	{"to", TO, "SECONDS", 0, "... and until then", 0},
	{"suppressions", SUPPRESSIONS, "FILE", 0,
	 "What is no leak: lines of the form `leak FUNCTION...', as for `somashim check'", 0},
	{"top", TOP, "N", 0, "Lines of each list (default: 10)", 0},
	{"by", BY, "GROUP", 0, "Put together by function, file, module, stream or thread", 0},
	{"details", DETAILS, "N", 0,
	 "Processes that are shown one by one (default: up to 8, or the 5 worst of more)", 0},
	{"run", RUN, "N", 0, "Which run, if the files are of several (default: the newest)", 0},
	{"diff", DIFF, NULL, 0, "What grew from the first FILE to the second", 0},
	{"debug-path", DEBUG_PATH, "DIR[:DIR...]", 0,
	 "Directories with debug files and copies of the program's libraries", 0},
	{0},
};

static enum ss_by group(struct argp_state *state, const char *arg)
{
	for (int by = 0; by < SS_BYS; by++)
		if (strcmp(arg, ss_by_name(by, false)) == 0)
			return by;
	argp_error(state, "--by takes function, file, module, stream or thread, not `%s'", arg);
	return SS_BY_SITE;
}

/* "NAME#N"; a # before anything else belongs to the name. */
static void set_phase(struct arguments *a, char *arg)
{
	char *number = strrchr(arg, '#');

	a->phase = arg;
	a->phase_number = 0;
	if (number && number != arg && number[1] && !number[1 + strspn(number + 1, "0123456789")]) {
		a->phase_number = strtoull(number + 1, NULL, 10);
		*number = '\0';
	}
}

static void check_conditions(const struct arguments *a, struct argp_state *state)
{
	for (size_t i = 0; i < a->fail_if.count; i++) {
		const struct ss_condition *c = &a->fail_if.at[i];
		if (c->percent > 0 && !a->diff)
			argp_error(state, "--fail-if: `%s': a percentage is for --diff", c->text);
		if (c->figure == SS_CONDITION_GROWING && a->diff)
			argp_error(state, "--fail-if: `%s' is not for --diff", c->text);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	const char *wrong;
	char err[512];

	switch (key) {
	case 'o': a->output = arg; return 0;
	case JSON: a->json = true; return 0;
	case CSV: a->csv = true; return 0;
	case PHASE: set_phase(a, arg); return 0;
	case FROM: a->part.from_ns = ss_arguments_time(state, "--from", arg); return 0;
	case TO:
		a->part.to_ns = ss_arguments_time(state, "--to", arg);
		if (!a->part.to_ns)
			argp_error(state, "--to: nothing happens until then");
		return 0;
	case SUPPRESSIONS: a->suppressions_path = arg; return 0;
	case FAIL_IF:
		wrong = ss_condition_add(&a->fail_if, arg);
		if (wrong)
			argp_error(state, "--fail-if: `%s': %s", arg, wrong);
		return 0;
	case TOP: a->most = (size_t)ss_arguments_number(state, "--top", arg, 1 << 20); return 0;
	case DEBUG_PATH: a->debug_path = arg; return 0;
	case BY: a->by = group(state, arg); return 0;
	case DETAILS:
		a->details = (size_t)ss_arguments_number(state, "--details", arg, 1 << 20);
		return 0;
	case RUN:
		a->run = (size_t)ss_arguments_number(state, "--run", arg, 1 << 20);
		if (!a->run)
			argp_error(state, "--run: the first run is 1");
		return 0;
	case DIFF: a->diff = true; return 0;
	case ARGP_KEY_ARG:
		if (!ss_trace_files_add(&a->files, arg, err, sizeof(err)))
			exit(ss_cli_error("report: %s", err));
		if (a->names < 2)
			a->name[a->names] = arg;
		if (a->names++ == 0)
			a->first = a->files.count;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	case ARGP_KEY_SUCCESS:
		if (a->json + a->csv + (a->output != NULL) > 1)
			argp_error(state, "either --json, --csv or --output");
		if (a->part.to_ns && a->part.to_ns < a->part.from_ns)
			argp_error(state, "--to is before --from");
		if (a->phase && !ss_part_is_all(&a->part))
			argp_error(state, "either --phase or --from and --to");
		if (a->suppressions_path && a->by)
			argp_error(state, "--suppressions is for call sites, not for --by");
		check_conditions(a, state);
		if (a->by && a->output && !a->diff)
			argp_error(state, "--by is for text and --json: a page has all groups");
		if (a->diff && a->names != 2)
			argp_error(state, "--diff compares two: a file or directory each");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "FILE...",
	.doc = "Shows what recordings say about device memory: peaks and who held the memory, what "
	       "was "
	       "never freed, waste, waits, failures.\v"
	       "FILE is a recording of `somashim record', a memory snapshot of PyTorch, or a "
	       "directory of them. Several are "
	       "compared "
	       "as the ranks of a job. Files of `somashim check --json' or SOMASHIM_CHECK_FILE "
	       "become "
	       "one report.",
};

struct progress {
	size_t at, count;
};

static void draw(void *arg, double part)
{
	const struct progress *p = arg;

	ss_progress_draw(((double)p->at + part) / (double)p->count);
}

static int by_rank(const void *a, const void *b)
{
	const struct ss_analysis *x = *(struct ss_analysis *const *)a;
	const struct ss_analysis *y = *(struct ss_analysis *const *)b;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) :
				    strcmp(x->path, y->path);
}

static struct ss_analysis *analyze_one(const struct arguments *a, const char *path, bool charts,
				       struct progress *progress)
{
	bool bar = isatty(STDERR_FILENO);
	bool many = a->files.count > MANY;
	const struct ss_analysis_config config = {
		.files = a->symbols,
		.part = a->part,
		.by = a->by,
		.charts = charts,
		.samples = many ? SAMPLES_OF_MANY : SAMPLES,
		.lives = many ? LIVES_OF_MANY : LIVES,
		.suppressed = a->suppressions ? ss_report_suppressed : NULL,
		.suppressions = a->suppressions,
		.progress = bar ? draw : NULL,
		.arg = progress};
	char err[2048];
	struct ss_analysis *result = ss_report_analysis(path, &config, a->phase, a->phase_number,
							err, sizeof(err));

	if (bar)
		ss_progress_clear();
	if (!result)
		ss_cli_error("report: %s%s", err, ss_no_trace_hint(path));
	return result;
}

/* The analyses of files [from, to), sorted by rank. A file that cannot be read is reported and left
 * out. */
static size_t analyze(const struct arguments *a, size_t from, size_t to, struct ss_analysis **list)
{
	struct progress progress = {.count = a->files.count};
	size_t count = 0;

	for (progress.at = from; progress.at < to; progress.at++) {
		/* In a large job only a few processes get charts, later. */
		list[count] = analyze_one(a, a->files.path[progress.at],
					  a->output && a->files.count <= MANY && !a->diff,
					  &progress);
		count += list[count] != NULL;
	}
	if (count)
		qsort(list, count, sizeof(*list), by_rank);
	return count;
}

static int write_page(const struct arguments *a, const json_t *data)
{
	struct ss_output out;
	char err[1024];

	if (!data)
		return ss_cli_error("report: out of memory");
	if (!ss_output_open(&out, a->output, (const char *const *)a->files.path, a->files.count,
			    err, sizeof(err)))
		return ss_cli_error("report: %s", err);
	snprintf(err, sizeof(err), "out of memory");
	bool ok = ss_report_page(out.file, data) || ferror(out.file); /* close says why */
	return ss_output_close(&out, ok, err, sizeof(err)) ? 0 : ss_cli_error("report: %s", err);
}

/* ---- output --------------------------------------------------------------- */

/* The processes that are shown one by one, in the order of their ranks. NULL: out of memory. */
static struct ss_analysis **choose_details(const struct arguments *a, struct ss_analysis **list,
					   size_t count, size_t *chosen)
{
	/* One process is not compared, so there is nothing but its details. */
	size_t most = count == 1               ? 1 :
		      a->details != SIZE_MAX   ? a->details :
		      count <= MANY || a->json ? count :
						 WORST;
	struct ss_analysis **detail = calloc(count + 1, sizeof(*detail));
	struct ss_rank_row *row = ss_rank_rows(list, count);

	*chosen = most < count ? most : count;
	for (size_t i = 0; detail && row && i < *chosen; i++) {
		size_t at = row[i].process;
		struct progress progress = {.at = i, .count = *chosen};
		if (a->output && a->files.count > MANY) {
			struct ss_analysis *charted = analyze_one(a, list[at]->path, true,
								  &progress);
			if (charted) {
				ss_analysis_free(list[at]);
				list[at] = charted;
			}
		}
		detail[i] = list[at];
	}
	if (detail && row && *chosen)
		qsort(detail, *chosen, sizeof(*detail), by_rank);
	if (!row) {
		free(detail);
		detail = NULL;
	}
	free(row);
	return detail;
}

/* Returns the exit status. Takes over `data`. */
static int print_json(const struct arguments *a, json_t *data)
{
	if (!a->output)
		return ss_json_print(data);
	int status = write_page(a, data);
	json_decref(data);
	return status;
}

/* Returns the exit status. */
static int print(const struct arguments *a, struct ss_analysis **list, size_t count)
{
	struct ss_over_ranks over;
	size_t details;
	struct ss_analysis **detail = choose_details(a, list, count, &details);
	bool many = count > 1;
	int status = 0;

	if (!detail || (many && !ss_over_ranks(&over, list, count))) {
		free(detail);
		return ss_cli_error("report: out of memory");
	}
	if (a->json || a->output) {
		status = print_json(
			a, ss_report_json(detail, details, many ? &over : NULL, a->output));
	} else if (a->csv) {
		ss_report_csv(stdout, list, count);
	} else {
		if (many)
			ss_report_ranks_text(stdout, &over, a->most);
		if (details && details < count) {
			printf("\nThe %zu worst of %zu processes follow; --details N shows more\n",
			       details, count);
		}
		for (size_t i = 0; i < details; i++) {
			if (many)
				printf("\n----\n");
			ss_report_text(stdout, detail[i], a->most);
		}
	}
	if (many)
		ss_over_ranks_finish(&over);
	free(detail);
	return !status && ss_conditions_hold(&a->fail_if, list, count) ? 1 : status;
}

/* Returns the exit status. */
static int print_difference(const struct arguments *a, struct ss_analysis **list, size_t first,
			    size_t count)
{
	struct ss_difference d;
	int status = 0;

	if (first == 0 || first == count)
		return SS_EXIT_USAGE; /* analyze() has reported the bad files */
	for (size_t i = 0; i < count; i++) {
		if (list[i]->sites.rebuilt) {
			ss_cli_error("report: %s: %s was built after the recording, so its call "
				     "sites have no names; "
				     "--debug-path finds a copy",
				     list[i]->path, list[i]->sites.rebuilt);
			break;
		}
	}
	if (!ss_difference(&d, list, first, count))
		return ss_cli_error("report: out of memory");
	if (a->json || a->output)
		status = print_json(a, ss_report_difference_json(&d, a->name[0], a->name[1]));
	else if (a->csv)
		ss_report_difference_csv(stdout, &d);
	else
		ss_report_difference_text(stdout, &d, a->name[0], a->name[1], a->most);
	if (!status && ss_conditions_hold_difference(&a->fail_if, &d))
		status = 1;
	ss_difference_finish(&d);
	return status;
}

/* Files of `somashim check`, one of each rank. Returns the exit status. */
static int report_found(const struct arguments *a)
{
	struct ss_check_report found;
	char **paths = calloc(a->files.count + 1, sizeof(*paths));
	char err[8192];
	int status = 0;

	if (!paths)
		return ss_cli_error("report: out of memory");
	memcpy(paths, a->files.path, a->files.count * sizeof(*paths));
	if (a->output || a->diff || a->by || a->csv || a->fail_if.count || a->suppressions_path) {
		status = ss_cli_error("report: --output, --csv, --diff, --by, --fail-if and "
				      "--suppressions are for "
				      "recordings, and %s is of `somashim check'",
				      a->files.path[0]);
	} else if (!ss_found_read(&found, paths, NULL, err, sizeof(err))) {
		status = ss_cli_error("report: %s", err);
	} else {
		if (!a->json)
			ss_found_text(&found, 0, stdout);
		else if (!ss_found_json(&found, stdout))
			status = ss_cli_error("report: the JSON could not be written");
		ss_found_finish(&found);
	}
	free(paths);
	return status;
}

int ss_cmd_report(int argc, char **argv)
{
	struct arguments a = {.most = 10, .details = SIZE_MAX};
	size_t count, chosen, found = 0;
	char err[1024];
	int status;

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	for (size_t i = 0; i < a.files.count; i++)
		found += ss_is_found(a.files.path[i]);
	if (found) {
		status = found == a.files.count ?
				 report_found(&a) :
				 ss_cli_error("report: some files are recordings and some of "
					      "`somashim check'; these do not go together");
		ss_trace_files_finish(&a.files);
		return status;
	}
	if (a.suppressions_path &&
	    !(a.suppressions = ss_suppressions_read(a.suppressions_path, err, sizeof(err)))) {
		ss_trace_files_finish(&a.files);
		return ss_cli_error("report: %s", err);
	}
	struct ss_analysis **list = calloc(a.files.count, sizeof(*list));
	ss_cli_say_nameless("report");
	a.symbols = ss_symbol_files_open(a.debug_path);
	if (!list || !a.symbols)
		return ss_cli_error("report: out of memory");
	if (a.diff) {
		size_t first = analyze(&a, 0, a.first, list);
		count = first + analyze(&a, a.first, a.files.count, list + first);
		status = print_difference(&a, list, first, count);
	} else {
		count = analyze(&a, 0, a.files.count, list);
		chosen = count ? ss_report_run(list, count, a.run) : 0;
		status = chosen ? print(&a, list, chosen) : SS_EXIT_USAGE;
	}
	status = !status && count < a.files.count ? SS_EXIT_USAGE : status;
	for (size_t i = 0; i < count; i++)
		ss_analysis_free(list[i]);
	free(list);
	if (a.suppressions)
		ss_suppressions_say_unused(a.suppressions, a.suppressions_path);
	ss_suppressions_free(a.suppressions);
	ss_symbol_files_close(a.symbols);
	ss_trace_files_finish(&a.files);
	return status;
}

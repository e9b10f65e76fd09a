/* SPDX-License-Identifier: MIT */
/* `somashim top`: shows the memory of each device that the processes of this user hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/live_directory.h"
#include "cli/top.h"

#define MOST 1024 /* processes that can be named */

struct arguments {
	bool once, json;
	const char *log; /* NULL: none */
	unsigned delay_ms, wait_ms;
	uint32_t pid[MOST];
	size_t count;
};

static const struct argp_option options[] = {
	{"once", '1', NULL, 0, "Print one sample and end", 0},
	{"json", 'j', NULL, 0, "With --once: print one JSON object", 0},
	{"delay", 'd', "MS", 0, "Milliseconds between two samples (default: 1000)", 0},
	{"wait", 'w', "MS", 0,
	 "With --once and --log: how long processes have to bring their figures up to date, which "
	 "they do at "
	 "their next HIP call (default: 200)",
	 0},
	{"log", 'l', "FILE", 0,
	 "Append a row for each pool to FILE, a CSV, every --delay (-: standard output); with "
	 "PIDs until these have ended",
	 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case '1': a->once = true; return 0;
	case 'j': a->json = true; return 0;
	case 'd':
		a->delay_ms = (unsigned)ss_arguments_number(state, "--delay", arg, 3600000);
		if (a->delay_ms < 50)
			argp_error(state, "--delay: at least 50");
		return 0;
	case 'w':
		a->wait_ms = (unsigned)ss_arguments_number(state, "--wait", arg, 3600000);
		return 0;
	case 'l': a->log = arg; return 0;
	case ARGP_KEY_ARG:
		if (a->count == MOST)
			argp_error(state, "too many processes");
		a->pid[a->count++] = ss_arguments_pid(state, arg);
		return 0;
	case ARGP_KEY_END:
		if (a->json && !a->once)
			argp_error(state, "--json is for --once");
		if (a->json && a->log)
			argp_error(state, "a log is a CSV: not with --json");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "[PID...]",
	.doc = "Shows how much memory of each device the processes under somashim hold: all of "
	       "this user, or those that are named; root sees all users."
	       "\vThe pages of the processes are in the directory of SOMASHIM_LIVE (/dev/shm).",
};

int ss_cmd_top(int argc, char **argv)
{
	struct arguments a = {.delay_ms = 1000, .wait_ms = 200};
	struct ss_top_sample sample;
	const char *directory = ss_live_directory();

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	const struct ss_top_filter filter = {a.pid, a.count};
	if (a.log) {
		return ss_top_log(directory, &filter, a.delay_ms,
				  a.wait_ms < a.delay_ms ? a.wait_ms : a.delay_ms, a.once, a.log);
	}
	if (!a.once && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return ss_top_screen(directory, &filter, a.delay_ms);
	if (!ss_top_take(directory, &filter, a.wait_ms, NULL, &sample))
		return ss_cli_error("top: %s: %s", directory, strerror(errno));
	int status = a.json ? ss_top_print_json(&sample, directory) :
			      ss_top_print_text(&sample, &filter);
	ss_top_drop(&sample);
	return status;
}

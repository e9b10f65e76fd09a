/* SPDX-License-Identifier: MIT */
/* Reads the arguments of the subcommands, and reports errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "core/base/utf8.h"
#include "config/options.h"
#include "config/values.h"
#include "trace/symbolize.h"

/* Visible, since argp finds it by its name. */
__attribute__((visibility("default")))
const char *argp_program_version = "somashim " SOMASHIM_VERSION
#ifdef SOMASHIM_LACKING
				   "\nbuilt without " SOMASHIM_LACKING
#endif
	;

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	if (key != 'h')
		return ARGP_ERR_UNKNOWN;
	argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	return 0;
}

static const struct argp_option common_options[] = {
	{NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0},
	{0},
};

static const struct argp common = {.options = common_options, .parser = parse_common};

const struct argp_child ss_arguments_common[] = {
	{.argp = &common},
	{0},
};

void ss_arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
	argp_err_exit_status = SS_EXIT_USAGE;
	if (argp_parse(argp, argc, argv, flags, NULL, input) != 0)
		exit(ss_cli_error("out of memory"));
}

uint64_t ss_arguments_number(const struct argp_state *state, const char *name, const char *text,
			     uint64_t max)
{
	struct ss_amount a = {0};

	if (!ss_amount_parse(text, &a) || a.percent > 0 || a.bytes > max) {
		argp_error(state, "%s: '%s' is not a number up to %llu", name, text,
			   (unsigned long long)max);
	}
	return a.bytes;
}

uint64_t ss_arguments_time(const struct argp_state *state, const char *name, const char *text)
{
	uint64_t whole = 0, billionths = 0;
	const char *end = ss_parse_decimal(text, &whole, &billionths);

	if (!end || whole > 1000000000 ||
	    (strcmp(end, "") && strcmp(end, "s") && strcmp(end, "ms")))
		argp_error(state, "%s: '%s' is no time in seconds (1.5, 20ms)", name, text);
	uint64_t ns = whole * 1000000000u + billionths;
	return end && strcmp(end, "ms") == 0 ? ns / 1000 : ns;
}

uint32_t ss_arguments_pid(const struct argp_state *state, const char *text)
{
	unsigned long long pid = strtoull(text, NULL, 10);

	if (text[strspn(text, "0123456789")] || pid == 0 || pid > INT32_MAX)
		argp_error(state, "'%s' is no process id", text);
	return (uint32_t)pid;
}

char **ss_arguments_program(struct argp_state *state)
{
	char **program = state->argv + state->next - 1;

	state->next = state->argc;
	return program;
}

int ss_cli_error(const char *fmt, ...)
{
	va_list args;
	char *line;

	/* Some messages contain names of files, or contents of files. */
	va_start(args, fmt);
	bool good = vasprintf(&line, fmt, args) >= 0;
	va_end(args);
	if (good)
		ss_utf8_clean(line);
	fprintf(stderr, "somashim: %s\n", good ? line : "out of memory");
	if (good)
		free(line);
	return SS_EXIT_USAGE;
}

void ss_cli_say_nameless(const char *command)
{
	if (!ss_symbols_can())
		fprintf(stderr,
			"somashim: %s: functions have no names, since this build lacks elfutils: "
			"each "
			"frame is a place in a file, for addr2line\n",
			command);
}

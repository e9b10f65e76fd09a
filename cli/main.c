/* SPDX-License-Identifier: MIT */
/* `somashim`: picks the subcommand; each has a file of its own. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "config/options.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", ss_cmd_run, "start a program under somashim"},
	{"record", ss_cmd_record, "run a program and record what happens to device memory"},
	{"check", ss_cmd_check, "run a program and find errors in its use of device memory"},
	{"top", ss_cmd_top, "show what running programs hold of each device"},
	{"dump", ss_cmd_dump, "print statistics and live blocks of a running program"},
	{"sleep", ss_cmd_sleep, "have running programs lend their device memory to others"},
	{"wake", ss_cmd_wake, "have them take it back"},
	{"replay", ss_cmd_replay, "run an allocation log on the pools, without a device"},
	{"report", ss_cmd_report, "show what recordings say about device memory"},
	{"convert", ss_cmd_convert, "write a recording in the format of another program"},
	{"generate", ss_cmd_generate, "write a realistic allocation log"},
	{"doctor", ss_cmd_doctor, "try what works here: runtime, devices, backings, known defects"},
	{"options", ss_cmd_options, "list every environment variable"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

struct arguments {
	const struct command *command;
	bool help; /* somashim help COMMAND */
	int argc;  /* what the subcommand gets; argv[0] is its name */
	char **argv;
};

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static const char *nearest(const char *name)
{
	const char *best = commands[0].name;

	for (size_t i = 1; i < COMMANDS; i++)
		if (ss_name_distance(name, commands[i].name) < ss_name_distance(name, best))
			best = commands[i].name;
	return best;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!a->help && strcmp(arg, "help") == 0) {
			a->help = true;
			return 0;
		}
		a->command = command_find(arg);
		if (!a->command)
			argp_error(state, "there is no command '%s'; the nearest is '%s'", arg,
				   nearest(arg));
		a->argc = state->argc - state->next + 1;
		a->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (a->help && !a->command)
			argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		else if (!a->command)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* argp ends the process by itself, so this runs at exit. Output that was asked for and
 * could not be written is a failure. */
static void check_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		_exit(ss_cli_error("cannot write: %s", strerror(errno)));
}

int main(int argc, char **argv)
{
	struct argp_option list[COMMANDS + 2] = {{.doc = "Commands:"}};
	struct arguments a = {0};
	const struct argp argp = {
		.options = list,
		.parser = parse,
		.children = ss_arguments_common,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Serves the GPU memory of HIP programs from stream-ordered pools."
		       "\v`somashim COMMAND --help' says more about one command.",
	};
	char name[64], *help[] = {name, (char[]){"--help"}, NULL};

	for (size_t i = 0; i < COMMANDS; i++) {
		list[i + 1] = (struct argp_option){
			.name = commands[i].name, .flags = OPTION_DOC, .doc = commands[i].help};
	}
	ss_child_init();
	atexit(check_output);
	ss_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &a);
	snprintf(name, sizeof(name), "somashim %s", a.command->name);
	if (a.help)
		return a.command->run(2, help);
	a.argv[0] = name;
	return a.command->run(a.argc, a.argv);
}

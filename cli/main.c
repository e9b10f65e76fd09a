/* SPDX-License-Identifier: MIT */
/* `somashim`: picks the subcommand; each has a file of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/options.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *args, *help;
} commands[] = {
	{ "run", ss_cmd_run, "[--quiet] [--] PROGRAM [ARGS]",
	  "start a program with the preload in place" },
	{ "replay", ss_cmd_replay, "[OPTIONS] LOG",
	  "run an allocation log on the pools, without a device" },
	{ "generate", ss_cmd_generate, "[OPTIONS] KIND",
	  "write a realistic allocation log" },
	{ "doctor", ss_cmd_doctor, "[--json]",
	  "try what works here: runtime, devices, backings, known defects" },
	{ "options", ss_cmd_options, "[--markdown]",
	  "list every environment variable" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

int ss_cli_error(const char *fmt, ...) {
	va_list args;

	va_start(args, fmt);
	fputs("somashim: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	return 2;
}

const char *ss_cli_value(int argc, char **argv, int *i, const char *name) {
	size_t len = strlen(name);

	if (strncmp(argv[*i], name, len) != 0) {
		return NULL;
	}
	if (argv[*i][len] == '=') {
		return argv[*i] + len + 1;
	}
	if (argv[*i][len] != '\0') {
		return NULL;
	}
	if (*i + 1 >= argc) {
		exit(ss_cli_error("%s needs a value", name));
	}
	return argv[++*i];
}

uint64_t ss_cli_number(const char *name, const char *text, uint64_t max) {
	struct ss_amount a;

	if (!ss_amount_parse(text, &a) || a.percent > 0 || a.bytes > max) {
		exit(ss_cli_error("%s: '%s' is not a number up to %llu", name, text,
			(unsigned long long)max));
	}
	return a.bytes;
}

bool ss_cli_help(const char *arg) {
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int usage(FILE *out) {
	fputs("usage:\n", out);
	for (size_t i = 0; i < COMMANDS; i++) {
		fprintf(out, "  somashim %s %s\n        %s\n", commands[i].name,
			commands[i].args, commands[i].help);
	}
	fputs("  somashim COMMAND --help\n  somashim --version\n", out);
	return out == stderr ? 2 : 0;
}

static int command(int argc, char **argv) {
	if (argc < 2) {
		return usage(stderr);
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("somashim " SOMASHIM_VERSION);
		return 0;
	}
	bool help = strcmp(argv[1], "help") == 0;
	if (ss_cli_help(argv[1]) || (help && argc == 2)) {
		return usage(stdout);
	}
	const char *name = help ? argv[2] : argv[1];
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0) {
			char option[] = "--help", *asked[] = { argv[1], option, NULL };
			return help ? commands[i].run(2, asked) :
				commands[i].run(argc - 1, argv + 1);
		}
	}
	ss_cli_error("there is no command '%s'", name);
	return usage(stderr);
}

/* What was asked for and could not be written is no success. */
int main(int argc, char **argv) {
	int status = command(argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		return ss_cli_error("cannot write: %s", strerror(errno));
	}
	return status;
}

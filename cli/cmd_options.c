/* SPDX-License-Identifier: MIT */
/* `somashim options`: the table of core/options.c, as text or for the README. */
#include <string.h>

#include "cli/cli.h"
#include "core/options.h"

int ss_cmd_options(int argc, char **argv) {
	bool markdown = argc == 2 && strcmp(argv[1], "--markdown") == 0;

	if (argc > 1 && !markdown) {
		return ss_cli_error("usage: somashim options [--markdown]");
	}
	ss_options_print(stdout, markdown);
	return 0;
}

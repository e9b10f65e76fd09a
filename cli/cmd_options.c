/* SPDX-License-Identifier: MIT */
/* `somashim options`: the table of core/options.c, as text or for the README. */
#include <string.h>

#include "cli/cli.h"
#include "core/base/options.h"

int ss_cmd_options(int argc, char **argv) {
	bool markdown = argc == 2 && strcmp(argv[1], "--markdown") == 0;

	if (argc > 1 && !markdown) {
		bool help = ss_cli_help(argv[1]);
		fputs("usage: somashim options [--markdown]\n"
			"  lists every environment variable\n"
			"  --markdown  as the table of the README\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	ss_options_print(stdout, markdown);
	return 0;
}

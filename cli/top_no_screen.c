/* SPDX-License-Identifier: MIT */
/* Replaces top_screen.c in a build without ncurses. */
#include "cli/arguments.h"
#include "cli/top.h"

int ss_top_screen(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms)
{
	(void)directory;
	(void)filter;
	(void)delay_ms;
	return ss_cli_error("top: this build has no screen, since ncurses was missing when it was "
			    "made; --once prints the same figures");
}

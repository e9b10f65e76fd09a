/* SPDX-License-Identifier: MIT */
/* A progress bar on stderr. */
#include <stdio.h>

#include "cli/progress.h"

#define WIDTH 40

void ss_progress_draw(double part)
{
	int done = (int)(part * WIDTH);

	done = done < 0 ? 0 : done > WIDTH ? WIDTH : done;
	fprintf(stderr, "\r[%.*s%*s] %3d%%", done, "########################################",
		WIDTH - done, "", (int)(100 * part));
}

void ss_progress_clear(void)
{
	fprintf(stderr, "\r%*s\r", WIDTH + 8, "");
}

/* SPDX-License-Identifier: MIT */
/* The directory in which the commands look for live pages. */
#include <stdlib.h>

#include "cli/live_directory.h"
#include "live/directory.h"

const char *ss_live_directory(void)
{
	const char *directory = getenv("SOMASHIM_LIVE");

	return directory && ss_live_enabled(directory) ? directory : SS_LIVE_DIRECTORY;
}

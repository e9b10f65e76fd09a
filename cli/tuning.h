/* SPDX-License-Identifier: MIT */
/* Replays a log with one option changed at a time, and compares. */
#ifndef SS_CLI_TUNING_H
#define SS_CLI_TUNING_H

#include "cli/replay.h"

/* all: print a row for each option. advise: print the best as a line to export. `path`
 * names the log in messages. Returns the exit status. */
int ss_tuning(const char *path, const struct ss_events *ev, const struct ss_replay_config *config,
	      bool all, bool advise);

#endif

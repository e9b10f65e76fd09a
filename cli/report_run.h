/* SPDX-License-Identifier: MIT */
/* Which run of a job a report is of. */
#ifndef SS_CLI_REPORT_RUN_H
#define SS_CLI_REPORT_RUN_H

#include "cli/analysis/analysis.h"

/* Puts the processes of the run that is wanted (from 1; 0 is the newest) in front, and says on
 * stderr which runs there are if they are several. Returns how many they are; 0 with a message:
 * there is no such run. */
size_t ss_report_run(struct ss_analysis **list, size_t count, size_t wanted);

#endif

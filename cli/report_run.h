/* SPDX-License-Identifier: MIT */
/* Chooses the run of a job that a report shows. */
#ifndef SS_CLI_REPORT_RUN_H
#define SS_CLI_REPORT_RUN_H

#include "cli/analysis/analysis.h"

/* Puts the processes of the run that is wanted (from 1; 0 is the newest) in front, and says on
 * stderr which runs there are if they are several. Returns the number of these processes; 0 with a
 * message: there is no such run. */
size_t ss_report_run(struct ss_analysis **list, size_t count, size_t wanted);

#endif

/* SPDX-License-Identifier: MIT */
/* Runs the self-test of virtual memory when a running program asks for it. */
#ifndef SS_CLI_RUN_SELFTEST_H
#define SS_CLI_RUN_SELFTEST_H

#include "shim/process/report.h"

/* Listens on the page, in a thread, from before the program starts. If it cannot, nobody is told:
 * the program then runs without a test. */
void ss_run_selftest_start(struct ss_report *report);
/* Starts no test any more, and ends one that runs. */
void ss_run_selftest_stop(void);

#endif

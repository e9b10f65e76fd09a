/* SPDX-License-Identifier: MIT */
/* Makes the self-test of virtual memory when a program that runs asks for it. */
#ifndef SS_CLI_RUN_SELFTEST_H
#define SS_CLI_RUN_SELFTEST_H

#include "shim/process/report.h"

/* Listens on the page, in a thread, from before the program starts. If it cannot, nobody is told:
 * the program then runs without a test. */
void ss_run_selftest_start(struct ss_report *report);
/* No test is made any more, and one that runs is ended. */
void ss_run_selftest_stop(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The shared page in which the preload counts what it does in a program that we start. */
#ifndef SS_CLI_RUN_REPORT_H
#define SS_CLI_RUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/process/report.h"

/* Creates the page as a temporary file and names it in SOMASHIM_REPORT, for programs that
 * are started from here on. NULL with a message in `err` on failure. */
struct ss_report *ss_run_report_open(char *err, size_t err_size);
/* Removes the file, and adds what was counted to the page of a `somashim` that has started this
 * one, if there is one. The page stays mapped. False with a message in `err`: somebody has cut or
 * overwritten the file, and the page says nothing. */
bool ss_run_report_close(const struct ss_report *r, char *err, size_t err_size);

#endif

/* SPDX-License-Identifier: MIT */
/* Has `somashim run` make the self-test in a process beside this one, where no verdict is known. */
#ifndef SS_SHIM_TESTER_H
#define SS_SHIM_TESTER_H

#include "config/options.h"

/* Returns when the verdicts are known, or nobody makes the test; at once, if there is nothing to
 * find out. Any thread, several at once; call it before a core exists. */
void ss_tester_ask(const struct ss_options *options, int devices);
/* Logs what a test brought for which this process has waited, once. */
void ss_tester_tell(int devices);

#endif

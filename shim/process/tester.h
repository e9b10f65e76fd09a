/* SPDX-License-Identifier: MIT */
/* Has `somashim run` make the self-test in another process, if no verdict is known. */
#ifndef SS_SHIM_TESTER_H
#define SS_SHIM_TESTER_H

#include "config/options.h"

/* Returns when the verdicts are known, or when no process makes the test. Returns at once if
 * nothing is to be tested. Any thread, several at once; call it before a core exists. */
void ss_tester_ask(const struct ss_options *options, int devices);
/* Logs the result of a test for which this process has waited, once. */
void ss_tester_tell(int devices);

#endif

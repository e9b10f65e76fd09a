/* SPDX-License-Identifier: MIT */
/* Failures, costs and stops that the options or a test ask of exported calls. */
#ifndef SIM_FAILURES_H
#define SIM_FAILURES_H

/* Applies SOMASIM_FAIL, SOMASIM_COST and SOMASIM_NO_DEVICE to the registered calls of one
 * library: count calls from first on, whose names start with prefix. */
void sim_failures_apply(int first, int count, const char *prefix);

#endif

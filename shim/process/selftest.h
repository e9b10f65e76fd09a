/* SPDX-License-Identifier: MIT */
/* The self-test (SOMASHIM_SELFTEST): which backings work with this runtime and device? */
#ifndef SS_SHIM_SELFTEST_H
#define SS_SHIM_SELFTEST_H

#include "config/options.h"

/* Tries every backing on every device and logs what works. Makes HIP calls. */
void ss_selftest(const struct ss_options *options, int devices);

#endif

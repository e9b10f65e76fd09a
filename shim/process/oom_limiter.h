/* SPDX-License-Identifier: MIT */
/* Decides how much is written about an allocation that failed: all, a count, or nothing. */
#ifndef SS_SHIM_OOM_LIMITER_H
#define SS_SHIM_OOM_LIMITER_H

#include <stdint.h>

#include "config/options.h"
#include "core/statistics.h"

enum ss_oom_print {
	SS_OOM_PRINT_FULL, /* the whole report */
	/* The whole report, with a note that further failures are only counted */
	SS_OOM_PRINT_LAST,
	SS_OOM_PRINT_COUNT, /* one line with the number of failures so far */
	SS_OOM_PRINT_NOTHING,
};

/* Counts one more failure in *failures and returns the amount of text to print about it; *count
 * gets the number of failures including this one. Any thread may call it at any time. */
enum ss_oom_print ss_oom_print(enum ss_oom_reports which, _Atomic uint64_t *failures,
			       uint64_t *count);

#endif

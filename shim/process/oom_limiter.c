/* SPDX-License-Identifier: MIT */
/*
 * Limits the reports of out of memory. Programs probe for the largest size that fits, and retry
 * failed allocations, which makes thousands of reports. The first few contain everything.
 *
 * Locks: none.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "shim/process/oom_limiter.h"
#include "core/statistics.h"

#define FULL_REPORTS 3

static bool is_power_of_ten(uint64_t n)
{
	while (n >= 10 && n % 10 == 0)
		n /= 10;
	return n == 1;
}

enum ss_oom_print ss_oom_print(enum ss_oom_reports which, _Atomic uint64_t *failures,
			       uint64_t *count)
{
	*count = atomic_fetch_add(failures, 1) + 1;
	if (which == SS_OOM_REPORTS_ALL)
		return SS_OOM_PRINT_FULL;
	if (which == SS_OOM_REPORTS_NONE)
		return SS_OOM_PRINT_NOTHING;
	if (*count < FULL_REPORTS)
		return SS_OOM_PRINT_FULL;
	if (*count == FULL_REPORTS)
		return SS_OOM_PRINT_LAST;
	return is_power_of_ten(*count) ? SS_OOM_PRINT_COUNT : SS_OOM_PRINT_NOTHING;
}

/* SPDX-License-Identifier: MIT */
/* Tests that of many failed allocations a few are reported in full and the others are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shim/process/oom_limiter.h"
#include "core/statistics.h"

#define FAILURES 100000

/* Counts each kind of report in FAILURES failures. */
static void tally(enum ss_oom_reports which, unsigned *of)
{
	_Atomic uint64_t failures = 0;
	uint64_t count;

	for (uint64_t i = 1; i <= FAILURES; i++) {
		of[ss_oom_print(which, &failures, &count)]++;
		assert_int_equal(count, i);
	}
}

static void few_are_full_then_one_line_per_power_of_ten(void **state)
{
	_Atomic uint64_t failures = 0;
	uint64_t count;
	unsigned of[4] = {0};

	(void)state;
	tally(SS_OOM_REPORTS_FEW, of);
	assert_int_equal(of[SS_OOM_PRINT_FULL], 2);
	assert_int_equal(of[SS_OOM_PRINT_LAST], 1);
	assert_int_equal(of[SS_OOM_PRINT_COUNT], 5); /* 10 to 100000 */

	for (int i = 1; i < 3; i++)
		assert_int_equal(ss_oom_print(SS_OOM_REPORTS_FEW, &failures, &count),
				 SS_OOM_PRINT_FULL);
	assert_int_equal(ss_oom_print(SS_OOM_REPORTS_FEW, &failures, &count), SS_OOM_PRINT_LAST);
	for (int i = 4; i < 10; i++)
		assert_int_equal(ss_oom_print(SS_OOM_REPORTS_FEW, &failures, &count),
				 SS_OOM_PRINT_NOTHING);
	assert_int_equal(ss_oom_print(SS_OOM_REPORTS_FEW, &failures, &count), SS_OOM_PRINT_COUNT);
	failures = 19;
	assert_int_equal(ss_oom_print(SS_OOM_REPORTS_FEW, &failures, &count), SS_OOM_PRINT_NOTHING);
}

static void all_or_none(void **state)
{
	unsigned all[4] = {0}, none[4] = {0};

	(void)state;
	tally(SS_OOM_REPORTS_ALL, all);
	assert_int_equal(all[SS_OOM_PRINT_FULL], FAILURES);
	tally(SS_OOM_REPORTS_NONE, none);
	assert_int_equal(none[SS_OOM_PRINT_NOTHING], FAILURES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_full_then_one_line_per_power_of_ten),
		cmocka_unit_test(all_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

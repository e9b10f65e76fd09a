/* SPDX-License-Identifier: MIT */
/* `somashim run` prefers the API table to LD_AUDIT where the loader's auditing is incomplete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_loader.h"

static void old_glibc_prefers_the_table(void **state)
{
	(void)state;
	unsetenv("SOMASHIM_API_TABLE");
	assert_false(ss_loader_audits("2.28", true));
	assert_string_equal(getenv("SOMASHIM_API_TABLE"), "1");
	assert_false(ss_loader_audits("2.34", true));
}

static void whoever_switches_the_table_off_gets_the_auditor(void **state)
{
	(void)state;
	setenv("SOMASHIM_API_TABLE", "0", 1);
	assert_true(ss_loader_audits("2.28", true));
	assert_string_equal(getenv("SOMASHIM_API_TABLE"), "0");
}

static void new_glibc_audits(void **state)
{
	(void)state;
	unsetenv("SOMASHIM_API_TABLE");
	assert_true(ss_loader_audits("2.35", true));
	assert_true(ss_loader_audits("2.41", true));
	assert_true(ss_loader_audits("3.0", true));
	assert_null(getenv("SOMASHIM_API_TABLE"));
}

static void a_library_that_is_not_there_is_refused(void **state)
{
	char reason[512];

	(void)state;
	assert_true(ss_loader_refusal("/nowhere/libsomashim.so", reason, sizeof(reason)));
	assert_non_null(strstr(reason, "cannot be preloaded"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_glibc_prefers_the_table),
		cmocka_unit_test(whoever_switches_the_table_off_gets_the_auditor),
		cmocka_unit_test(new_glibc_audits),
		cmocka_unit_test(a_library_that_is_not_there_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

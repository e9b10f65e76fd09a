/* SPDX-License-Identifier: MIT */
/* Tests which loaded libraries keep a process from sleeping, and that those without a card do
 * not. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shim/sleep/stays.h"
#include "tree.h"

static void load(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", getenv("LIBRARIES"), name);
	assert_non_null(dlopen(path, RTLD_NOW));
}

static void test_registered(void **state)
{
	const char *why;

	tree_begin();
	assert_null(ss_sleep_registered(tree));
	load("libuctx.so");
	load("libibverbs.so");
	assert_null(ss_sleep_registered(tree));
	tree_file("sys/class/infiniband/.hidden", "");
	assert_null(ss_sleep_registered(tree));
	tree_file("sys/class/cxi/cxi0", "");
	assert_null(ss_sleep_registered(tree));
	tree_file("sys/class/infiniband/mlx5_0", "");
	why = ss_sleep_registered(tree);
	assert_non_null(why);
	assert_non_null(strstr(why, "libibverbs"));
	load("libuct-5e8f.so");
	assert_non_null(strstr(ss_sleep_registered("/nonexistent"), "UCX"));
	tree_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_registered)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The tables of releases and of known defects, and where doctor looks for a runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/doctor_runtime.h"
#include "driver/rocm/quirks.h"
#include "driver/rocm/releases.h"

static void a_release_has_the_name_that_people_know(void **state)
{
	static const struct {
		int major, minor;
		const char *name;
	} rows[] = {
		{5, 2, "ROCm 5.2"},
		{6, 4, "ROCm 6.4"},
		{7, 2, "ROCm 7.2"},
		{7, 13, "ROCm 7.13"},
		{7, 14, "ROCm 7.14"},
		{7, 15, "ROCm 10.0"},
		{7, 16, "ROCm 10.1"},
		{7, 17, "ROCm 10.2"},
		{7, 18, "newer than ROCm 10.2"},
		{8, 0, "newer than ROCm 10.2"},
		{10, 0, "newer than ROCm 10.2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(ss_release_name(rows[i].major, rows[i].minor).s, rows[i].name);
		assert_int_equal(ss_release_unknown(rows[i].major, rows[i].minor),
				 strncmp(rows[i].name, "newer", 5) == 0);
	}
	assert_string_equal(ss_release_newest().s, "ROCm 10.2 (HIP 7.17)");
}

/* Does the file say so? */
static bool says(const char *name, const char *words)
{
	static char text[1 << 16];
	char path[512];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("SOURCE_ROOT"), name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return strstr(text, words) != NULL;
}

/* What users read names the newest release of the table. */
static void the_texts_name_the_newest_release(void **state)
{
	int rocm_major, rocm_minor, major, minor;
	char words[64];

	(void)state;
	assert_int_equal(sscanf(ss_release_newest().s, "ROCm %d.%d (HIP %d.%d)", &rocm_major,
				&rocm_minor, &major, &minor),
			 4);
	snprintf(words, sizeof(words), "every ROCm from 5.2 to %d.%d", rocm_major, rocm_minor);
	assert_true(says("README.md", words));
	assert_true(says("debian/control", words));
	snprintf(words, sizeof(words), "(HIP 5.2 to %d.%d)", major, minor);
	assert_true(says("debian/control", words));
	snprintf(words, sizeof(words), "and %d.%d are ROCm 10.0, 10.1 and %d.%d", major, minor,
		 rocm_major, rocm_minor);
	assert_true(says("docs/somashim.1", words));
}

static bool applies(const char *id, int release, const char *arch)
{
	size_t count;
	const struct ss_quirk *q = ss_quirks(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(q[i].id, id))
			return ss_quirk_applies(&q[i], release / 100, release % 100, arch);
	fail_msg("no row %s", id);
	return false;
}

/* The first and the last release that a defect is in, and its neighbours. */
static void a_defect_ends_where_it_ends(void **state)
{
	static const struct {
		const char *id;
		int from, to;
	} rows[] = {
		{"C6", 506, 507},  {"V4", 600, 604},  {"V1", 700, 713},  {"V3", 700, 713},
		{"V7", 700, 713},  {"V13", 714, 714}, {"V18", 714, 714}, {"V19", 700, 702},
		{"V20", 600, 714}, {"O4", 600, 701},  {"O5", 600, 604},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(applies(rows[i].id, rows[i].from, "gfx942"));
		assert_true(applies(rows[i].id, rows[i].to, "gfx942"));
		assert_false(applies(rows[i].id, rows[i].from - 1, "gfx942"));
		assert_false(applies(rows[i].id, rows[i].to + 1, "gfx942"));
	}
	assert_true(applies("V21", 714, "gfx942") && applies("V21", 717, "gfx942"));
	assert_false(applies("V21", 713, "gfx942"));
}

/* gfx1250 is another kind of device than gfx1200 and gfx1201. */
static void a_defect_is_of_the_devices_that_have_it(void **state)
{
	(void)state;
	assert_true(applies("C2", 702, "gfx1200"));
	assert_true(applies("C2", 717, "gfx1201"));
	assert_false(applies("C2", 717, "gfx1250"));
	assert_false(applies("C2", 717, "gfx942"));
	assert_false(applies("C2", 717, NULL));
	assert_true(applies("V15", 717, "gfx1201"));
	assert_false(applies("V15", 717, "gfx1200"));
}

/* ---- where a runtime is found ---------------------------------------------------- */

static char top[] = "/tmp/somashim-releases.XXXXXX";
static struct ss_runtime_file found[SS_RUNTIMES_MAX];

static void make(const char *path)
{
	char full[512], command[600];

	snprintf(full, sizeof(full), "%s%s", top, path);
	snprintf(command, sizeof(command), "mkdir -p '%.*s' && echo >'%s'",
		 (int)(strrchr(full, '/') - full), full, full);
	assert_int_equal(system(command), 0);
}

/* The index of a file below `top` among what was found, or -1. */
static int place_of(const char *path, size_t count)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", top, path);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(found[i].path, full))
			return (int)i;
	return -1;
}

static int layout(void **state)
{
	char command[600];

	(void)state;
	unsetenv("ROCM_PATH");
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("VIRTUAL_ENV");
	unsetenv("CONDA_PREFIX");
	unsetenv("HOME");
	strcpy(strrchr(top, '.'), ".XXXXXX");
	if (!mkdtemp(top))
		return 1;
	make("/opt/rocm/core-10.0/lib/libamdhip64.so.7");
	make("/opt/rocm/core-7.14/lib/libamdhip64.so.7");
	make("/opt/rocm-6.4.1/lib/libamdhip64.so.6");
	make("/opt/rocm-6.4.1/lib/libamdhip64.so.6.4.60401");
	make("/env/lib/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.8");
	make("/usr/lib/x86_64-linux-gnu/libamdhip64.so.7");
	make("/many/libamdhip64.so.7");
	make("/many/libamdhip64.so.8");
	make("/many/libamdhip64.so.10");
	/* The usual links: a file is in the list once. */
	snprintf(command, sizeof(command),
		 "cd %s/opt/rocm && ln -s core-10.0 core-10 && ln -s core-10.0/lib lib", top);
	return system(command);
}

static int remove_layout(void **state)
{
	char command[600];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static void packages_are_found_newest_first(void **state)
{
	size_t n = ss_runtimes_find(top, NULL, found);
	int core10 = place_of("/opt/rocm/core-10/lib/libamdhip64.so.7", n);
	int core714 = place_of("/opt/rocm/core-7.14/lib/libamdhip64.so.7", n);
	int old = place_of("/opt/rocm-6.4.1/lib/libamdhip64.so.6", n);

	(void)state;
	assert_true(core10 > 0 && core714 > core10 && old > core714);
	assert_int_equal(place_of("/opt/rocm/core-10.0/lib/libamdhip64.so.7", n), -1);
	assert_int_equal(place_of("/opt/rocm/lib/libamdhip64.so.7", n), -1);
	/* The loader is asked by name before that, since it is what programs get. */
	assert_string_equal(found[0].path, "libamdhip64.so.9");
	assert_string_equal(found[core10].from, "/opt/rocm/core-*/lib");
}

static void what_the_user_has_set_comes_first(void **state)
{
	char value[600];
	size_t n;

	(void)state;
	snprintf(value, sizeof(value), "%s/opt/rocm-6.4.1", top);
	setenv("ROCM_PATH", value, 1);
	snprintf(value, sizeof(value), "/nowhere:%s/many", top);
	setenv("LD_LIBRARY_PATH", value, 1);
	snprintf(value, sizeof(value), "%s/env", top);
	setenv("VIRTUAL_ENV", value, 1);
	n = ss_runtimes_find(top, NULL, found);
	assert_int_equal(place_of("/many/libamdhip64.so.10", n), 0);
	assert_int_equal(place_of("/many/libamdhip64.so.8", n), 1);
	assert_int_equal(place_of("/many/libamdhip64.so.7", n), 2);
	assert_string_equal(found[0].from, "LD_LIBRARY_PATH");
	assert_int_equal(place_of("/opt/rocm-6.4.1/lib/libamdhip64.so.6", n), 3);
	assert_string_equal(found[3].from, "ROCM_PATH");
	assert_true(
		place_of("/env/lib/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.8",
			 n) > 3);
	unsetenv("ROCM_PATH");
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("VIRTUAL_ENV");
}

static void what_is_asked_for_is_all_that_is_looked_at(void **state)
{
	static const struct {
		const char *asked, *is;
	} rows[] = {
		{"/many/libamdhip64.so.7", "/many/libamdhip64.so.7"},
		{"/many", "/many/libamdhip64.so.10"},
		{"/opt/rocm-6.4.1", "/opt/rocm-6.4.1/lib/libamdhip64.so.6"},
		{"/opt/rocm/core-7.14", "/opt/rocm/core-7.14/lib/libamdhip64.so.7"},
		{"/env", "/env/lib/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.8"},
		{"/env/lib/python3.12/site-packages",
		 "/env/lib/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.8"},
		{"/usr", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.7"},
		{"/env/lib/python3.12", NULL},
		{"/nowhere", NULL},
	};
	char asked[600];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(asked, sizeof(asked), "%s%s", top, rows[i].asked);
		n = ss_runtimes_find("", asked, found);
		if (rows[i].is)
			assert_int_equal(place_of(rows[i].is, n), 0);
		else
			assert_int_equal(n, 0);
	}
	/* In the working directory, without a slash. */
	assert_int_equal(chdir(top), 0);
	n = ss_runtimes_find("", "many", found);
	assert_true(n == 3 && !strcmp(found[0].path, "./many/libamdhip64.so.10"));
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_release_has_the_name_that_people_know),
		cmocka_unit_test(the_texts_name_the_newest_release),
		cmocka_unit_test(a_defect_ends_where_it_ends),
		cmocka_unit_test(a_defect_is_of_the_devices_that_have_it),
		cmocka_unit_test_setup_teardown(packages_are_found_newest_first, layout,
						remove_layout),
		cmocka_unit_test_setup_teardown(what_the_user_has_set_comes_first, layout,
						remove_layout),
		cmocka_unit_test_setup_teardown(what_is_asked_for_is_all_that_is_looked_at, layout,
						remove_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

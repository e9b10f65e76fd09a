/* SPDX-License-Identifier: MIT */
/* Tests the options: every form that a value may have, and the warnings for other text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/options.h"
#include "config/values.h"
#include "core/driver.h" /* the enums whose names the values are */

#define GIB (1ull << 30)

static void amount(const char *text, uint64_t bytes)
{
	struct ss_amount a;
	assert_true(ss_amount_parse(text, &a));
	assert_true(a.set);
	assert_int_equal(ss_amount_bytes(&a, 64 * GIB), bytes);
}

static void test_amounts(void **state)
{
	static const char *const bad[] = {
		"",          "G",   "-1",   "1X",   "1GG",
		"1.5",       "1.",  ".5G",  "1 G",  "101%",
		"100.1%",    "%",   "1Gi",  "0x10", "18446744073709551616",
		"16777216T", "1e3", "20%%", "1G,",
	};
	struct ss_amount a = {.bytes = 7};

	amount("0", 0);
	amount("4096", 4096);
	amount("4096B", 4096);
	amount("64K", 65536);
	amount("1.5G", 3 * GIB / 2);
	amount("1.5GiB", 3 * GIB / 2);
	amount("2gb", 2 * GIB);
	amount("1T", 1024 * GIB);
	amount("0.25m", 1 << 18);
	amount("20%", 64 * GIB / 5);
	amount("12.5%", 8 * GIB);
	amount("0%", 0);
	amount("100%", 64 * GIB);
	amount("18446744073709551615", UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ss_amount_parse(bad[i], &a))
			fail_msg("%s was taken", bad[i]);
	assert_int_equal(a.bytes, 7);
}

static void test_defaults(void **state)
{
	struct ss_options opt;

	ss_options_default(&opt);
	assert_int_equal(opt.backing, SS_BACKING_AUTO);
	assert_int_equal(opt.fence, SS_FENCE_AUTO);
	assert_int_equal(opt.free_sync, SS_FREE_SYNC_AUTO);
	assert_int_equal(opt.decay_ms, 1000);
	assert_int_equal(opt.oom_wait_ms, 2000);
	assert_false(opt.threshold[0].set || opt.limit.set || opt.initial.set);
	assert_false(opt.disable || opt.verbose || opt.stats || opt.selftest);
	assert_string_equal(opt.log, "");
}

static void test_set(void **state)
{
	struct ss_options opt;

	ss_options_default(&opt);
	assert_true(ss_options_set(&opt, "backing", "VMM"));
	assert_int_equal(opt.backing, SS_BACKING_VMM);
	assert_true(ss_options_set(&opt, "FENCE", "signal"));
	assert_int_equal(opt.fence, SS_FENCE_SIGNAL);
	assert_true(ss_options_set(&opt, "Free_Sync", "never"));
	assert_int_equal(opt.free_sync, SS_FREE_SYNC_NEVER);
	assert_true(ss_options_set(&opt, "DECAY_MS", "0"));
	assert_int_equal(opt.decay_ms, 0);
	assert_true(ss_options_set(&opt, "ALIGN_LARGE", "2M"));
	assert_int_equal(opt.align_large, 2 << 20);
	assert_false(ss_options_set(&opt, "ALIGN_LARGE", "3M"));
	assert_int_equal(opt.align_large, 2 << 20);
	assert_true(ss_options_set(&opt, "ALIGN_LARGE", "off"));
	assert_int_equal(opt.align_large, 0);
	assert_true(ss_options_set(&opt, "CHECK_PADDING", "4K"));
	assert_false(ss_options_set(&opt, "CHECK_PADDING", "4097"));
	assert_false(ss_options_set(&opt, "CHECK_FRONT", "1G"));
	assert_int_equal(opt.check_padding, 4096);
	assert_int_equal(opt.check_front, 0);
	assert_true(ss_options_set(&opt, "STATS", "yes"));
	assert_true(opt.stats);
	assert_true(ss_options_set(&opt, "STATS", "off"));
	assert_false(opt.stats);
	assert_true(ss_options_set(&opt, "LOG", "/tmp/x.%p"));
	assert_string_equal(opt.log, "/tmp/x.%p");
	assert_false(ss_options_set(&opt, "BACKING", "cuda"));
	assert_false(ss_options_set(&opt, "BACKING", "vm"));
	/* A very long time does not overflow when something is added to it. */
	assert_true(ss_options_set(&opt, "OOM_WAIT_MS", "18446744073709551615"));
	assert_true(opt.oom_wait_ms > UINT32_MAX && opt.oom_wait_ms <= UINT64_MAX / 2);
	assert_false(ss_options_set(&opt, "DECAY_MS", "1s"));
	assert_false(ss_options_set(&opt, "DECAY_MS", "99999999999999999999"));
	assert_false(ss_options_set(&opt, "NOTHING", "1"));
	assert_int_equal(opt.backing, SS_BACKING_VMM);
}

/* A number alone is seconds. */
static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {{"30", 30000},   {"30s", 30000}, {"500ms", 500}, {"5m", 300000},
		    {"1h", 3600000}, {"1.5s", 1500}, {"0", 0},       {"off", 0}};
	static const char *const bad[] = {"", "s", "-1", "1d", "1 s", "30sec", "1.", "1e3"};
	struct ss_options opt;

	ss_options_default(&opt);
	assert_int_equal(opt.idle_sleep, 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(ss_options_set(&opt, "IDLE_SLEEP", good[i].text));
		assert_int_equal(opt.idle_sleep, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(ss_options_set(&opt, "IDLE_SLEEP", bad[i]));
	assert_true(ss_options_set(&opt, "IDLE_SLEEP", "99999999999999h"));
	assert_int_equal(opt.idle_sleep, SS_FOR_EVER_MS);
}

/* Only virtual memory can sleep, but a backing that the user names stays. */
static void test_sleep(void **state)
{
	char *alone[] = {"SOMASHIM_SLEEP=pools", NULL};
	char *hip[] = {"SOMASHIM_SLEEP=pools", "SOMASHIM_BACKING=hip", NULL};
	char *off[] = {"SOMASHIM_SLEEP=off", NULL};
	char *all[] = {"SOMASHIM_SLEEP=all", NULL};
	struct ss_options opt;

	ss_options_read(&opt, alone, NULL);
	assert_int_equal(opt.backing, SS_BACKING_VMM);
	assert_true(opt.backing_by_sleep);
	ss_options_read(&opt, hip, NULL);
	assert_int_equal(opt.backing, SS_BACKING_HIP);
	assert_false(opt.backing_by_sleep);
	ss_options_read(&opt, all, NULL);
	assert_int_equal(opt.backing, SS_BACKING_VMM);
	assert_int_equal(opt.sleep, SS_SLEEP_ALL);
	ss_options_read(&opt, off, NULL);
	assert_int_equal(opt.backing, SS_BACKING_AUTO);
	assert_false(ss_options_set(&opt, "SLEEP", "everything"));
}

static void test_per_device(void **state)
{
	struct ss_options opt;

	ss_options_default(&opt);
	assert_true(ss_options_set(&opt, "RELEASE_THRESHOLD", "0:1G,1:20%"));
	assert_int_equal(opt.threshold[0].bytes, GIB);
	assert_int_equal(ss_amount_bytes(&opt.threshold[1], 10 * GIB), 2 * GIB);
	assert_false(opt.threshold[2].set);
	assert_true(ss_options_set(&opt, "RELEASE_THRESHOLD", "1G,2:max"));
	/* What is printed can be read. */
	assert_true(ss_options_set(&opt, "LIMIT", "18446744073709551615"));
	char text[32];
	ss_format_amount(&opt.limit, text, sizeof(text));
	assert_true(ss_options_set(&opt, "LIMIT", text));
	assert_true(opt.limit.bytes == UINT64_MAX);
	assert_int_equal(opt.threshold[63].bytes, GIB);
	assert_int_equal(opt.threshold[2].bytes, UINT64_MAX);
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", "64:1G"));
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", "0:1G,"));
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", ":1G"));
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", "1G,,2G"));
	assert_int_equal(opt.threshold[63].bytes, GIB);
}

static char *warnings(struct ss_options *opt, char **env);

/* Reads one variable and returns the warnings. */
static char *warning(struct ss_options *opt, const char *set)
{
	char text[128];
	snprintf(text, sizeof(text), "%s", set);
	return warnings(opt, (char *[]){text, NULL});
}

/* A bad entry is reported and left out; the others are used. */
static void test_bad_entries(void **state)
{
	struct ss_options opt, silent;
	char *text = warning(&opt, "SOMASHIM_RELEASE_THRESHOLD=0:1G,99:2G,x:1G,3:lots,2:max");

	assert_int_equal(opt.threshold[0].bytes, GIB);
	assert_int_equal(opt.threshold[2].bytes, UINT64_MAX);
	assert_false(opt.threshold[1].set || opt.threshold[3].set || opt.threshold[63].set);
	assert_non_null(strstr(text, "'99:2G'"));
	assert_non_null(strstr(text, "'x:1G'"));
	assert_non_null(strstr(text, "'3:lots'"));
	assert_null(strstr(text, "'0:1G'"));
	free(text);
	/* Without a file for warnings the result is the same. */
	char *env[] = {"SOMASHIM_RELEASE_THRESHOLD=0:1G,99:2G,x:1G,3:lots,2:max", NULL};
	ss_options_read(&silent, env, NULL);
	assert_memory_equal(&silent, &opt, sizeof(opt));

	text = warning(&opt, "SOMASHIM_RELEASE_THRESHOLD=0:1G,0:2G");
	assert_int_equal(opt.threshold[0].bytes, GIB);
	assert_non_null(strstr(text, "SOMASHIM_RELEASE_THRESHOLD"));
	assert_non_null(strstr(text, "'0:2G' names a device for the second time"));
	free(text);
	/* ss_options_set() takes all entries or none. */
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", "0:3G,99:2G"));
	assert_false(ss_options_set(&opt, "RELEASE_THRESHOLD", "1G,2G"));
	assert_int_equal(opt.threshold[0].bytes, GIB);
	/* The entry of a device counts before or after that for all devices. */
	assert_true(ss_options_set(&opt, "RELEASE_THRESHOLD", "2:max,1G"));
	assert_int_equal(opt.threshold[2].bytes, UINT64_MAX);
	assert_int_equal(opt.threshold[1].bytes, GIB);

	text = warning(&opt, "SOMASHIM_RELEASE_THRESHOLD=lots");
	assert_non_null(strstr(text, "'lots' has no size or percent"));
	assert_false(opt.threshold[0].set);
	free(text);
}

/* Limits that are valid, but probably not what the user wants. */
static void test_limits(void **state)
{
	struct ss_options opt;
	char *text = warning(&opt, "SOMASHIM_LIMIT=0");

	assert_non_null(strstr(text, "SOMASHIM_LIMIT=0 means that there is no limit"));
	free(text);
	text = warning(&opt, "SOMASHIM_LIMIT=1M");
	assert_non_null(strstr(text, "SOMASHIM_LIMIT=1M is less"));
	assert_int_equal(opt.limit.bytes, 1 << 20);
	free(text);
	const char *good[] = {"SOMASHIM_LIMIT=2M", "SOMASHIM_LIMIT=50%", "SOMASHIM_LIMIT="};
	for (size_t i = 0; i < 3; i++) {
		text = warning(&opt, good[i]);
		assert_string_equal(text, "");
		free(text);
	}
}

/* The name that HAMi uses in Kubernetes. */
static void test_hami(void **state)
{
	struct ss_options opt;
	char *text = warning(&opt, "HIP_DEVICE_MEMORY_LIMIT=3000m");

	assert_string_equal(text, "");
	assert_true(opt.limit.set);
	assert_int_equal(opt.limit.bytes, 3000ull << 20);
	free(text);
	/* SOMASHIM_LIMIT wins, in either order. */
	char *both[] = {"SOMASHIM_LIMIT=1G", "HIP_DEVICE_MEMORY_LIMIT=3000m", NULL};
	ss_options_read(&opt, both, NULL);
	assert_int_equal(opt.limit.bytes, GIB);
	char *turned[] = {"HIP_DEVICE_MEMORY_LIMIT=3000m", "SOMASHIM_LIMIT=1G", NULL};
	ss_options_read(&opt, turned, NULL);
	assert_int_equal(opt.limit.bytes, GIB);
	text = warning(&opt, "HIP_DEVICE_MEMORY_LIMIT=some");
	assert_non_null(strstr(text, "HIP_DEVICE_MEMORY_LIMIT=some"));
	assert_false(opt.limit.set);
	free(text);
	text = warning(&opt, "HIP_DEVICE_MEMORY_LIMIT_X=1m");
	assert_false(opt.limit.set);
	free(text);
}

/* Reads `env` and returns the warnings. */
static char *warnings(struct ss_options *opt, char **env)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	ss_options_read(opt, env, file);
	fclose(file);
	return text;
}

static void test_environment(void **state)
{
	struct ss_options opt;
	char *good[] = {"PATH=/bin",
			"SOMASHIM_BACKING=hsa",
			"SOMASHIM_STATS=1",
			"SOMASHIM_LOG=",
			"SOMASIM_SEED=4",
			"SOMASHIM",
			NULL};
	char *text = warnings(&opt, good);
	assert_string_equal(text, "");
	assert_int_equal(opt.backing, SS_BACKING_HSA);
	assert_true(opt.stats);
	free(text);

	static const struct {
		const char *set, *said[3];
	} bad[] = {
		{"SOMASHIM_BAKCING=hsa", {"SOMASHIM_BAKCING", "SOMASHIM_BACKING?"}},
		{"SOMASHIM_THRESHOLD=1G", {"SOMASHIM_THRESHOLD", "SOMASHIM_RELEASE_THRESHOLD?"}},
		{"SOMASHIM_stats=1", {"SOMASHIM_stats", "SOMASHIM_STATS?"}},
		{"SOMASHIM_BACKING=vmn", {"SOMASHIM_BACKING=vmn", "did you mean vmm", "auto"}},
		{"SOMASHIM_LIMIT=lots", {"SOMASHIM_LIMIT=lots", "size or percent", "unset"}},
		{"SOMASHIM_DECAY_MS=soon", {"SOMASHIM_DECAY_MS=soon", "1000"}},
		{"SOMASHIM_VERBOSE=2", {"SOMASHIM_VERBOSE=2", "0|1"}},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char set[64];
		strcpy(set, bad[i].set);
		char *env[] = {set, NULL};
		text = warnings(&opt, env);
		for (int k = 0; k < 3 && bad[i].said[k]; k++)
			if (!strstr(text, bad[i].said[k]))
				fail_msg("%s: '%s' does not say '%s'", set, text, bad[i].said[k]);
		free(text);
		struct ss_options def;
		ss_options_default(&def);
		assert_memory_equal(&def, &opt, sizeof(opt));
		ss_options_read(&opt, env, NULL);
	}

	/* A very long name or value is reported and not copied past its buffer. */
	char *big = malloc(9000);
	memset(big, 'A', 8999);
	big[8999] = '\0';
	memcpy(big, "SOMASHIM_", 9);
	big[4000] = '=';
	char *env[] = {big, NULL};
	free(warnings(&opt, env));
	memcpy(big, "SOMASHIM_LOG=", 13);
	text = warnings(&opt, env);
	assert_non_null(strstr(text, "SOMASHIM_LOG="));
	assert_string_equal(opt.log, "");
	free(text);
	free(big);
}

static void test_print(void **state)
{
	struct ss_options opt;
	char *text = NULL;
	size_t size;

	ss_options_default(&opt);
	FILE *file = open_memstream(&text, &size);
	ss_options_print_changed(&opt, file);
	fflush(file);
	assert_int_equal(size, 0);
	ss_options_set(&opt, "BACKING", "vmm");
	ss_options_set(&opt, "LIMIT", "1536M");
	ss_options_set(&opt, "INITIAL", "0");
	ss_options_set(&opt, "RELEASE_THRESHOLD", "0:1G,1:20%");
	ss_options_print_changed(&opt, file);
	fclose(file);
	assert_string_equal(text, "SOMASHIM_BACKING=vmm\n"
				  "SOMASHIM_RELEASE_THRESHOLD=0:1G,1:20%\nSOMASHIM_INITIAL=0\n"
				  "SOMASHIM_LIMIT=1536M\n");
	free(text);

	for (int markdown = 0; markdown < 2; markdown++) {
		file = open_memstream(&text, &size);
		ss_options_print(file, markdown);
		fclose(file);
		assert_non_null(strstr(text, "SOMASHIM_OOM_WAIT_MS"));
		assert_non_null(strstr(text, "2000"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amounts),     cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_set),         cmocka_unit_test(test_times),
		cmocka_unit_test(test_sleep),       cmocka_unit_test(test_per_device),
		cmocka_unit_test(test_bad_entries), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_hami),        cmocka_unit_test(test_environment),
		cmocka_unit_test(test_print),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

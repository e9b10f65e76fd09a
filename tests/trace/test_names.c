/* SPDX-License-Identifier: MIT */
/* Names of functions and call sites: long arguments lose their middle, unless they tell two sites
 * apart. Which sites of two recordings are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/report/report.h"

static void check(const char *name, const char *want)
{
	char out[512];

	assert_string_equal(ss_report_function(name, out, sizeof(out)), want);
}

static void test_functions(void **state)
{
	check("main", "main");
	check("", "");
	check("solve<double>(int)", "solve<double>(int)");
	check("v<std::vector<double, std::allocator<double> >, 12345678>::f",
	      "v<std::vector<... >, 12345678>::f");
	check("run(std::vector<int, std::allocator<int> > const&, unsigned long)",
	      "run(std::vector<...nsigned long)");
	check("S::operator<(S const&)", "S::operator<(S const&)");
	check("operator<<<std::char_traits<char> >", "operator<<<std::char_traits<char> >");
	check("S::operator->", "S::operator->");
	check("broken<of a thing that never ends, however long it is",
	      "broken<of a thing that never ends, however long it is");
	char small[8];
	assert_string_equal(ss_report_function("a name that is longer", small, sizeof(small)),
			    "a name ");
}

/* Blocks of a framework's own pool are its segments. */
static void test_pools_above(void **state)
{
	struct ss_frame frame[] = {
		{"c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(int)", "",
		 "", 0},
		{"main", "main.cc", "", 1},
	};
	const uint32_t inside[] = {0, 1}, plain[] = {1};
	struct ss_site site[] = {
		{0}, {.frame = inside, .frames = 2}, {.frame = plain, .frames = 1}};
	struct ss_sites s = {.site = site, .count = 3, .frame = frame, .frame_count = 2};
	struct ss_holder holder[] = {{.site = 1, .bytes = 60}, {.site = 2, .bytes = 40}};
	struct ss_snapshot p = {.level = {.used = 100}, .holder = holder, .holders = 2};
	const char *how = NULL;

	assert_string_equal(ss_report_pool_above(&s, &p, &how), "PyTorch's caching allocator");
	assert_non_null(strstr(how, "--framework pytorch"));
	holder[0].bytes = 50;
	holder[1].bytes = 50;
	assert_null(ss_report_pool_above(&s, &p, &how));
	s.by = SS_BY_FUNCTION;
	holder[0].bytes = 100;
	assert_null(ss_report_pool_above(&s, &p, &how));
}

/* Two instances of one template, on one line. */
static void test_instances(void **state)
{
	struct ss_frame frame[] = {
		{"get", "pool.cc", "", 7},
		{"fill<std::vector<float, std::allocator<float> >, 30000, 40000>", "fill.cc", "",
		 9},
		{"other", "a.cc", "", 9},
		{"main", "main.cc", "", 1},
		{"fill<std::vector<half1, std::allocator<half1> >, 30000, 40000>", "fill.cc", "",
		 9},
	};
	const uint32_t a[] = {0, 1, 3}, b[] = {0, 4, 3}, c[] = {0, 3};
	struct ss_site site[] = {{0},
				 {.frame = a, .frames = 3},
				 {.frame = b, .frames = 3},
				 {.frame = c, .frames = 2}};
	struct ss_sites s = {.site = site, .count = 4, .frame = frame, .frame_count = 5};
	char name[SS_SITE_NAME];

	assert_true(ss_sites_tell_apart(&s));
	assert_string_equal(ss_report_site_name(&s, 0, name, sizeof(name)),
			    "(call stack not known)");
	ss_report_site_name(&s, 1, name, sizeof(name));
	assert_non_null(strstr(
		name,
		"fill<std::vector<float, std::allocator<float> >, 30000, 40000> (fill.cc:9)"));
	ss_report_site_name(&s, 2, name, sizeof(name));
	assert_non_null(strstr(
		name,
		"fill<std::vector<half1, std::allocator<half1> >, 30000, 40000> (fill.cc:9)"));
	assert_string_equal(ss_report_site_name(&s, 3, name, sizeof(name)),
			    "get (pool.cc:7) < main (main.cc:1)");
}

/* The frame that differs is far out: those in the middle are left out, and a stack that ends before
 * the other is whole. */
static void test_deep(void **state)
{
	enum { DEEP = 60 };
	struct ss_frame frame[DEEP + 2];
	uint32_t a[DEEP + 1], b[DEEP + 1];
	char text[DEEP + 2][16], name[SS_SITE_NAME], tiny[40];

	for (uint32_t i = 0; i < DEEP + 2; i++) {
		snprintf(text[i], sizeof(text[i]), "f%u", i);
		frame[i] = (struct ss_frame){text[i], "f.c", "", (int)i + 1};
	}
	for (uint32_t i = 0; i < DEEP; i++)
		a[i] = b[i] = i;
	a[DEEP] = DEEP;
	b[DEEP] = DEEP + 1;
	struct ss_site site[] = {{0},
				 {.frame = a, .frames = DEEP + 1},
				 {.frame = b, .frames = DEEP + 1},
				 {.frame = a, .frames = DEEP}};
	struct ss_sites s = {.site = site, .count = 4, .frame = frame, .frame_count = DEEP + 2};

	assert_true(ss_sites_tell_apart(&s));
	ss_report_site_name(&s, 1, name, sizeof(name));
	assert_non_null(strstr(name, "f11 (f.c:12) < ... < f60 (f.c:61)"));
	assert_null(strstr(name, "f12 "));
	ss_report_site_name(&s, 2, name, sizeof(name));
	assert_non_null(strstr(name, "... < f61 (f.c:62)"));
	ss_report_site_name(&s, 3, name, sizeof(name));
	assert_non_null(strstr(name, "f59 (f.c:60)"));
	assert_int_equal(strlen(ss_report_site_name(&s, 1, tiny, sizeof(tiny))), sizeof(tiny) - 1);
}

/* A program was changed: its lines moved, one call became two, and one is new. */
static void test_moved(void **state)
{
	struct ss_frame before[] = {
		{"load", "a.c", "", 10}, {"step", "a.c", "", 20}, {"main", "a.c", "", 30}};
	struct ss_frame after[] = {{"load", "a.c", "", 12},
				   {"step", "a.c", "", 22},
				   {"main", "a.c", "", 32},
				   {"main", "a.c", "", 33},
				   {"extra", "a.c", "", 40}};
	const uint32_t load_main[] = {0, 2}, step_main[] = {1, 2}, load_main_too[] = {0, 3},
		       extra[] = {4, 2};
	struct ss_site old[] = {
		{0},
		{.frame = load_main, .frames = 2, .allocs = 1, .peak = 100, .bytes = 100},
		{.frame = step_main, .frames = 2, .allocs = 5, .peak = 10, .bytes = 50}};
	struct ss_site new[] = {
		{0},
		{.frame = load_main, .frames = 2, .allocs = 1, .peak = 70, .bytes = 70},
		{.frame = load_main_too, .frames = 2, .allocs = 1, .peak = 60, .bytes = 60},
		{.frame = step_main, .frames = 2, .allocs = 5, .peak = 10, .bytes = 50},
		{.frame = extra, .frames = 2, .allocs = 1, .peak = 1, .bytes = 1}};
	struct ss_analysis a = {
		.sites = {.site = old, .count = 3, .frame = before, .frame_count = 3}};
	struct ss_analysis b = {
		.sites = {.site = new, .count = 5, .frame = after, .frame_count = 5}};
	struct ss_analysis *list[] = {&a, &b};
	struct ss_difference d;

	assert_true(ss_difference(&d, list, 1, 2));
	assert_int_equal(d.count, 2); /* step is as it was */
	assert_true(d.site[0].in[0] && d.site[0].in[1]);
	assert_true(d.site[0].figure[0][SS_DIFFERENCE_PEAK] == 100 &&
		    d.site[0].figure[1][SS_DIFFERENCE_PEAK] == 130);
	assert_true(d.site[0].figure[1][SS_DIFFERENCE_ALLOCS] == 2);
	assert_true(!d.site[1].in[0] && d.site[1].figure[1][SS_DIFFERENCE_PEAK] == 1);
	ss_difference_finish(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions), cmocka_unit_test(test_pools_above),
		cmocka_unit_test(test_instances), cmocka_unit_test(test_deep),
		cmocka_unit_test(test_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

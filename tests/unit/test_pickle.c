/* SPDX-License-Identifier: MIT */
/* Tests the pickle reader: data is read, instructions that would run code are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/events.h"
#include "cli/readers/pickle.h"

#define LOAD(text) load(text, sizeof(text) - 1)

static char err[256];

static struct ss_pickle_doc *load(const char *data, size_t size)
{
	err[0] = '\0';
	return ss_pickle_load((const unsigned char *)data, size, err, sizeof(err));
}

static void test_values(void **state)
{
	/* {'a': [1, -2, 2.5, None, True, 2**63 + 1], 'b': (3, 4), 'c': 'a' again} */
	struct ss_pickle_doc *doc = LOAD("\x80\x04"
					 "}\x94("
					 "\x8c\x01"
					 "a\x94"
					 "]\x94("
					 "K\x01"
					 "J\xfe\xff\xff\xff"
					 "G\x40\x04\0\0\0\0\0\0"
					 "N\x88"
					 "\x8a\x09\x01\0\0\0\0\0\0\x80\0"
					 "e"
					 "\x8c\x01"
					 "b"
					 "K\x03K\x04\x86"
					 "\x8c\x01"
					 "c"
					 "h\x01"
					 "u.");
	if (!doc)
		fail_msg("%s", err);
	const struct ss_pickle *root = ss_pickle_root(doc);
	const struct ss_pickle *a = ss_pickle_get(root, "a");
	assert_int_equal(ss_pickle_count(a), 6);
	assert_int_equal(ss_pickle_at(a, 0)->i, 1);
	assert_int_equal(ss_pickle_at(a, 1)->i, -2);
	assert_true(ss_pickle_at(a, 2)->f == 2.5);
	assert_int_equal(ss_pickle_at(a, 3)->type, SS_PICKLE_NONE);
	assert_int_equal(ss_pickle_at(a, 4)->type, SS_PICKLE_BOOL);
	assert_int_equal((uint64_t)ss_pickle_at(a, 5)->i, (1ull << 63) + 1);
	assert_null(ss_pickle_at(a, 6));
	assert_int_equal(ss_pickle_at(ss_pickle_get(root, "b"), 1)->i, 4);
	assert_true(ss_pickle_is(ss_pickle_get(root, "c"), "a"));
	assert_null(ss_pickle_get(root, "d"));
	assert_null(ss_pickle_get(a, "a"));
	ss_pickle_free(doc);

	doc = LOAD("\x80\x04](e."); /* appends no items to an empty list */
	assert_non_null(doc);
	assert_int_equal(ss_pickle_count(ss_pickle_root(doc)), 0);
	ss_pickle_free(doc);

	doc = LOAD("\x80\x02"
		   "\x8a\x02\x00\xff"
		   ".");
	assert_int_equal(ss_pickle_root(doc)->i, -256);
	ss_pickle_free(doc);
}

/* A tuple of one is one byte of the file, so room for more would multiply what a file takes. */
static void test_room(void **state)
{
	struct ss_pickle_doc *doc = LOAD("\x80\x04"
					 "NNN\x85\x87.");

	assert_non_null(doc);
	const struct ss_pickle *outer = ss_pickle_root(doc);
	assert_int_equal(outer->items->space, 3);
	assert_int_equal(ss_pickle_at(outer, 2)->items->space, 1);
	ss_pickle_free(doc);
}

static void test_refused(void **state)
{
	static const struct {
		const char *data;
		size_t size;
		const char *name;
	} bad[] = {
		{"\x80\x02"
		 "cos\nsystem\n.",
		 14, "GLOBAL"},
		{"\x80\x04"
		 "\x8c\x02os\x8c\x06system\x93.",
		 16, "STACK_GLOBAL"},
		{"\x80\x02"
		 "N)R.",
		 6, "REDUCE"},
		{"\x80\x02"
		 "N}b.",
		 6, "BUILD"},
		{"\x80\x02"
		 "N)\x81.",
		 6, "NEWOBJ"},
		{"\x80\x02"
		 "(ios\nsystem\n.",
		 15, "INST"},
		{"\x80\x02"
		 "(No.",
		 6, "OBJ"},
		{"\x80\x02"
		 "\x82\x01.",
		 5, "EXT1"},
		{"\x80\x02"
		 "NQ.",
		 5, "BINPERSID"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(load(bad[i].data, bad[i].size));
		if (!strstr(err, bad[i].name) || !strstr(err, "would run code"))
			fail_msg("%s: '%s'", bad[i].name, err);
	}
}

static void test_malformed(void **state)
{
	assert_null(LOAD("\x80\x04"));
	assert_non_null(strstr(err, "cut off"));
	assert_null(LOAD("\x80\x09"
			 "N."));
	assert_null(LOAD("."));
	assert_null(LOAD("e."));
	assert_null(LOAD("(e."));
	assert_null(LOAD("Na."));
	assert_null(LOAD("a."));
	/* What is below a mark is taken by no instruction, or the mark would be above the stack. */
	assert_null(LOAD("\x80\x02]]K\x01"
			 "a(ae."));
	assert_null(LOAD("\x80\x02]]]K\x01"
			 "a(aae."));
	assert_null(LOAD("\x80\x02]N(ae."));
	assert_null(LOAD("\x80\x02}NN(su."));
	assert_null(LOAD("\x80\x02}NN(Nsu."));
	assert_null(LOAD("\x80\x02NN(\x86t."));
	assert_non_null(strstr(err, "the stack is empty"));
	assert_null(LOAD("s."));
	assert_null(LOAD("}K\x01u."));
	assert_null(LOAD("}(K\x01u."));
	assert_null(LOAD("K\x01\x86."));
	assert_null(LOAD("h\x05."));
	assert_null(LOAD("Nr\xff\xff\xff\xff."));
	assert_null(LOAD("\x8e\xff\xff\xff\xff\xff\xff\xff\xff"
			 "x."));
	assert_null(LOAD("\x8b\xff\xff\xff\xff"
			 "x."));
	/* A memo index far beyond the file: 5 bytes that would take 24 MiB. */
	assert_null(LOAD("\x80\x02Nr\x40\x42\x0f\0."));
	assert_non_null(strstr(err, "a memo out of range"));
	assert_null(LOAD("\xff."));
	assert_non_null(strstr(err, "unknown instruction"));
}

/* {'device_traces': [[alloc, alloc, free_requested, free_completed]]} */
static void test_snapshot(void **state)
{
	static const char data[] = "\x80\x04}(\x8c\x0d"
				   "device_traces](]("
				   "}(\x8c\x06"
				   "action\x8c\x05"
				   "alloc\x8c\x04"
				   "addrM\0\x10\x8c\x04sizeM\x01\x02u"
				   "}(\x8c\x06"
				   "action\x8c\x05"
				   "alloc\x8c\x04"
				   "addrM\0\x20\x8c\x04sizeM\x00\x02u"
				   "}(\x8c\x06"
				   "action\x8c\x0e"
				   "free_requested\x8c\x04"
				   "addrM\0\x10u"
				   "}(\x8c\x06"
				   "action\x8c\x0e"
				   "free_completed\x8c\x04"
				   "addrM\0\x10u"
				   "}(\x8c\x06"
				   "action\x8c\x0e"
				   "free_completed\x8c\x04"
				   "addrM\0\x20u"
				   "}(\x8c\x06"
				   "action\x8c\x0d"
				   "segment_alloc\x8c\x04"
				   "addrM\0\x20u"
				   "eeu.";
	char path[] = "/tmp/somashim-snapshot-XXXXXX";
	struct ss_events ev;
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "wb");
	fwrite(data, 1, sizeof(data) - 1, file);
	fclose(file);
	if (!ss_events_read(&ev, path, -1, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(ev.count, 4);
	assert_int_equal(ev.blocks, 2);
	assert_int_equal(ev.peak, 1024 + 512);
	assert_int_equal(ev.peak_at, 1);
	assert_int_equal(ev.unknown_frees, 0);
	ss_events_finish(&ev);
	assert_false(ss_events_read(&ev, path, 1, err, sizeof(err)));
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),   cmocka_unit_test(test_room),
		cmocka_unit_test(test_refused),  cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_snapshot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

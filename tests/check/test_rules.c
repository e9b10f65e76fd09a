/* SPDX-License-Identifier: MIT */
/* Rules of core/check that random programs seldom meet: each with the program beside it that is
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/check/check.h"

#define SIZE 256
#define ROOM (SIZE + 16)
#define FRONT 64

static struct ss_check *check;
static struct ss_finding last;
static unsigned found;
static char a, b, other, event, memory[FRONT + ROOM];
static char *const block = memory + FRONT;

static void report(const struct ss_finding *f, void *unused)
{
	(void)unused;
	last = *f;
	found++;
}

static void describe(const void *key, struct ss_check_stream *out, void *unused)
{
	(void)key, (void)unused;
	out->kind = SS_CHECK_NONBLOCKING;
}

static int setup(void **state)
{
	const struct ss_check_options options = {.use_before_alloc = true,
						 .use_after_free = true,
						 .frees = true,
						 .describe = describe,
						 .report = report};

	(void)state;
	found = 0;
	check = ss_check_create(&options);
	return check ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ss_check_destroy(check);
	return 0;
}

static void allocate(const char *stream)
{
	ss_check_alloc(check, block, SIZE, FRONT, ROOM, stream, "alloc", 1);
}

static bool use(const char *stream, const char *at, uint64_t bytes)
{
	return ss_check_use(check, stream, &(struct ss_check_operand){.ptr = at, .bytes = bytes},
			    "use", 2);
}

static void release(const char *stream)
{
	assert_true(ss_check_free(check, block, stream, NULL, "free", 3));
}

static void record(const char *stream)
{
	ss_check_record_begin(check, &event);
	ss_check_record_end(check, &event, stream, true);
}

static void test_destroyed_stream_has_ended(void **state)
{
	(void)state;
	ss_check_stream_add(check, &b); /* or it would get the slot of a */
	allocate(&a);
	(void)use(&a, block, SIZE);
	ss_check_stream_end(check, &a);
	release(&b);
	assert_int_equal(found, 0);
}

static void test_stream_that_lives_has_not(void **state)
{
	(void)state;
	allocate(&b);
	record(&b);
	ss_check_wait(check, &a, &event);
	(void)use(&a, block, SIZE);
	release(&b);
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_FREE_USE_RACE);
}

/* The new one has the slot of the old one, whose work counts as ended. */
static void test_new_stream_of_an_old_key(void **state)
{
	(void)state;
	allocate(&a);
	(void)use(&a, block, SIZE);
	ss_check_stream_add(check, &a);
	release(&a);
	assert_int_equal(found, 0);
	allocate(&a);
	assert_true(use(&other, block, SIZE));
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_USE_BEFORE_ALLOC);
	assert_int_equal(last.alloc.stream.number, 2);
	assert_int_equal(last.use.stream.number, 3);
}

/* b waits for what may have been recorded anywhere, so its order is not known. */
static void free_behind_wait(void)
{
	allocate(&other);
	ss_check_wait(check, &b, &event);
	release(&b);
}

static void test_event_that_others_record(void **state)
{
	(void)state;
	ss_check_event_unknown(check, &event, true);
	record(&a);
	free_behind_wait();
	assert_int_equal(found, 0);
}

static void test_event_that_others_recorded_once(void **state)
{
	(void)state;
	ss_check_event_unknown(check, &event, false);
	record(&a);
	free_behind_wait();
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_FREE_BEFORE_ALLOC);
}

static void test_event_of_two_records_at_once(void **state)
{
	(void)state;
	ss_check_record_begin(check, &event);
	record(&a);
	ss_check_record_end(check, &event, &b, true);
	allocate(&a);
	ss_check_wait(check, &other, &event);
	release(&other);
	assert_int_equal(found, 0);
	/* A later one is the only one. */
	record(&a);
	allocate(&b);
	ss_check_wait(check, &a, &event);
	release(&a);
	assert_int_equal(found, 1);
}

/* A pointer to the end is often an argument of a kernel. */
static void test_end_is_no_use(void **state)
{
	(void)state;
	allocate(&a);
	release(&a);
	(void)use(&a, block + SIZE, 0);
	assert_int_equal(found, 0);
	(void)use(&a, block + SIZE - 1, 0);
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_USE_AFTER_FREE);
}

static void test_front_is_of_live_blocks(void **state)
{
	(void)state;
	allocate(&a);
	assert_false(use(&a, block - FRONT / 2, FRONT));
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_OUT_OF_BOUNDS);
	release(&a);
	(void)use(&a, block - FRONT / 2, FRONT / 4);
	assert_int_equal(found, 1);
}

/* `a` waits for a value, so what it frees may come before what other streams enqueue later. */
static uint64_t held_free(bool since_after)
{
	uint64_t since;

	ss_check_hold(check, &a);
	since = ss_check_now(check);
	allocate(&a);
	release(&a);
	return since_after ? ss_check_now(check) : since;
}

static void test_wait_that_began_before_the_free(void **state)
{
	(void)state;
	ss_check_stream_synced(check, &a, held_free(false));
	(void)use(&b, block, SIZE);
	assert_int_equal(found, 0);
}

static void test_wait_that_began_after_the_free(void **state)
{
	(void)state;
	ss_check_stream_synced(check, &a, held_free(true));
	(void)use(&b, block, SIZE);
	assert_int_equal(found, 1);
	assert_int_equal(last.fault, SS_FAULT_USE_AFTER_FREE);
}

/* What was known of the first block at these addresses does not count for the second. */
static void test_block_in_place_of_another(void **state)
{
	(void)state;
	allocate(&a);
	record(&a);
	ss_check_wait(check, &b, &event);
	(void)use(&b, block, SIZE);
	ss_check_stream_synced(check, &b, ss_check_now(check));
	release(&a);
	(void)use(&a, block, SIZE);
	assert_int_equal(found, 1);
	assert_int_equal(last.block, 1);
	allocate(&a);
	(void)use(&a, block, SIZE);
	release(&a);
	assert_int_equal(found, 1);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(test_destroyed_stream_has_ended),
		RULE(test_stream_that_lives_has_not),
		RULE(test_new_stream_of_an_old_key),
		RULE(test_event_that_others_record),
		RULE(test_event_that_others_recorded_once),
		RULE(test_event_of_two_records_at_once),
		RULE(test_end_is_no_use),
		RULE(test_front_is_of_live_blocks),
		RULE(test_wait_that_began_before_the_free),
		RULE(test_wait_that_began_after_the_free),
		RULE(test_block_in_place_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

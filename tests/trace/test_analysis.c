/* SPDX-License-Identifier: MIT */
/* The analysis of traces: sets of ranges against a simple model, and files that are cut
 * anywhere. */
#include "trace_test.h"

#include "cli/analysis/analysis.h"

/* ---- ranges ------------------------------------------------------------- */

#define PLACES 3000u /* several leaves of a set */
#define STEPS 40000

static unsigned random_below(unsigned n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % n;
}

/* Each place has room for a range of up to 16 bytes. */
static void check_ranges(struct ss_ranges *r, const uint64_t *size)
{
	struct ss_ranges_walk walk = {0};
	const struct ss_range *at, *walked = ss_ranges_from(r, 0);
	uint64_t next = 0;

	for (unsigned i = 0; i < PLACES; i++) {
		if (!size[i]) {
			assert_null(ss_ranges_at(r, i * 16));
			continue;
		}
		at = ss_ranges_from(r, next);
		assert_non_null(at);
		assert_int_equal(at->base, i * 16);
		assert_int_equal(at->size, size[i]);
		assert_ptr_equal(ss_ranges_from(r, at->base + at->size - 1), at);
		assert_ptr_equal(ss_ranges_at(r, i * 16), at);
		assert_ptr_equal(walked, at);
		walked = ss_ranges_next(r, &walk, walked);
		next = at->base + at->size;
	}
	assert_null(ss_ranges_from(r, next));
	assert_null(walked);
}

static void test_ranges(void **state)
{
	struct ss_ranges r = {0};
	struct ss_range out;
	uint64_t size[PLACES] = {0};

	check_ranges(&r, size);
	for (int step = 0; step < STEPS; step++) {
		/* At first in ascending order, later all over the place, at last all goes. */
		unsigned i = step < (int)PLACES ? (unsigned)step : random_below(PLACES);
		if (size[i]) {
			assert_true(ss_ranges_remove(&r, i * 16, &out));
			assert_int_equal(out.size, size[i]);
			assert_false(ss_ranges_remove(&r, i * 16, &out));
			size[i] = 0;
		} else {
			size[i] = 1 + random_below(16);
			assert_true(ss_ranges_add(
				&r, &(struct ss_range){.base = i * 16, .size = size[i]}));
		}
		if (step % 500 == 0)
			check_ranges(&r, size);
	}
	check_ranges(&r, size);
	for (unsigned i = PLACES; i-- > 0;) {
		assert_int_equal(ss_ranges_remove(&r, i * 16, &out), size[i] != 0);
		size[i] = 0;
		if (i % 500 == 0)
			check_ranges(&r, size);
	}
	assert_int_equal(r.count, 0);
	assert_int_equal(r.leaves, 0);
	ss_ranges_finish(&r);
}

/* ---- reuse of a part ---------------------------------------------------- */

static void record_parts(void *path)
{
	MUST(ss_trace_open(path, NULL));
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, address(0, 0), 65536, 0, POOL, 0);
	ss_trace_alloc(address(0, 0), 4096, 4096, 0, POOL, STREAM, 0);
	ss_trace_alloc(address(0, 16), 4096, 4096, 0, POOL, STREAM, 0);
	ss_trace_free(address(0, 0), 0, POOL, STREAM, 0);
	ss_trace_free(address(0, 16), 0, POOL, STREAM, 0);
	ss_trace_free(address(0, 16), 0, POOL, STREAM, 0);              /* unknown */
	ss_trace_alloc(address(0, 12), 2048, 2048, 0, POOL, STREAM, 0); /* 1024 of each */
	ss_trace_reusable(address(0, 0), 1024, 0, POOL); /* 3072 - 1024 and 3072 stay */
	ss_trace_alloc(address(0, 12), 512, 512, 0, POOL, STREAM, 0); /* the free was lost */
	ss_trace_alloc(address(1, 0), 100, 512, 0, POOL, STREAM, 0);  /* in no segment */
	ss_trace_close();
}

static void test_parts(void **state)
{
	const char *path = path_in("parts");
	const struct ss_analysis_config config = {.charts = true, .samples = 64};
	char err[512] = "";

	assert_int_equal(in_child(record_parts, (void *)path), 0);
	struct ss_analysis *a = ss_analysis_run(path, &config, err, sizeof(err));
	assert_non_null(a);
	assert_int_equal(a->devices, 1);
	const struct ss_usage *u = &a->device[0].usage;
	assert_int_equal(u->used_peak.used, 8192);
	assert_int_equal(u->in_flight_peak, 8192);
	assert_int_equal(u->end.used, 1024);
	assert_int_equal(u->end.asked, 612);
	assert_int_equal(u->end.in_flight, 8192 - 2048 - 1024);
	assert_int_equal(u->end.reserved, 65536);
	assert_int_equal(a->unknown_frees, 1);
	assert_int_equal(a->lost_frees, 1);
	assert_null(a->sites.of_stack); /* a report of many ranks keeps no table of stacks */
	assert_int_equal(u->allocs, 5);
	assert_int_equal(u->frees, 3);
	uint64_t most = 0; /* the samples keep the peak, whatever their spans are */
	for (size_t i = 0; i < a->device[0].timeline.count; i++) {
		uint64_t used = a->device[0].timeline.sample[i].used;
		most = used > most ? used : most;
	}
	assert_int_equal(most, 8192);
	ss_analysis_free(a);
}

/* ---- a device reset ----------------------------------------------------- */

static void record_reset(void *path)
{
	MUST(ss_trace_open(path, NULL));
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, address(0, 0), 65536, 0, POOL, 0);
	ss_trace_alloc(address(0, 0), 4096, 4096, 0, POOL, STREAM, 0);
	ss_trace_segment(SS_TRACE_SEGMENT_FREE, address(0, 0), 65536, 0, POOL, 0);
	ss_trace_close();
}

static void test_reset(void **state)
{
	const char *path = path_in("reset");
	const struct ss_analysis_config config = {0};
	char err[512] = "";

	assert_int_equal(in_child(record_reset, (void *)path), 0);
	struct ss_analysis *a = ss_analysis_run(path, &config, err, sizeof(err));
	assert_non_null(a);
	assert_int_equal(a->reset_blocks, 1);
	assert_int_equal(a->device[0].usage.end.used, 0);
	assert_int_equal(a->device[0].usage.end.reserved, 0);
	assert_int_equal(a->ranking[SS_RANKING_LEAKS].count, 0);
	ss_analysis_free(a);
}

/* ---- what no program does ----------------------------------------------- */

/* A REUSABLE that covers a live block, and a block that goes past the end of the addresses. */
static void record_absurd(void *path)
{
	MUST(ss_trace_open(path, NULL));
	for (uint64_t n = 0; n < 3; n++)
		ss_trace_alloc(address(0, n), 256, 256, 0, POOL, STREAM, 0);
	ss_trace_free(address(0, 0), 0, POOL, STREAM, 0);
	ss_trace_free(address(0, 2), 0, POOL, STREAM, 0);
	ss_trace_reusable(address(0, 0), 768, 0, POOL);
	ss_trace_alloc((void *)-4096ul, 1ull << 47, 1ull << 47, 0, POOL, STREAM, 0);
	ss_trace_close();
}

static void test_absurd(void **state)
{
	const char *path = path_in("absurd");
	const struct ss_analysis_config config = {0};
	char err[512] = "";

	assert_int_equal(in_child(record_absurd, (void *)path), 0);
	struct ss_analysis *a = ss_analysis_run(path, &config, err, sizeof(err));
	assert_non_null(a);
	const struct ss_level *end = &a->device[0].usage.end;
	assert_int_equal(end->in_flight, 256); /* behind the live block nothing is searched */
	assert_int_equal(end->used, 256 + 4095);
	assert_int_equal(end->asked, 256 + 4095);
	ss_analysis_free(a);
}

/* ---- files that are cut, and damaged ------------------------------------ */

static uint8_t *read_all(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	uint8_t *data = malloc(*size);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static bool analyze(const char *path, const uint8_t *data, size_t size)
{
	const struct ss_analysis_config config = {.charts = true, .samples = 64};
	char err[512] = "";
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
	struct ss_analysis *a = ss_analysis_run(path, &config, err, sizeof(err));
	assert_true(a || err[0]);
	assert_null(strchr(err, '\n'));
	ss_analysis_free(a);
	return a != NULL;
}

/* A sanitizer makes each analysis slow. */
#ifdef __SANITIZE_ADDRESS__
#define CUT_STEP 13
#define DAMAGED 300
#else
#define CUT_STEP 1
#define DAMAGED 1500
#endif

/* Cut at every byte up to the last one that is not 0. */
static void test_cut(void **state)
{
	const char *good = path_in("parts"), *path = path_in("cut");
	size_t size, good_ones = 0;
	uint8_t *data = read_all(good, &size);

	while (size > 0 && data[size - 1] == 0)
		size--;
	for (size_t n = 0; n <= size; n += CUT_STEP)
		good_ones += analyze(path, data, n);
	assert_true(good_ones > size / CUT_STEP / 2);
	free(data);
}

/* ... and where no record is cut: only the header knows. */
static void test_cut_between_records(void **state)
{
	const char *good = path_in("parts"), *path = path_in("cut");
	size_t size, count;
	uint8_t *data = read_all(good, &size);
	const size_t header = ((const struct ss_trace_header *)data)->header_size;
	const size_t at[] = {header - 8, header,   65536,
			     header + 4, size - 8, header + SS_TRACE_BLOCK_SIZE - 4096};
	char err[512] = "";

	for (size_t i = 0; i <= sizeof(at) / sizeof(at[0]); i++) {
		bool whole = i == sizeof(at) / sizeof(at[0]);
		assert_true(analyze(path, data, whole ? size : at[i]));
		struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));
		const char *problem = ss_trace_reader_problem(r, &count);
		assert_int_equal(ss_trace_reader_process(r)->end,
				 whole ? SS_TRACE_END_CLOSED : SS_TRACE_END_CUT);
		assert_int_equal(count, !whole);
		assert_true(whole || strstr(problem, "cut off"));
		ss_trace_reader_close(r);
	}
	free(data);
}

/* Bytes that are changed at random. */
static void test_damaged(void **state)
{
	const char *good = path_in("parts"), *path = path_in("damaged");
	size_t size;
	uint8_t *data = read_all(good, &size);
	uint8_t *copy = malloc(size);

	while (size > 0 && data[size - 1] == 0)
		size--;
	for (int i = 0; i < DAMAGED; i++) {
		memcpy(copy, data, size);
		for (unsigned k = 0; k <= random_below(8); k++) {
			copy[random_below((unsigned)size)] = (uint8_t)(random_below(3) ?
									       random_below(256) :
									       0xff);
		}
		analyze(path, copy, size);
	}
	free(copy);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_parts), /* leaves a file for the tests below */
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_absurd),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_between_records),
		cmocka_unit_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

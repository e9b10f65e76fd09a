/* SPDX-License-Identifier: MIT */
/* The reader: files that are cut, damaged, foreign or newer. */
#include <pthread.h>

#include "trace_test.h"

static uint8_t *good; /* a whole file of two threads */
static size_t good_size;
static uint64_t good_events;
static unsigned seed;

#define EVENTS 50u

static void *other_thread(void *arg)
{
	for (uint64_t n = 0; n < EVENTS; n++)
		ss_trace_alloc(address(1, n), 1, 1, 0, POOL, STREAM, 0);
	return NULL;
}

static void record_small(void *path)
{
	pthread_t t;

	MUST(ss_trace_open(path, NULL));
	ss_trace_device(0, 0, 1, 0, 0, NULL, 1 << 30, "GPU");
	pthread_create(&t, NULL, other_thread, NULL);
	for (uint64_t n = 0; n < EVENTS; n++) {
		ss_trace_alloc(address(0, n), 1, 1, 0, POOL, STREAM, 0);
		ss_trace_free(address(0, n), 0, POOL, STREAM, 0);
	}
	pthread_join(t, NULL);
	ss_trace_close();
}

static int setup(void **state)
{
	if (make_dir(state) != 0 || in_child(record_small, (void *)path_in("good")) != 0)
		return -1;
	FILE *f = fopen(path_in("good"), "rb");
	fseek(f, 0, SEEK_END);
	good_size = (size_t)ftell(f);
	rewind(f);
	good = malloc(good_size);
	if (fread(good, 1, good_size, f) != good_size)
		return -1;
	fclose(f);
	good_events = 3 * EVENTS;
	return 0;
}

static int teardown(void **state)
{
	free(good);
	return remove_dir(state);
}

static const char *write_file(const char *name, const uint8_t *data, size_t size)
{
	const char *path = path_in(name);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
	return path;
}

struct result {
	bool opened;
	uint64_t events;
	size_t problems;
	char text[512]; /* the error, or the first problem */
};

/* Reads all that a file has. Whatever is in it, this returns. */
static struct result read_all(const char *path)
{
	struct result res = {0};
	struct ss_trace_item e;
	uint64_t last = 0;
	struct ss_trace_reader *r = ss_trace_reader_open(path, res.text, sizeof(res.text));

	if (!r) {
		assert_null(strchr(res.text, '\n'));
		return res;
	}
	res.opened = true;
	while (ss_trace_reader_next(r, &e)) {
		const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e.stack);
		for (uint32_t i = 0; s && i < s->frames; i++)
			ss_trace_reader_module_at(r, s->ip[i], e.time_ns);
		ss_trace_reader_pool(r, e.pool);
		ss_trace_reader_stream(r, e.stream);
		ss_trace_reader_device(r, e.device);
		assert_true(e.offset < ss_trace_reader_bytes(r));
		assert_true(res.events == 0 || e.real_ns >= last);
		last = e.real_ns;
		res.events++;
	}
	assert_int_equal(res.events, ss_trace_reader_events(r));
	const char *problem = ss_trace_reader_problem(r, &res.problems);
	if (problem) {
		snprintf(res.text, sizeof(res.text), "%s", problem);
		assert_null(strchr(res.text, '\n'));
		assert_non_null(strstr(res.text, "offset"));
	}
	ss_trace_reader_close(r);
	return res;
}

static void test_good(void **state)
{
	struct result r = read_all(path_in("good"));

	assert_true(r.opened && r.problems == 0);
	assert_int_equal(r.events, good_events);
}

/* How many bytes of a block are in use. */
static size_t used_of(size_t block)
{
	size_t end = block + SS_TRACE_BLOCK_SIZE;

	while (end > block && good[end - 1] == 0)
		end--;
	return end - block;
}

/* A sanitizer makes each reading slow. */
#ifdef __SANITIZE_ADDRESS__
#define CUT_STEP 7
#define DAMAGED 600
#else
#define CUT_STEP 1
#define DAMAGED 3000
#endif

static void test_truncated(void **state)
{
	size_t header = ((struct ss_trace_header *)good)->header_size;
	uint64_t last = 0;

	for (size_t block = header; block < good_size; block += SS_TRACE_BLOCK_SIZE) {
		size_t from = block == header ? 0 : block, to = block + used_of(block) + 40;
		for (size_t size = from; size < to && size < good_size; size += CUT_STEP) {
			struct result r = read_all(write_file("cut", good, size));
			if (size < sizeof(struct ss_trace_header)) {
				assert_false(r.opened);
				assert_non_null(strstr(r.text, "offset"));
				continue;
			}
			assert_true(r.opened);
			assert_true(r.events >= last && r.events <= good_events);
			last = r.events;
			if (size > block + sizeof(struct ss_trace_block) && size < to - 48)
				assert_int_equal(r.problems, 1);
		}
	}
	assert_int_equal(last, good_events);
}

static uint64_t next_random(void)
{
	static uint64_t x;

	x = (x ? x : seed * 2654435761ull + 1) * 6364136223846793005ull + 1442695040888963407ull;
	return x >> 24;
}

static void test_random_damage(void **state)
{
	uint8_t *bad = malloc(good_size);
	size_t header = ((struct ss_trace_header *)good)->header_size;

	for (int round = 0; round < DAMAGED; round++) {
		memcpy(bad, good, good_size);
		for (uint64_t n = next_random() % 8 + 1; n > 0; n--) {
			size_t block = next_random() % 3; /* the header, or one of two blocks */
			size_t at = block == 0 ? next_random() % sizeof(struct ss_trace_header) :
						 header + (block - 1) * SS_TRACE_BLOCK_SIZE +
							 next_random() % used_of(header);
			if (next_random() % 4)
				bad[at] = (uint8_t)next_random();
			else
				memset(bad + at, 0xff, 8);
		}
		read_all(write_file("bad", bad, good_size));
	}
	free(bad);
}

static void expect_refused(const uint8_t *data, size_t size, const char *offset)
{
	struct result r = read_all(write_file("refused", data, size));

	assert_false(r.opened);
	if (!strstr(r.text, offset))
		fail_msg("'%s' does not name %s", r.text, offset);
}

static void test_foreign(void **state)
{
	uint8_t *bad = malloc(good_size);
	struct ss_trace_header *h = (void *)bad;
	char err[256];
	const char *none = path_in("none");

	expect_refused((const uint8_t *)"", 0, "offset 0:");
	expect_refused((const uint8_t *)"Thread,Time,Action,Pointer,Size,Stream\n", 39,
		       "offset 0:");
	memcpy(bad, good, good_size);
	h->major++;
	expect_refused(bad, good_size, "offset 8:");
	memcpy(bad, good, good_size);
	h->endian = __builtin_bswap32(h->endian);
	expect_refused(bad, good_size, "offset 12:");
	memcpy(bad, good, good_size);
	h->header_size = 8;
	expect_refused(bad, good_size, "offset 16:");
	h->header_size = UINT32_MAX - 7;
	expect_refused(bad, good_size, "offset 16:");
	memcpy(bad, good, good_size);
	h->block_size = 0;
	expect_refused(bad, good_size, "offset 20:");
	assert_null(ss_trace_reader_open(none, err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
	none = dir;
	assert_null(ss_trace_reader_open(none, err, sizeof(err)));
	free(bad);
}

/* A later minor version: kinds of records that are not known, and known ones that are longer. */
static void test_newer(void **state)
{
	uint8_t *bad = malloc(good_size);
	struct ss_trace_header *h = (void *)bad;
	uint32_t frees = 0;

	memcpy(bad, good, good_size);
	h->minor++;
	uint8_t *block = bad + h->header_size;
	for (size_t at = sizeof(struct ss_trace_block); block[at];) {
		struct ss_trace_record *r = (void *)(block + at);
		at += r->words * 8u;
		if (r->kind == SS_TRACE_FREE) {
			r->kind = 200;
			frees++;
		} else if (r->kind == SS_TRACE_ALLOC) { /* takes the next record in */
			struct ss_trace_record *next = (void *)(block + at);
			if (next->kind == SS_TRACE_FREE) {
				r->words = (uint8_t)(r->words + next->words);
				at += next->words * 8u;
				frees++;
			}
		}
	}
	assert_int_equal(frees, EVENTS);
	struct result res = read_all(write_file("newer", bad, good_size));
	assert_true(res.opened && res.problems == 0);
	assert_int_equal(res.events, good_events - frees);
	free(bad);
}

static void record_texts(void *path)
{
	MUST(ss_trace_open(path, NULL));
	ss_trace_device(0, 0, 1, 0, 0, NULL, 1 << 30,
			"\x1b[1m \xc2\x9b"
			"1m\x7f \xc3\x9b\xc2\xa0");
	ss_trace_close();
}

/* Nothing that a terminal would obey: ESC, and U+009B, which is ESC [ in one. Letters stay. */
static void test_texts(void **state)
{
	const char *path = path_in("texts");

	assert_int_equal(in_child(record_texts, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	assert_string_equal(ss_trace_reader_device(r, 0)->name, "?[1m ??1m? \xc3\x9b\xc2\xa0");
	ss_trace_reader_close(r);
}

static void test_damage_is_named(void **state)
{
	uint8_t *bad = malloc(good_size);
	size_t header = ((struct ss_trace_header *)good)->header_size;
	char want[64];

	memcpy(bad, good, good_size);
	bad[header + sizeof(struct ss_trace_block) + 1] = 0; /* the length of the first record */
	struct result r = read_all(write_file("named", bad, good_size));
	snprintf(want, sizeof(want), "offset %zu:", header + sizeof(struct ss_trace_block));
	assert_true(r.opened && r.problems == 1 && r.events == EVENTS); /* of the other block */
	assert_non_null(strstr(r.text, want));
	free(bad);
}

/* The events of all threads come in the order of time, and so they do again after a rewind. */
static void test_order(void **state)
{
	struct ss_trace_reader *r = open_one(path_in("good"));
	struct ss_trace_item e;

	for (int round = 0; round < 2; round++) {
		uint64_t last = 0, events = 0;
		while (ss_trace_reader_next(r, &e)) {
			assert_true(e.time_ns >= last);
			last = e.time_ns;
			events++;
		}
		assert_int_equal(events, good_events);
		ss_trace_reader_rewind(r);
	}
	ss_trace_reader_close(r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_newer),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_damage_is_named),
		cmocka_unit_test(test_order),
	};

	seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)getpid();
	printf("seed %u\n", seed);
	return cmocka_run_group_tests(tests, setup, teardown);
}

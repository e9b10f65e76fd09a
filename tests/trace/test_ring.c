/* SPDX-License-Identifier: MIT */
/*
 * Rings: a recording that is a ring has, from its beginning on, the figures and the blocks of the
 * whole recording of the same events, however often its beginning moved, and never grows past its
 * bounds.
 */
#include <errno.h>
#include <pthread.h>

#include "cli/analysis/trace_memory.h"
#include "cli/ring/dump.h"
#include "cli/ring/fold.h"
#include "cli/ring/size.h"
#include "trace_test.h"

#define EVENTS 600000
#define ADDRESSES 3000
#define THREADS 3
#define RING ((uint64_t)SS_TRACE_RING_LEAST * SS_TRACE_BLOCK_SIZE)
#define MIB 1048576ull

static unsigned seed = 1;
static const char *ring_path; /* NULL: a whole recording */
static uint64_t largest;      /* bytes on the disk */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 2685821657736338717ull >> 16;
}

/* Different stacks. */
static __attribute__((noinline)) void one(uint64_t when, void *ptr, uint64_t size, void *pool)
{
	ss_trace_alloc_at(when, ptr, size, (size + 511) & ~511ull, 0, pool, STREAM, 0);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void other(uint64_t when, void *ptr, uint64_t size, void *pool)
{
	ss_trace_alloc_at(when, ptr, size, (size + 511) & ~511ull, 0, pool, STREAM, 0);
	__asm__ volatile("" ::: "memory");
}

static void fold(void)
{
	char err[512];
	struct stat st;

	if (!ring_path)
		return;
	for (;;) {
		enum ss_ring_result result = ss_ring_fold(ring_path, 0, err, sizeof(err));
		if (result == SS_RING_FAILED)
			fprintf(stderr, "%s\n", err);
		MUST(result != SS_RING_FAILED);
		MUST(stat(ring_path, &st) == 0);
		largest = (uint64_t)st.st_blocks * 512 > largest ? (uint64_t)st.st_blocks * 512 :
								   largest;
		if (result == SS_RING_IDLE)
			return;
	}
}

/* Writes events at fixed times, from threads that take turns. Some blocks live for the whole
 * time. */
struct turns {
	uint64_t random, begin;
	int state[ADDRESSES]; /* 0: free, 1: live, 2: in flight */
	int thread, n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static void step(struct turns *t)
{
	uint64_t r = next_random(&t->random), i = r % ADDRESSES,
		 when = t->begin + (uint64_t)t->n * 1000;
	void *ptr = (void *)(uintptr_t)(BASE + i * MIB),
	     *pool = (void *)(uintptr_t)(0x1000 + i % 2 * 0x1000);
	uint64_t size = 1 + (r >> 20) % (MIB - 1);

	if (i < 100 && t->state[i] == 1) /* lives until the end */
		return;
	if (i % 500 == 499) { /* a segment, which comes and goes */
		void *base = (void *)(uintptr_t)(BASE + (1ull << 40) + i * MIB);
		ss_trace_segment_at(when,
				    t->state[i] ? SS_TRACE_SEGMENT_FREE : SS_TRACE_SEGMENT_ALLOC,
				    base, i * 4096, 0, pool, 0);
		t->state[i] = !t->state[i];
	} else if (t->state[i] == 0) {
		(r >> 44 & 1 ? one : other)(when, ptr, size, pool);
		t->state[i] = 1;
	} else if (t->state[i] == 1) {
		ss_trace_free_at(when, ptr, 0, pool, STREAM, 0);
		t->state[i] = 2;
	} else {
		ss_trace_reusable_at(when, ptr, MIB, 0, pool);
		t->state[i] = 0;
	}
}

static void *run(void *arg)
{
	struct turns *t = arg;

	pthread_mutex_lock(&t->lock);
	int me = t->thread++;
	while (t->n < EVENTS) {
		if (t->n / 5000 % THREADS != me) {
			pthread_cond_wait(&t->changed, &t->lock);
			continue;
		}
		step(t);
		if (++t->n % 5000 == 0) {
			fold();
			pthread_cond_broadcast(&t->changed);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct job {
	const char *path;
	bool ring; /* and a dump of it, to path.dump */
	uint64_t begin;
};

static void record(void *arg)
{
	static struct turns t = {.lock = PTHREAD_MUTEX_INITIALIZER,
				 .changed = PTHREAD_COND_INITIALIZER};
	struct job *job = arg;
	pthread_t thread[THREADS];

	t.random = seed * 0x9e3779b97f4a7c15ull;
	t.begin = job->begin;
	ring_path = job->ring ? job->path : NULL;
	ss_trace_set_ring(job->ring ? RING : 0);
	MUST(ss_trace_open(job->path, NULL));
	ss_trace_device(0, 0, 1, 0, 0, NULL, 1ull << 40, "device");
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, run, &t) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (job->ring) {
		char to[512], err[512];
		snprintf(to, sizeof(to), "%s.dump", job->path);
		int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || !ss_ring_dump(job->path, fd, to, err, sizeof(err))) {
			fprintf(stderr, "%s: %s\n", to, fd < 0 ? strerror(errno) : err);
			_exit(1);
		}
		close(fd);
		/* The events of the program, and as much again at most for what is left of older
		 * ones. */
		MUST(largest <= 2 * RING + 65536);
		MUST(largest > RING / 4);
	}
	kill(getpid(), SIGKILL); /* as a program that is killed */
}

/* ---- comparison ------------------------------------------------------------ */

struct side {
	struct ss_trace_reader *reader;
	struct ss_sites sites;
	struct ss_trace_memory memory;
	struct ss_trace_item item;
	bool more;
};

static void open_side(struct side *s, const char *path)
{
	s->reader = open_one(path);
	assert_true(ss_sites_read(&s->sites, s->reader, NULL));
	assert_true(ss_trace_memory_init(&s->memory, s->reader, &s->sites, NULL, NULL));
	s->more = ss_trace_reader_next(s->reader, &s->item);
}

static void close_side(struct side *s)
{
	ss_trace_memory_finish(&s->memory);
	ss_sites_finish(&s->sites);
	ss_trace_reader_close(s->reader);
}

/* Applies all events up to a moment. */
static void go_to(struct side *s, uint64_t time_ns)
{
	while (s->more && s->item.time_ns <= time_ns) {
		assert_true(ss_trace_memory_apply(&s->memory, &s->item));
		s->more = ss_trace_reader_next(s->reader, &s->item);
	}
}

static const char *caller(const struct side *s, const struct ss_range *b)
{
	const struct ss_site *site = &s->sites.site[b->site];

	return site->frames ? s->sites.frame[site->frame[0]].function : "";
}

static void same_levels(const struct side *a, const struct side *b)
{
	assert_memory_equal(&a->memory.device[0], &b->memory.device[0],
			    sizeof(a->memory.device[0]));
	for (uint32_t pool = 1; pool < 4; pool++) {
		assert_memory_equal(&a->memory.pool[pool], &b->memory.pool[pool],
				    sizeof(a->memory.pool[pool]));
	}
}

/* All blocks and segments are the same, with who allocated them and when. */
static void same_ranges(const struct side *a, const struct side *b, const struct ss_ranges *x,
			const struct ss_ranges *y)
{
	struct ss_ranges_walk walk_x = {0}, walk_y = {0};
	const struct ss_range *p = ss_ranges_from(x, 0), *q = ss_ranges_from(y, 0);

	assert_int_equal(x->count, y->count);
	for (; p && q; p = ss_ranges_next(x, &walk_x, p), q = ss_ranges_next(y, &walk_y, q)) {
		assert_int_equal(p->base, q->base);
		assert_int_equal(p->size, q->size);
		assert_int_equal(p->asked, q->asked);
		assert_int_equal(p->pool, q->pool);
		assert_int_equal(p->freed, q->freed);
		if (x == &a->memory.blocks) {
			assert_int_equal(p->begin_ns, q->begin_ns);
			assert_string_equal(caller(a, p), caller(b, q));
		}
	}
}

static void same(const char *whole, const char *part, uint64_t least)
{
	struct side a, b;
	uint64_t events = 0, lived = 0, real = 0;

	open_side(&a, whole);
	open_side(&b, part);
	assert_true(b.more);
	assert_int_equal(ss_trace_reader_process(b.reader)->lost_events, 0);
	uint64_t begin = b.item.time_ns;
	while (b.more) {
		uint64_t now = b.item.time_ns;
		if (now < begin + 1000 && ss_trace_item_lived(&b.item))
			lived++;
		else
			real++;
		uint64_t last = now;
		go_to(&b, now);
		/* The base is as of the event before the beginning. */
		go_to(&a, last);
		same_levels(&a, &b);
		if (events++ % 5000 == 0 || !b.more) {
			same_ranges(&a, &b, &a.memory.blocks, &b.memory.blocks);
			same_ranges(&a, &b, &a.memory.mapped, &b.memory.mapped);
		}
	}
	assert_true(lived > 0);
	assert_true(real >= least);
	assert_false(a.more); /* the end is the same */
	assert_int_equal(b.memory.unknown_frees, 0);
	close_side(&a);
	close_side(&b);
}

static void test_same(void **state)
{
	/* Times that are over, as all events of a dump are. */
	struct job whole = {.path = path_in("whole"), .begin = 1 << 20};
	struct job ring = {.path = path_in("ring"), .ring = true, .begin = 1 << 20};
	char dumped[512];

	assert_true(WIFSIGNALED(in_child(record, &whole)));
	assert_true(WIFSIGNALED(in_child(record, &ring)));
	/* The ring that a killed program leaves, and what was dumped from it. */
	same(whole.path, ring.path, RING / 4 / 48);
	snprintf(dumped, sizeof(dumped), "%s.dump", ring.path);
	same(whole.path, dumped, RING / 4 / 48);
}

static void test_sizes(void **state)
{
	static const char *const bad[] = {"",     "10",    "0m",    "m",     "-1m",  "1x",
					  "1m,",  "1m,2m", "4M,4M", "1M",    "100G", "400d",
					  "nanm", "infs",  "0x10M", "1e99s", "10mm"};
	struct ss_ring_size s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ss_ring_size_parse(bad[i], &s))
			fail_msg("'%s' is taken", bad[i]);
	assert_true(ss_ring_size_parse("10m", &s));
	assert_int_equal(s.keep_ns, 600000000000);
	assert_int_equal(s.bytes, 1 << 30);
	assert_true(ss_ring_size_parse("512M", &s));
	assert_int_equal(s.keep_ns, 0);
	assert_int_equal(s.bytes, 512 << 20);
	assert_true(ss_ring_size_parse("2G,1.5h", &s));
	assert_int_equal(s.keep_ns, 5400000000000);
	assert_int_equal(s.bytes, 2ull << 30);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_sizes),
	};

	seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)getpid();
	printf("seed %u\n", seed);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

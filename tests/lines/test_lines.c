/* SPDX-License-Identifier: MIT */
/*
 * What two threads share that allocate and free on a stream each, as long as they hit:
 * nothing that one of them writes. So there is no lock that both take, no counter that
 * both count in, and no line of memory that goes to and fro between their processors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/core.h"
#include "driver/fake/fake.h"
#include "tests/lines/touch.h"

#define PAIRS 1000 /* in a pass */
#define ALONE 100  /* passes */
#define WARM 300
#define PASSES 60  /* then, of which */
#define HITS 20    /* consist of hits */
#define LIVE 48 /* blocks at once, per thread */

struct way {
	unsigned sizes;    /* how many different ones */
	unsigned bytes;    /* the largest */
	bool varied;       /* one block's size tells nothing of the next */
	bool level;        /* as many blocks are live all the time */
	unsigned forgiven; /* shared accesses per pass */
};

static struct ss_core *core;
static pthread_barrier_t barrier;
static const struct way *way;
static uint64_t shared;
static unsigned passes_of_hits;
static atomic_uint misses; /* of both, in this pass */
static atomic_uint looks;  /* frees that went the long way, of both, in this pass */
static __thread struct ss_timeline *stream;
static __thread int noted = -1; /* as whom the thread's accesses are noted; -1: they are not */

static int long_alloc(void **out, size_t size, void *native)
{
	misses++;
	return ss_alloc_async(core, ss_pool_default(core, 0), stream, size, out);
}

static int long_free(void *p, void *native)
{
	int who = noted, result;

	/* Now and then a free looks for idle memory, and may then take locks of the pool. */
	looks++;
	touch_end();
	result = ss_free_async(core, p, stream);
	if (who >= 0)
		touch_begin(who);
	return result;
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static void put(void **p, size_t size, void *native)
{
	if (*p && ss_hit_free(*p, native, core, long_free))
		abort();
	*p = NULL;
	if (size && ss_hit_alloc(p, size, native, core, long_alloc))
		abort();
}

/* The same over and over, as programs do. To `meet` is to have all that one needs at the
 * same time, so that there is enough for both. */
static void run(unsigned passes, void *native, bool meet)
{
	size_t unit = way->bytes / way->sizes;
	static __thread void *live[LIVE];

	while (passes--) {
		uint64_t seed = 1;

		for (unsigned i = 0; i < LIVE && !way->level; i++)
			put(&live[i], way->varied ? way->bytes : (i % way->sizes + 1) * unit,
			    native);
		if (meet)
			pthread_barrier_wait(&barrier);
		for (unsigned i = 0; i < PAIRS; i++) {
			unsigned slot = next(&seed) % LIVE;
			uint64_t n = way->varied ? next(&seed) : slot;

			put(&live[slot], (n % way->sizes + 1) * unit, native);
		}
		for (unsigned i = 0; i < LIVE && !way->level; i++)
			put(&live[i], 0, native);
	}
}

static void show(const struct touched *t)
{
	print_message("line %zx: reads %u and %u, writes %u and %u\n", (size_t)t->line, t->reads[0],
		      t->reads[1], t->writes[0], t->writes[1]);
}

struct side {
	int who;
	void *native;
	struct ss_timeline *tl;
};

static void *worker(void *arg)
{
	const struct side *side = arg;
	void *early[LIVE] = {NULL};

	/* One is there first, as the main thread is in programs, with much that lives on. */
	stream = side->tl;
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; side->who == turn && i < LIVE; i++)
			put(&early[i], way->bytes, side->native);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < LIVE; i++)
		put(&early[i], 0, side->native);
	run(ALONE, side->native, false); /* memory changes hands */
	pthread_barrier_wait(&barrier);
	run(WARM, side->native, true);
	for (unsigned i = 0; i < PASSES; i++) {
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			touch_reset();
			misses = looks = 0;
		}
		pthread_barrier_wait(&barrier);
		noted = side->who;
		touch_begin(noted);
		run(1, side->native, false);
		touch_end();
		noted = -1;
		if (pthread_barrier_wait(&barrier) != PTHREAD_BARRIER_SERIAL_THREAD || misses)
			continue;
		assert_in_range(looks, 0, PAIRS / 50);
		shared += touch_shared(show);
		passes_of_hits++;
	}
	return NULL;
}

/* What lies side by side. */
#define PIECE (512 << 10)
#define ROUNDS 50
static void *piece[2][2]; /* of each stream, at the end */

/* The pieces of one stream, then those of the other. Where they meet, both cut and merge. */
static void *neighbour(void *arg)
{
	const struct side *side = arg;
	void *mine[2] = {NULL};

	stream = side->tl;
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; side->who == turn && i < 2; i++)
			put(&mine[i], PIECE, side->native);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < 2 * ROUNDS; i++) {
		void *half = NULL;

		if (i == ROUNDS) {
			pthread_barrier_wait(&barrier);
			misses = 0;
			noted = side->who;
			touch_begin(noted);
		}
		for (int k = 0; k < 2; k++) {
			put(&mine[k], 0, side->native);
			put(&half, PIECE / 2, side->native);
			put(&mine[k], PIECE / 2, side->native);
			put(&half, 0, side->native);
			put(&mine[k], PIECE, side->native);
		}
	}
	touch_end();
	noted = -1;
	memcpy(piece[side->who], mine, sizeof(mine));
	return NULL;
}

static void run_two(void *(*body)(void *))
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){.idle = true});
	struct ss_driver driver = ss_fake_driver(fake);
	struct ss_options options;
	struct side side[2];
	pthread_t thread[2];
	char native[2];

	ss_options_read(&options, (char *[]){NULL}, NULL);
	core = ss_core_create(&driver, &options);
	assert_non_null(core);
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		side[i] = (struct side){
			i, &native[i],
			ss_timeline_add(core, 0, &native[i], SS_TL_NONBLOCKING, true)};
		assert_non_null(side[i].tl);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, body, &side[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ss_core_destroy(core);
	ss_fake_destroy(fake);
}

static void share(const struct way *w)
{
	way = w;
	shared = passes_of_hits = 0;
	run_two(worker);
	assert_in_range(passes_of_hits, HITS, PASSES);
	assert_in_range(shared, 0, w->forgiven * passes_of_hits);
}

/* Ranges of two streams that lie side by side. */
static void test_neighbours(void **state)
{
	touch_reset();
	run_two(neighbour);
	assert_ptr_equal((char *)piece[0][1] + PIECE, piece[1][0]);
	assert_int_equal(misses, 0);
	assert_int_equal(touch_shared(show), 0);
}

/* A few sizes. */
static void test_hits(void **state)
{
	share(&(struct way){.sizes = 4, .bytes = 1 << 20, .forgiven = 0});
}

/* Many: the streams divide what they have by themselves, too. (They may have parts of one
 * segment, whose tables by address they share: as chance divided the memory, up to 600
 * accesses of a pass's 2000 pairs were seen. One lock that both take would make 4000.) */
static void test_divided(void **state)
{
	share(&(struct way){.sizes = 40, .bytes = 4 << 20, .varied = true, .forgiven = 1000});
}

/* So many that none comes again before it is forgotten: all of it is divided that way. */
static void test_novel(void **state)
{
	share(&(struct way){.sizes = 4000, .bytes = 4 << 20, .varied = true, .forgiven = 1000});
}

/* A demand that neither grows nor goes is known after a while, too. */
static void test_level(void **state)
{
	share(&(struct way){
		.sizes = 40, .bytes = 4 << 20, .varied = true, .level = true, .forgiven = 1000});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours), cmocka_unit_test(test_hits),
		cmocka_unit_test(test_divided),    cmocka_unit_test(test_novel),
		cmocka_unit_test(test_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

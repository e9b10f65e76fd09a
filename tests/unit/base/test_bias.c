/* SPDX-License-Identifier: MIT */
/*
 * Tests the biased lock (core/base/lock.h): it has one holder at a time while it changes between an
 * owner and other threads, and when its owner ends, forks, or takes another lock inside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/lock.h"

#define OFTEN 200 /* uses in a row after which a lock without mistakes has an owner */

/* Data that a lock guards, accessed plainly. */
struct guarded {
	struct ss_bias lock;
	uint64_t n, twice;
	_Alignas(64) _Atomic uint64_t wrong;
};

static void use(struct guarded *g)
{
	uint64_t n = *(volatile uint64_t *)&g->n;

	if (*(volatile uint64_t *)&g->twice != 2 * n)
		atomic_fetch_add(&g->wrong, 1);
	*(volatile uint64_t *)&g->n = n + 1;
	*(volatile uint64_t *)&g->twice = 2 * (n + 1);
}

static void take(struct guarded *g)
{
	ss_bias_lock(&g->lock);
	use(g);
	ss_bias_unlock(&g->lock);
}

static void visit(struct guarded *g)
{
	ss_bias_visit(&g->lock);
	use(g);
	ss_bias_unlock(&g->lock);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool is_owner(const struct guarded *g, const struct ss_thread *t)
{
	return atomic_load(&g->lock.owner) == t;
}

/* ---- to and fro --------------------------------------------------------- */

#define STORM 4 /* threads */

static struct guarded storm[STORM];
static atomic_bool stop;

/* Uses its own lock all the time, and takes and visits those of others now and then. It resets the
 * count of mistakes, so that an owner that has lost its lock soon owns it again. */
static void *storm_thread(void *arg)
{
	struct guarded *own = arg;
	uint64_t *count = calloc(1, sizeof(*count));
	unsigned seed = (unsigned)(own - storm) + 1;

	ss_thread_record();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (int i = 0; i < 1000; i++, ++*count)
			take(own);
		seed = seed * 1103515245 + 12345;
		own = &storm[(own - storm + (seed >> 16 & 7 ? 0 : 1)) % STORM];
		ss_bias_lock(&storm[seed >> 20 & 3].lock);
		storm[seed >> 20 & 3].lock.mistakes = 0;
		use(&storm[seed >> 20 & 3]);
		ss_bias_unlock(&storm[seed >> 20 & 3].lock);
		visit(&storm[seed >> 22 & 3]);
		*count += 2;
	}
	return count;
}

static void test_storm(void **state)
{
	uint64_t sum = 0, taken = 0, before = ss_thread_barrier_count();
	pthread_t thread[STORM];
	double end = seconds() + 1;

	for (int i = 0; i < STORM; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, storm_thread, &storm[i]), 0);
	while (seconds() < end)
		usleep(1000);
	atomic_store(&stop, true);
	for (int i = 0; i < STORM; i++) {
		void *count;

		pthread_join(thread[i], &count);
		sum += *(uint64_t *)count;
		free(count);
	}
	for (int i = 0; i < STORM; i++) {
		taken += storm[i].n;
		assert_int_equal(storm[i].wrong, 0);
	}
	assert_int_equal(taken, sum);
	if (ss_thread_barriers())
		assert_true(ss_thread_barrier_count() - before > 10);
}

/* An owner, a thread that takes the lock from it as soon as it is the owner, and one that
 * visits. */
static struct guarded duel;
static atomic_bool duel_over;

static void *duel_owner(void *arg)
{
	struct ss_thread *me = ss_thread_record();

	while (!atomic_load_explicit(&duel_over, memory_order_relaxed)) {
		if (ss_bias_enter(&duel.lock, me)) {
			use(&duel);
			ss_bias_leave(me);
		} else {
			take(&duel);
		}
	}
	return NULL;
}

static void *duel_visitor(void *arg)
{
	while (!atomic_load_explicit(&duel_over, memory_order_relaxed))
		visit(&duel);
	return NULL;
}

static void test_duel(void **state)
{
	double end = seconds() + 1;
	pthread_t owner, visitor;

	assert_int_equal(pthread_create(&owner, NULL, duel_owner, NULL), 0);
	assert_int_equal(pthread_create(&visitor, NULL, duel_visitor, NULL), 0);
	while (seconds() < end) {
		for (int i = 0; i < 100000 && !atomic_load(&duel.lock.owner); i++)
			;
		ss_bias_lock(&duel.lock);
		/* Long enough for a second holder to be noticed. */
		for (int i = 0; i < 50; i++)
			use(&duel);
		duel.lock.mistakes = 0;
		ss_bias_unlock(&duel.lock);
	}
	atomic_store(&duel_over, true);
	pthread_join(owner, NULL);
	pthread_join(visitor, NULL);
	assert_int_equal(duel.wrong, 0);
}

/* ---- visits ------------------------------------------------------------- */

static struct guarded visited;
static atomic_int visits;

static void *visit_often(void *arg)
{
	for (int i = 0; i < 1000; i++)
		visit(&visited);
	atomic_store(&visits, 1);
	return NULL;
}

/* A visitor leaves the lock to its owner, whether the owner is inside or not, and does not become
 * the owner. */
static void test_visit(void **state)
{
	struct ss_thread *me = ss_thread_record();
	uint64_t n = OFTEN;
	pthread_t other;

	for (int i = 0; i < OFTEN; i++)
		take(&visited);
	assert_int_equal(pthread_create(&other, NULL, visit_often, NULL), 0);
	for (; !atomic_load(&visits); n++)
		take(&visited);
	pthread_join(other, NULL);
	if (ss_thread_barriers())
		assert_true(is_owner(&visited, me));
	assert_int_equal(visited.lock.mistakes, 0);
	assert_int_equal(visited.n, n + 1000);
	assert_int_equal(visited.wrong, 0);
	/* A visit to a lock without an owner leaves it without one. */
	visited.lock.owner = NULL;
	assert_int_equal(pthread_create(&other, NULL, visit_often, NULL), 0);
	pthread_join(other, NULL);
	assert_null(atomic_load(&visited.lock.owner));
}

/* ---- bounded ------------------------------------------------------------ */

static struct guarded shared;
static atomic_int turn;

static void *take_turns(void *arg)
{
	int mine = arg != NULL;

	for (int i = 0; i < 50; i++) {
		while (atomic_load(&turn) != mine)
			sched_yield();
		for (int k = 0; k < 1000; k++)
			take(&shared);
		atomic_store(&turn, !mine);
	}
	return NULL;
}

/* A lock that several threads really share soon has no owner. */
static void test_shared(void **state)
{
	uint64_t before = ss_thread_barrier_count();
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, take_turns, &shared), 0);
	take_turns(NULL);
	pthread_join(other, NULL);
	assert_int_equal(shared.n, 100000);
	assert_true(ss_thread_barrier_count() - before <= 3);
}

/* ---- owners that end ---------------------------------------------------- */

static struct guarded left;

static void *become_owner(void *arg)
{
	struct ss_thread *me = ss_thread_record();

	for (int i = 0; i < OFTEN; i++)
		take(&left);
	if (ss_thread_barriers())
		assert_true(is_owner(&left, me));
	return me;
}

static void *own_again(void *arg)
{
	struct ss_thread *me = ss_thread_record();
	bool mine = is_owner(&left, me);

	take(&left);
	return mine ? me : NULL;
}

static void test_ended(void **state)
{
	void *first, *second;
	pthread_t thread;

	/* The owner has ended, so the lock can be taken. */
	assert_int_equal(pthread_create(&thread, NULL, become_owner, NULL), 0);
	pthread_join(thread, &first);
	take(&left);
	assert_null(atomic_load(&left.lock.owner));
	left.lock.mistakes = 0;
	/* The next thread inherits the record, and with it the lock. */
	assert_int_equal(pthread_create(&thread, NULL, become_owner, NULL), 0);
	pthread_join(thread, &first);
	assert_int_equal(pthread_create(&thread, NULL, own_again, NULL), 0);
	pthread_join(thread, &second);
	visit(&left);
	assert_null(atomic_load(&left.lock.owner)); /* a thread that ended gets nothing back */
	if (ss_thread_barriers())
		assert_ptr_equal(first, second);
	take(&left);
	assert_int_equal(left.n, 2 * OFTEN + 4);
	assert_int_equal(left.wrong, 0);
}

/* ---- inside of another -------------------------------------------------- */

static void test_nested(void **state)
{
	static struct guarded a, b;
	struct ss_thread *me = ss_thread_record();

	for (int i = 0; i < OFTEN; i++) {
		take(&a);
		take(&b);
	}
	ss_bias_lock(&a.lock);
	take(&b);
	if (ss_thread_barriers())
		assert_ptr_equal(atomic_load(&me->inside), &a.lock);
	use(&a);
	ss_bias_unlock(&a.lock);
	assert_null(atomic_load(&me->inside));
	/* A signal handler finds the lock taken, and does not enter it. */
	ss_bias_lock(&a.lock);
	assert_false(ss_bias_enter(&a.lock, me));
	ss_bias_unlock(&a.lock);
}

/* A thread without a record (host memory was out) is never an owner. */
static void *nobody(void *arg)
{
	static struct guarded g;

	for (int i = 0; i < OFTEN; i++)
		take(&g);
	assert_ptr_equal(ss_thread, &ss_nobody);
	assert_null(atomic_load(&g.lock.owner));
	return NULL;
}

static void test_nobody(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, nobody, NULL), 0);
	pthread_join(thread, NULL);
}

/* ---- fork --------------------------------------------------------------- */

static struct guarded forked;

static void *take_once(void *arg)
{
	take(&forked);
	return NULL;
}

static void test_fork(void **state)
{
	int status = -1;
	pid_t pid;

	ss_thread_record();
	for (int i = 0; i < OFTEN; i++)
		take(&forked);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;

		for (int i = 0; i < OFTEN; i++)
			take(&forked);
		if (pthread_create(&thread, NULL, take_once, NULL))
			_exit(2);
		pthread_join(thread, NULL);
		take(&forked);
		_exit(forked.n == 2 * OFTEN + 2 && !forked.wrong ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),  cmocka_unit_test(test_duel),
		cmocka_unit_test(test_visit),  cmocka_unit_test(test_shared),
		cmocka_unit_test(test_ended),  cmocka_unit_test(test_nested),
		cmocka_unit_test(test_nobody), cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

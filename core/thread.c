/* SPDX-License-Identifier: MIT */
/*
 * Records of threads, and what a biased lock does when it is not its owner who comes
 * (core/lock.h says why that is right).
 *
 * Locks: `records`, a leaf, round the spare ones.
 */
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/lock.h"

#define BIAS_FIRST 64u      /* uses in a row that make an owner, */
#define BIAS_STEP 3         /* eight times as many after every mistake, */
#define BIAS_MOST 32768u    /* up to so many */

/* Inside of something, whatever that is: so it enters no lock without an exchange. And no
 * stream has this handle. */
struct ss_thread ss_nobody = { .inside = (struct ss_bias *)1, .native = &ss_nobody };
_Thread_local struct ss_thread *ss_thread __attribute__((tls_model("initial-exec"))) = &ss_nobody;

/* ---- barriers ----------------------------------------------------------- */

atomic_bool ss_thread_barrier_known;
static _Atomic uint64_t barrier_count;

/* When the library is loaded: in a process that has several threads by then, the kernel
 * takes ten milliseconds for it. */
static __attribute__((constructor)) void barriers_register(void)
{
#if !defined(__SANITIZE_THREAD__)
	atomic_store(&ss_thread_barrier_known, !syscall(SYS_membarrier,
					 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
#endif
}

uint64_t ss_thread_barrier_count(void)
{
	return atomic_load(&barrier_count);
}

void ss_thread_barrier(void)
{
	const struct timespec ample = { .tv_nsec = 10000000 };

	atomic_fetch_add(&barrier_count, 1);
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	/* Forbidden since (a seccomp filter): then no lock is biased any more. A store
	 * does not stay in its core for anything near this time, and so the last owners'
	 * are seen now. */
	atomic_store(&ss_thread_barrier_known, false);
	atomic_thread_fence(memory_order_seq_cst);
	nanosleep(&ample, NULL);
}

/* ---- records ------------------------------------------------------------ */

static pthread_mutex_t records = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ss_thread *spares;
static pthread_key_t key;
static bool have_key;

/* Later destructors of the thread may use HIP again: then it makes another record, and
 * this is called once more. */
static void ended(void *arg)
{
	struct ss_thread *t = arg;

	ss_thread = &ss_nobody;
	t->gen = t->free_gen = t->only_gen = 0;
	atomic_store_explicit(&t->over, true, memory_order_relaxed);
	pthread_mutex_lock(&records);
	t->spare = spares;
	spares = t;
	pthread_mutex_unlock(&records);
}

static void fork_begins(void)
{
	pthread_mutex_lock(&records);
}

static void fork_ends(void)
{
	pthread_mutex_unlock(&records);
}

static void fork_child(void)
{
	pthread_mutex_unlock(&records);
	barriers_register();
}

static void begin(void)
{
	have_key = !pthread_key_create(&key, ended);
	pthread_atfork(fork_begins, fork_ends, fork_child);
}

static __attribute__((noinline)) struct ss_thread *record_new(void)
{
	struct ss_thread *t;

	pthread_once(&once, begin);
	pthread_mutex_lock(&records);
	t = spares;
	if (t)
		spares = t->spare;
	pthread_mutex_unlock(&records);
	if (!t) {
		void *p;

		/* A line of its own, or two: it is written on every hit. */
		if (posix_memalign(&p, SS_LINES,
				   (sizeof(*t) + SS_LINES - 1) / SS_LINES * SS_LINES))
			return &ss_nobody;
		t = memset(p, 0, sizeof(*t));
	}
	/* Without a key the record stays with the thread for ever. */
	if (have_key && pthread_setspecific(key, t)) {
		ended(t);
		return &ss_nobody;
	}
	atomic_store_explicit(&t->over, false, memory_order_relaxed);
	ss_thread = t;
	return t;
}

struct ss_thread *ss_thread_record(void)
{
	return ss_thread != &ss_nobody ? ss_thread : record_new();
}

/* ---- biased locks ------------------------------------------------------- */

/* Nobody owns l from now on, and who did is not inside. l->s held. */
static __attribute__((noinline)) void unbias(struct ss_bias *l, struct ss_thread *owner)
{
	atomic_store(&l->owner, NULL);
	if (owner != ss_thread)
		ss_thread_barrier();
	for (unsigned i = 0; atomic_load_explicit(&owner->inside, memory_order_acquire) == l; i++)
		if (i >= 64)
			sched_yield();
}

void ss_bias_taken(struct ss_bias *l)
{
	struct ss_thread *owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

	if (__builtin_expect(owner != NULL, 0)) {
		unbias(l, owner);
		if (owner == ss_thread) { /* it came while somebody visited */
			l->back = owner;
		} else {
			l->mistakes += l->mistakes < 32;
			l->streak = 0;
		}
	}
	l->plain = true;
	if (l->last == ss_thread) {
		l->streak++;
	} else {
		l->last = ss_thread;
		l->streak = 0;
	}
}

void ss_bias_visit(struct ss_bias *l)
{
	struct ss_thread *owner;

	if (ss_bias_enter(l, ss_thread))
		return;
	ss_spin_lock(&l->s);
	owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	if (owner) {
		unbias(l, owner);
		/* Nobody waits for one who is gone. */
		l->back = atomic_load_explicit(&owner->over, memory_order_relaxed) ? NULL : owner;
	}
	l->plain = true;
}

static uint32_t enough(const struct ss_bias *l)
{
	uint32_t shift = l->mistakes * BIAS_STEP;

	return shift >= 9 ? BIAS_MOST : BIAS_FIRST << shift;
}

void ss_bias_unlock(struct ss_bias *l)
{
	struct ss_thread *owner;

	if (!l->plain) {
		ss_bias_leave(ss_thread);
		return;
	}
	owner = l->back;
	if (__builtin_expect(!owner && l->streak >= enough(l) && l->last == ss_thread, 0) &&
	    ss_thread != &ss_nobody && ss_thread_barriers()) {
		l->streak = 0;
		owner = ss_thread;
	}
	l->plain = false;
	if (owner) {
		l->back = NULL;
		/* The last that is done inside: it may enter before l->s is free. */
		atomic_store_explicit(&l->owner, owner, memory_order_release);
	}
	ss_spin_unlock(&l->s);
}

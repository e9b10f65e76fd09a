/* SPDX-License-Identifier: MIT */
/*
 * Records of threads, and the barrier that all threads of the process execute at once.
 *
 * Locks: `records`, a leaf, guards the spare records.
 */
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/lock.h"

/* Inside of something, whatever that is: so it enters no lock without an exchange. And no
 * stream has this handle. */
struct ss_thread ss_nobody = { .inside = (struct ss_bias *)1, .stream.native = &ss_nobody };
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
	t->stream.gen = t->stream.free_gen = t->classic.gen = t->classic.free_gen = 0;
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


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
#include <unistd.h>

#include "core/base/lock.h"

/* The record of threads without one. `inside` is not NULL, so such a thread enters every biased
 * lock by the exchange. No stream has this handle, so such a thread never hits. */
struct ss_thread ss_nobody = {.inside = (struct ss_bias *)1, .stream.native = &ss_nobody};
_Thread_local struct ss_thread *ss_thread __attribute__((tls_model("initial-exec"))) = &ss_nobody;

/* ---- barriers ----------------------------------------------------------- */

atomic_bool ss_thread_barrier_known;
static _Atomic uint64_t barrier_count;

/* Registers when the library is loaded: once the process has several threads, the kernel takes
 * ten milliseconds for a registration. */
static __attribute__((constructor)) void barriers_register(void)
{
#if !defined(__SANITIZE_THREAD__)
	atomic_store(&ss_thread_barrier_known,
		     !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
#endif
}

uint64_t ss_thread_barrier_count(void)
{
	return atomic_load(&barrier_count);
}

#define AMPLE_NS 10000000

void ss_thread_barrier(void)
{
	atomic_fetch_add(&barrier_count, 1);
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	/* A seccomp filter has forbidden the barrier since. No thread becomes an owner from now
	 * on. The stores of present owners are visible after the sleep, because no processor
	 * holds a store back for anything near that time. */
	atomic_store(&ss_thread_barrier_known, false);
	atomic_thread_fence(memory_order_seq_cst);
	ss_sleep_ns(AMPLE_NS);
}

/* ---- records ------------------------------------------------------------ */

static pthread_mutex_t records = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ss_thread *spares;
static pthread_key_t key;
static bool have_key;

/* Later destructors of the thread may use HIP again. Then the thread makes another record, and this
 * function is called once more. */
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

		/* Every hit writes to the record, so it must not share a cache line. */
		if (posix_memalign(&p, SS_LINES, (sizeof(*t) + SS_LINES - 1) / SS_LINES * SS_LINES))
			return &ss_nobody;
		t = memset(p, 0, sizeof(*t));
		/* No stream: a thread may ask before there is a core */
		t->stream.native = &ss_nobody;
	}
	/* Without a key no function is called when the thread ends, and the record is never
	 * reused. */
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

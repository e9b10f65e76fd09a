/* SPDX-License-Identifier: MIT */
/*
 * Writes trace files of which everything is known, for the tests of report and convert:
 *   make_trace known FILE            two devices, three pools, a leak, waste, a failure (see below)
 *   make_trace rank FILE BYTES       one block of so many bytes, in the rank of the environment
 *   make_trace sites FILE            call sites that differ in a line or in the depth of a
 *                                    recursion; a leak. With `killed' behind it the file is never
 *                                    closed
 *   make_trace many FILE [NUMBER]    420 call sites in six functions, through one wrapper, after
 *                                    NUMBER blocks of another call site
 *   make_trace random FILE EVENTS    a long one: four threads, many call stacks
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/writer.h"

#define NOINLINE __attribute__((noinline))
#define MIB ((uint64_t)1 << 20)
#define AT(base, mib) ((void *)(uintptr_t)((base) + (uint64_t)(mib) * MIB))
#define A 0x7f1000000000ull /* segments */
#define B 0x7f2000000000ull
#define C 0x7f3000000000ull
#define D 0x7f4000000000ull
#define DEFAULT_POOL ((void *)0x1000)
#define OTHER_POOL ((void *)0x2000)
#define SECOND_POOL ((void *)0x3000)
#define S1 ((void *)0x11000)
#define S2 ((void *)0x12000)
/* A call at the end of a function would replace its frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static NOINLINE void alloc(void *p, uint64_t size, uint64_t rounded, int device, void *pool,
			   void *stream)
{
	ss_trace_alloc(p, size, rounded, device, pool, stream, 0);
	KEEP_FRAME();
}

static NOINLINE void load_mesh(void)
{
	alloc(AT(A, 0), 10 * MIB, 10 * MIB, 0, DEFAULT_POOL, S1);
	KEEP_FRAME();
}

static NOINLINE void assemble(void)
{
	alloc(AT(A, 10), 20 * MIB - 100, 20 * MIB, 0, DEFAULT_POOL, S1);
	KEEP_FRAME();
}

static NOINLINE void smooth(void)
{
	for (int i = 0; i < 20; i++) {
		alloc(AT(A, 30), MIB, MIB, 0, DEFAULT_POOL, S1);
		ss_trace_free(AT(A, 30), 0, DEFAULT_POOL, S1, SS_TRACE_F_REUSABLE);
	}
}

static NOINLINE void write_output(void)
{
	ss_trace_segment(SS_TRACE_MAP, AT(B, 0), 48 * MIB, 0, DEFAULT_POOL, 0);
	alloc(AT(B, 0), 40 * MIB, 40 * MIB, 0, DEFAULT_POOL, S2);
	KEEP_FRAME();
}

static NOINLINE void solve(void)
{
	ss_trace_oom(SS_TRACE_OOM, 100 * MIB, MIB, 112 * MIB, 50 * MIB, 0, DEFAULT_POOL, S1);
	KEEP_FRAME();
}

/* The time really passes: Perfetto drops a wait that overlaps another one of its thread. */
static void wait_for(enum ss_trace_wait_cause cause, uint32_t milliseconds)
{
	struct timespec t = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&t, NULL);
	ss_trace_write_wait(cause, milliseconds * 1000000, 0, NULL);
}

static NOINLINE void cleanup(void)
{
	ss_trace_free(AT(B, 0), 0, DEFAULT_POOL, S2, SS_TRACE_F_REUSABLE);
	wait_for(SS_TRACE_WAIT_FREE, 5);
	wait_for(SS_TRACE_WAIT_DRIVER_MAP, 2);
	ss_trace_segment(SS_TRACE_UNMAP, AT(B, 0), 48 * MIB, 0, DEFAULT_POOL, 0);
	ss_trace_trim(SS_TRACE_TRIM_CALL, 48 * MIB, 64 * MIB, 0, DEFAULT_POOL);
}

static NOINLINE void exchange(void)
{
	alloc(AT(D, 0), 4 * MIB, 4 * MIB, 1, SECOND_POOL, NULL);
	KEEP_FRAME();
}

/*
 * The default pool has segment A of 64 MiB: the mesh (10) and the matrix (20, of which 100 bytes
 * are rounding). 20 times a block of 1 MiB comes and goes. The other pool has C of 16 MiB; its
 * block of 2 MiB stays in flight. When the matrix is freed on stream 1 (in flight), the output
 * on stream 2 needs 40 MiB and the pool grows by B of 48. That is the peak: used 10 + 40, in flight
 * 20 + 2, reserved 64 + 16 + 48. Then an allocation of 100 MiB fails, and B is given back.
 */
static NOINLINE void run_known(void)
{
	ss_trace_device(0, 0, 0xc1, 0, 0, NULL, 64ull << 30, "GPU A");
	ss_trace_device(1, 0, 0xc6, 0, 0, NULL, 64ull << 30, "GPU B");
	ss_trace_pool_create(DEFAULT_POOL, 0, "default");
	ss_trace_pool_create(OTHER_POOL, 0, "pool 3");
	ss_trace_pool_create(SECOND_POOL, 1, "default");
	ss_trace_stream(S1, 0, SS_TRACE_STREAM_NONBLOCKING);
	ss_trace_stream(S2, 0, SS_TRACE_STREAM_NONBLOCKING);
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(A, 0), 64 * MIB, 0, DEFAULT_POOL, 0);
	load_mesh();
	assemble();
	smooth();
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(C, 0), 16 * MIB, 0, OTHER_POOL, 0);
	alloc(AT(C, 0), 2 * MIB, 2 * MIB, 0, OTHER_POOL, S1);
	ss_trace_free(AT(C, 0), 0, OTHER_POOL, S1, 0);
	ss_trace_free(AT(A, 10), 0, DEFAULT_POOL, S1, 0);
	write_output();
	ss_trace_reusable(AT(A, 10), 20 * MIB, 0, DEFAULT_POOL);
	solve();
	cleanup();
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(D, 0), 8 * MIB, 1, SECOND_POOL, 0);
	exchange();
}

static NOINLINE void run_rank(uint64_t bytes)
{
	uint64_t segment = (bytes + 2 * MIB - 1) & ~(2 * MIB - 1);

	ss_trace_device(0, 0, 0xc1, 0, 0, NULL, 64ull << 30, "GPU A");
	ss_trace_pool_create(DEFAULT_POOL, 0, "default");
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(A, 0), segment, 0, DEFAULT_POOL, 0);
	alloc(AT(A, 0), bytes, bytes, 0, DEFAULT_POOL, NULL);
	ss_trace_free(AT(A, 0), 0, DEFAULT_POOL, NULL, SS_TRACE_F_REUSABLE);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- call sites ---------------------------------------------------------- */

static uint64_t wanted; /* the number of the command line; random: events of one thread */
static uint64_t next_block;

static NOINLINE void wrapper(uint64_t mib)
{
	alloc(AT(A, next_block), mib * MIB, mib * MIB, 0, DEFAULT_POOL, NULL);
	next_block += mib;
	KEEP_FRAME();
}

#include "invoke.h"

static NOINLINE void descend_and_allocate(int depth)
{
	if (depth)
		descend_and_allocate(depth - 1);
	else
		wrapper(1);
	KEEP_FRAME();
}

/* It begins 200 ms after everything else, and goes on for 320 ms. */
static NOINLINE void leak(void)
{
	uint64_t begin = now_ns() + 200000000;

	for (uint64_t i = 0; i < 40; i++) {
		ss_trace_alloc_at(begin + i * 8000000, AT(A, next_block), MIB, MIB, 0, DEFAULT_POOL,
				  NULL, 0);
		next_block++;
		KEEP_FRAME();
	}
}

static NOINLINE void run_sites(void)
{
	ss_trace_device(0, 0, 0xc1, 0, 0, NULL, 64ull << 30, "GPU A");
	ss_trace_pool_create(DEFAULT_POOL, 0, "default");
	ss_trace_pool_create(SECOND_POOL, 1, "default");
	/* The second device is used first. */
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(D, 0), 8 * MIB, 1, SECOND_POOL, 0);
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(A, 0), 512 * MIB, 0, DEFAULT_POOL, 0);
	wrapper(90); /* weights: larger than the leak, and there from the start */
	wrapper(2);
	invoke(wrapper, 3);
	descend_and_allocate(19);
	descend_and_allocate(20);
	leak();
}

/* ---- many ---------------------------------------------------------------- */

#define PATHS 70 /* call sites of each function */

static NOINLINE void take(uint64_t mib, void *stream)
{
	alloc(AT(A, next_block), mib * MIB, mib * MIB, 0, DEFAULT_POOL, stream);
	next_block += mib;
	KEEP_FRAME();
}

/* Six functions that each ask for blocks of their own size: 70 ways lead to each. */
#define FUNCTIONS(X) X(velocity, 1, S1) X(pressure, 1, S1) X(density, 2, S1) X(energy, 1, S2) X(halo, 1, S2) X(particles, 3, NULL)
#define DEFINE(name, mib, stream) static NOINLINE void name(void) { take(mib, stream); KEEP_FRAME(); }
FUNCTIONS(DEFINE)

/* The bits of `path` choose between two call sites in each frame. */
static NOINLINE void reach(void (*function)(void), int depth, unsigned path)
{
	if (depth == 0) {
		function();
		KEEP_FRAME();
	} else if (path & 1) {
		reach(function, depth - 1, path >> 1);
		KEEP_FRAME();
	} else {
		reach(function, depth - 1, path >> 1);
		__asm__ volatile("nop" ::: "memory");
	}
}

static NOINLINE void *reach_all(void *function)
{
	for (unsigned path = 0; path < PATHS; path++)
		reach((void (*)(void))(uintptr_t)function, 7, path);
	return NULL;
}

/* 630 MiB live at the end, 210 of them of `particles', which another thread takes. Then all blocks
 * of velocity are freed. */
static void run_many(void)
{
	pthread_t id;

	ss_trace_device(0, 0, 0xc1, 0, 0, NULL, 64ull << 30, "GPU A");
	ss_trace_pool_create(DEFAULT_POOL, 0, "default");
	ss_trace_stream(S1, 0, SS_TRACE_STREAM_NONBLOCKING);
	ss_trace_stream(S2, 0, SS_TRACE_STREAM_NONBLOCKING);
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, AT(A, 0), 1024 * MIB, 0, DEFAULT_POOL, 0);
#define ALL(name, mib, stream) \
	if (strcmp(#name, "particles") == 0 && pthread_create(&id, NULL, reach_all, (void *)(uintptr_t)name) == 0) { \
		pthread_join(id, NULL); \
	} else { \
		reach_all((void *)(uintptr_t)name); \
	}
	for (uint64_t i = 0; i < wanted; i++) {
		alloc(AT(A, 1000), 256, 256, 0, DEFAULT_POOL, S1);
		ss_trace_free(AT(A, 1000), 0, DEFAULT_POOL, S1, SS_TRACE_F_REUSABLE);
	}
	FUNCTIONS(ALL)
	for (unsigned i = 0; i < PATHS; i++)
		ss_trace_free(AT(A, i), 0, DEFAULT_POOL, S1, SS_TRACE_F_REUSABLE);
}

/* ---- random ------------------------------------------------------------- */

#define THREADS 4
#define SLOTS 2048      /* blocks that a thread has at once, at most */
#define SLOT (4 * MIB)  /* addresses of one of them */
#define DEPTH 10

struct thread {
	uint64_t base, events, state;
	uint64_t size[SLOTS]; /* 0: the slot is empty */
	int device;
	void *pool, *stream;
};

static uint64_t draw(struct thread *t, uint64_t below)
{
	t->state = t->state * 6364136223846793005ull + 1442695040888963407ull;
	return (t->state >> 33) % below;
}

static NOINLINE void step(struct thread *t)
{
	uint64_t slot = draw(t, SLOTS), size = 1 + draw(t, draw(t, 4) ? 65536 : SLOT);
	void *p = (void *)(uintptr_t)(t->base + slot * SLOT);

	if (!t->size[slot]) {
		t->size[slot] = (size + 511) & ~511ull;
		ss_trace_alloc(p, size, t->size[slot], t->device, t->pool, t->stream,
			       draw(t, 2) ? SS_TRACE_F_HIT : 0);
		t->events++;
		return;
	}
	ss_trace_free(p, t->device, t->pool, t->stream, 0);
	ss_trace_reusable(p, t->size[slot], t->device, t->pool);
	t->size[slot] = 0;
	t->events += 2;
}

/* The bits of `path` choose between two call sites in each frame. */
static NOINLINE void descend(struct thread *t, int depth, uint64_t path)
{
	if (depth == 0) {
		step(t);
	} else if (path & 1) {
		descend(t, depth - 1, path >> 1);
		KEEP_FRAME();
	} else {
		descend(t, depth - 1, path >> 1);
		__asm__ volatile("nop" ::: "memory");
	}
}

static void *random_thread(void *arg)
{
	struct thread *t = arg;

	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, (void *)(uintptr_t)t->base, SLOTS * SLOT,
			 t->device, t->pool, 0);
	while (t->events < wanted) {
		descend(t, DEPTH, draw(t, 1u << DEPTH));
		if (draw(t, 1000) == 0) {
			ss_trace_write_wait(SS_TRACE_WAIT_STREAM, draw(t, 100000), t->device,
					    t->stream);
		}
	}
	return NULL;
}

static void run_random(void)
{
	static struct thread thread[THREADS];
	pthread_t id[THREADS];

	for (uint64_t i = 0; i < THREADS; i++) {
		thread[i].base = A + i * SLOTS * SLOT;
		thread[i].state = i + 1;
		thread[i].device = (int)(i & 1);
		thread[i].pool = i & 1 ? SECOND_POOL : DEFAULT_POOL;
		/* Those of the second device each use their own hipStreamPerThread. */
		thread[i].stream = (void *)(i & 1 ? 2 : 0x20000 + i);
	}
	ss_trace_device(0, 0, 0xc1, 0, 0, NULL, 64ull << 30, "GPU A");
	ss_trace_device(1, 0, 0xc6, 0, 0, NULL, 64ull << 30, "GPU B");
	ss_trace_pool_create(DEFAULT_POOL, 0, "default");
	ss_trace_pool_create(SECOND_POOL, 1, "default");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&id[i], NULL, random_thread, &thread[i]) != 0)
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 3 || !ss_trace_open(argv[2], NULL)) {
		fprintf(stderr, "usage: make_trace known|rank|sites|many|random FILE [NUMBER]\n");
		return 2;
	}
	wanted = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	if (strcmp(argv[1], "known") == 0) {
		run_known();
	} else if (strcmp(argv[1], "rank") == 0) {
		run_rank(wanted);
	} else if (strcmp(argv[1], "sites") == 0) {
		run_sites();
	} else if (strcmp(argv[1], "many") == 0) {
		run_many();
	} else {
		wanted /= THREADS;
		run_random();
	}
	if (argc > 3 && strcmp(argv[3], "killed") == 0)
		raise(SIGKILL);
	ss_trace_close();
	return 0;
}

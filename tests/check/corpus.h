/* SPDX-License-Identifier: MIT */
/* What the programs of the corpus share. Each is a function, run in a process of its own. */
#ifndef TEST_CHECK_CORPUS_H
#define TEST_CHECK_CORPUS_H

#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) do { \
	hipError_t err_ = (call); \
	if (err_ != hipSuccess) { \
		fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, (int)err_); \
		exit(2); \
	} \
} while (0)

#define BYTES 4096

/* `expect` is what the checker has to say: the fault, the call of the use (or of the free, for
 * faults of a free), and the streams of both sides by their numbers, 0 for none; of a race those of
 * the later call and the earlier one. "possible" in
 * front of it: only with SOMASHIM_CHECK_POSSIBLE, without which nothing is said. Of overwritten
 * padding, the call of the allocation, the first bad byte and how many are bad. Of a write after a
 * free, the call and the stream of the free, the stream of the allocation, the first bad byte and
 * how many are bad. Of padding in front of a block "before" and how far the first bad byte is. Of a
 * fault the calls of the allocation and the free, and where. NULL: nothing. Behind a | is what is
 * different where all blocks are guarded and have padding in front. "-": it is not run, as nobody
 * knows what it writes to. A program that exits with 77 lacks a call in this release. There are two
 * devices. Streams are numbered in the order in which they appear, and the program makes `a`, `b`
 * and `c` first: they are 1, 2 and 3. */
struct program {
	const char *name;
	void (*run)(void);
	const char *expect;
};

extern const struct program wrong_programs[], wrong_kernels[], wrong_graphs[], wrong_memory[],
	wrong_guarded[], wrong_frees[], wrong_commands[], wrong_races[], wrong_marks[],
	wrong_unusual[], wrong_released[], wrong_told[];
extern const struct program right_programs[], right_kernels[], right_graphs[], right_memory[],
	right_guarded[], right_lives[], right_commands[], right_races[], right_marks[],
	right_unusual[], right_released[], right_told[];

/* A kernel of a module: "fill" takes a pointer and an int, and does nothing (kernels.c). */
hipFunction_t kernel(const char *name);

extern hipStream_t a, b, c;

/* main() frees it when the program has ended, and all that it enqueued. */
void keep(void *p);

/* Writes through an address that no argument shows (memory.c). */
void write_hidden(void *p, size_t bytes, hipStream_t on);
/* Uses after frees, each from other places (many.c). */
void many(unsigned allocations, unsigned uses);
/* random_memory.c */
void random_memory(uint64_t seed, const char *kind);

static inline void *block(hipStream_t on)
{
	void *p = NULL;

	OK(hipMallocAsync(&p, BYTES, on));
	return p;
}

static inline void fill(void *p, hipStream_t on)
{
	OK(hipMemsetAsync(p, 1, BYTES, on));
}

static inline hipEvent_t mark(hipStream_t on)
{
	hipEvent_t e;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipEventRecord(e, on));
	return e;
}

/* `later` waits for what is on `earlier` now. */
static inline void order(hipStream_t earlier, hipStream_t later)
{
	hipEvent_t e = mark(earlier);

	OK(hipStreamWaitEvent(later, e, 0));
	OK(hipEventDestroy(e));
}

/* The stream does nothing more until let_go() of the word. */
static inline unsigned *hold(hipStream_t on)
{
	unsigned *word;

	OK(hipHostMalloc((void **)&word, sizeof(*word), 0));
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	OK(hipStreamWaitValue32(on, word, 1, hipStreamWaitValueEq, ~0u));
	return word;
}

static inline void let_go(unsigned *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

/* A non-blocking stream of device 1. */
static inline hipStream_t stream_of_1(void)
{
	hipStream_t s;

	OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipSetDevice(0));
	return s;
}

#endif

/* SPDX-License-Identifier: MIT */
/* What the bench programs share: clocks, medians, and logs as loops. */
#ifndef SS_BENCH_H
#define SS_BENCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <hip/hip_runtime_api.h>

#define CHECK(call) do { \
	hipError_t err_ = (call); \
	if (__builtin_expect(err_ != hipSuccess, 0)) \
		die("%s: error %d", #call, (int)err_); \
} while (0)
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Callgrind finds a function by its name, so it must not be inlined or cloned. */
#ifdef __clang__
#define COUNTED __attribute__((noinline))
#else
#define COUNTED __attribute__((noipa))
#endif

double now_ns(void);
/* Processor time of this thread, so that other work on the machine does not count. */
double cpu_ns(void);
/* Sorts `v`. */
double median(double *v, size_t n);

/* A recorded allocation log as a loop that can be repeated: blocks that are live at its end are
 * freed there. `size` 0 is a free of the block in `slot`. */
struct op {
	uint32_t slot;
	uint64_t size;
};
struct trace {
	struct op *op;
	size_t count, pairs;
	uint32_t slots; /* blocks live at once */
};
/* Reads an RMM log, plain or .xz. Ends the program if it cannot. */
struct trace *trace_open(const char *path);
/* The most bytes that are live at once. */
uint64_t trace_peak(const struct trace *t);

/* umf.c, where UMF is installed: its disjoint pool. A failure ends the program. */
void umf_start(void);
void *umf_take(size_t size);
void umf_give(void *ptr);

/* A symbol of the process, such as somasim_call_count; NULL if there is none. */
void *symbol(const char *name);

#endif

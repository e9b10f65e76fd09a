/* SPDX-License-Identifier: MIT */
/*
 * Instructions of a pair, for bench/gate.sh under callgrind: gate LOG async|classic. One thread
 * replays the log on one stream. counted() runs twice: the log's first run, then
 * passes in steady state. Prints the pairs of both.
 */
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "bench/bench.h"

#define WARM_PASSES 3
#define WARM_PAIRS 100000 /* at least; short logs get more passes */
#define COUNTED_PAIRS 10000 /* at least, so that the count of a short log repeats */
#define ROOM (8ull << 30)   /* most bytes that one log may have live */

static hipStream_t stream;
static void **ptr;

typedef void body(const struct trace *t);

static void run_async(const struct trace *t)
{
	for (const struct op *o = t->op, *end = o + t->count; o < end; o++)
		if (o->size)
			CHECK(hipMallocAsync(&ptr[o->slot], o->size, stream));
		else
			CHECK(hipFreeAsync(ptr[o->slot], stream));
}

static void run_classic(const struct trace *t)
{
	for (const struct op *o = t->op, *end = o + t->count; o < end; o++)
		if (o->size)
			CHECK(hipMalloc(&ptr[o->slot], o->size));
		else
			CHECK(hipFree(ptr[o->slot]));
}

/* Callgrind counts inside this function and dumps at each return. */
COUNTED void counted(body *run, const struct trace *t, size_t passes);
COUNTED void counted(body *run, const struct trace *t, size_t passes)
{
	while (passes-- > 0)
		run(t);
}

/* Valgrind cannot map a device of any size, so the sizes of a large log are halved until it
 * fits. */
static void fit(struct trace *t)
{
	while (trace_peak(t) > ROOM)
		for (struct op *o = t->op; o < t->op + t->count; o++)
			if (o->size > 1)
				o->size /= 2;
}

int main(int argc, char **argv)
{
	body *run = run_classic;
	size_t passes, warm = 0;
	struct trace *t;
	void *p;

	if (argc != 3 || (strcmp(argv[2], "async") && strcmp(argv[2], "classic")))
		die("usage: gate LOG async|classic");
	t = trace_open(argv[1]);
	fit(t);
	ptr = calloc(t->slots, sizeof(*ptr));
	if (!ptr)
		die("out of memory");
	/* The start of the runtime is not part of the first run. */
	CHECK(hipMalloc(&p, 1));
	CHECK(hipFree(p));
	/* Without a stream the device has one timeline, so hipFree does not wait. */
	if (argv[2][0] == 'a') {
		run = run_async;
		CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	}
	CALLGRIND_START_INSTRUMENTATION;
	counted(run, t, 1);
	CALLGRIND_STOP_INSTRUMENTATION;
	while (++warm < WARM_PASSES || warm * t->pairs < WARM_PAIRS)
		run(t);
	passes = (COUNTED_PAIRS + t->pairs - 1) / t->pairs;
	CALLGRIND_START_INSTRUMENTATION;
	counted(run, t, passes);
	CALLGRIND_STOP_INSTRUMENTATION;
	printf("%zu %zu\n", t->pairs, passes * t->pairs);
	return 0;
}

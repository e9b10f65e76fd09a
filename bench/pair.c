/* SPDX-License-Identifier: MIT */
/*
 * Cost of an allocation and its free, for one recorded log that is repeated:
 * pair TRACE WHICH prints nanoseconds per pair for it and for mimalloc, medians of rounds
 * that take turns; pair TRACE WHICH N runs it N times inside counted() for callgrind.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define ROUNDS 31
#define WARM 400000 /* pairs before the measurement, which is of the steady state */

static void *(*mi_malloc)(size_t);
static void (*mi_free)(void *);
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

static void run_mimalloc(const struct trace *t)
{
	for (const struct op *o = t->op, *end = o + t->count; o < end; o++)
		if (o->size)
			ptr[o->slot] = mi_malloc((o->size + 4095) / 4096);
		else
			mi_free(ptr[o->slot]);
}

static const struct {
	const char *name;
	body *run;
} peers[] = {
	{"async", run_async},
	{"classic", run_classic},
	{"mimalloc", run_mimalloc},
};

/* Callgrind counts inside this function. */
COUNTED void counted(body *run, const struct trace *t, int n);
COUNTED void counted(body *run, const struct trace *t, int n)
{
	while (n-- > 0)
		run(t);
}

static body *peer(const char *name)
{
	for (size_t p = 0; p < sizeof(peers) / sizeof(peers[0]); p++)
		if (!strcmp(name, peers[p].name))
			return peers[p].run;
	die("unknown peer %s", name);
}

int main(int argc, char **argv)
{
	double ns[2][ROUNDS];
	body *run[2];
	struct trace *t;
	void *lib;

	if (argc != 3 && argc != 4)
		die("usage: pair TRACE async|classic|mimalloc [N]");
	t = trace_open(argv[1]);
	ptr = calloc(t->slots, sizeof(*ptr));
	/* Loaded, not linked, because it would become the malloc of the process. */
	lib = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		die("%s (install libmimalloc-dev)", dlerror());
	*(void **)&mi_malloc = dlsym(lib, "mi_malloc");
	*(void **)&mi_free = dlsym(lib, "mi_free");
	if (!mi_malloc || !mi_free)
		die("libmimalloc without mi_malloc");
	run[0] = peer(argv[2]);
	run[1] = run_mimalloc;
	/* Without a stream one timeline orders all work of the device. */
	if (run[0] == run_async)
		CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (size_t i = 0; i < WARM; i += t->pairs) {
		run[0](t);
		run[1](t);
	}
	if (argc == 4) {
		counted(run[0], t, atoi(argv[3]));
		printf("%zu\n", t->pairs * (size_t)atoi(argv[3]));
		return 0;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (int p = 0; p < 2; p++) {
			double start = cpu_ns();

			run[p](t);
			ns[p][r] = (cpu_ns() - start) / (double)t->pairs;
		}
	printf("ours %.1f\nmimalloc %.1f\n", median(ns[0], ROUNDS), median(ns[1], ROUNDS));
	return 0;
}

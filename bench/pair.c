/* SPDX-License-Identifier: MIT */
/*
 * What an allocation and its free cost, for one recorded log run over and over:
 * pair TRACE prints nanoseconds per pair, medians of interleaved rounds;
 * pair TRACE WHICH N runs one peer N times inside counted() for callgrind.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#define ROUNDS 31
#define WARM 4

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

static const struct { const char *name; body *run; } peers[] = {
	{"async", run_async}, {"classic", run_classic}, {"mimalloc", run_mimalloc},
};
#define PEERS (sizeof(peers) / sizeof(peers[0]))

/* Found by name: callgrind collects while it runs. */
__attribute__((noipa)) void counted(body *run, const struct trace *t, int n);
__attribute__((noipa)) void counted(body *run, const struct trace *t, int n)
{
	while (n-- > 0)
		run(t);
}

int main(int argc, char **argv)
{
	static double ns[PEERS][ROUNDS];
	double m[PEERS];
	struct trace *t;
	void *lib;

	if (argc != 2 && argc != 4)
		die("usage: pair TRACE [WHICH N]");
	t = trace_open(argv[1]);
	ptr = calloc(t->slots, sizeof(*ptr));
	/* Not linked: it would become the process's malloc. */
	lib = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		die("%s (install libmimalloc-dev)", dlerror());
	*(void **)&mi_malloc = dlsym(lib, "mi_malloc");
	*(void **)&mi_free = dlsym(lib, "mi_free");
	if (!mi_malloc || !mi_free)
		die("libmimalloc without mi_malloc");
	/* hipMalloc before there is a stream: one timeline orders the device. */
	run_classic(t);
	if (argc == 2 || strcmp(argv[2], "classic"))
		CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (size_t p = 0; p < PEERS; p++) {
		if (argc == 4 && strcmp(argv[2], peers[p].name))
			continue;
		for (int i = 0; i < WARM; i++)
			peers[p].run(t);
		if (argc == 2)
			continue;
		counted(peers[p].run, t, atoi(argv[3]));
		printf("%zu\n", t->pairs * (size_t)atoi(argv[3]));
		return 0;
	}
	if (argc == 4)
		die("unknown peer %s", argv[2]);
	for (int r = 0; r < ROUNDS; r++)
		for (size_t p = 0; p < PEERS; p++) {
			double start = now_ns();

			peers[p].run(t);
			ns[p][r] = (now_ns() - start) / (double)t->pairs;
		}
	for (size_t p = 0; p < PEERS; p++) {
		m[p] = median(ns[p], ROUNDS);
		printf("%s %.1f\n", peers[p].name, m[p]);
	}
	return 0;
}

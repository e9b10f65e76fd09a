/* SPDX-License-Identifier: MIT */
/*
 * Cost of an allocation and its free, for one recorded log that is repeated:
 * pair TRACE WHICH prints nanoseconds per pair for it and for its peers, mimalloc and, where it is
 * installed, UMF's disjoint pool: medians of rounds that take turns. pair TRACE WHICH N runs it N
 * times inside counted() for callgrind.
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

#ifdef SS_UMF
static void run_umf(const struct trace *t)
{
	for (const struct op *o = t->op, *end = o + t->count; o < end; o++)
		if (o->size)
			ptr[o->slot] = umf_take(o->size);
		else
			umf_give(ptr[o->slot]);
}
#endif

static const struct {
	const char *name;
	body *run;
} peers[] = {
	{"async", run_async},
	{"classic", run_classic},
	{"mimalloc", run_mimalloc},
#ifdef SS_UMF
	{"umf", run_umf},
#endif
};

#define PEERS (sizeof(peers) / sizeof(peers[0]))

/* Callgrind counts inside this function. */
COUNTED void counted(body *run, const struct trace *t, int n);
COUNTED void counted(body *run, const struct trace *t, int n)
{
	while (n-- > 0)
		run(t);
}

static body *peer(const char *name)
{
	for (size_t p = 0; p < PEERS; p++)
		if (!strcmp(name, peers[p].name))
			return peers[p].run;
	die("unknown peer %s", name);
}

int main(int argc, char **argv)
{
	double ns[PEERS - 1][ROUNDS];
	body *run[PEERS - 1];
	size_t count = PEERS - 1;
	struct trace *t;
	void *lib;

	if (argc != 3 && argc != 4)
		die("usage: pair TRACE async|classic|mimalloc|umf [N]");
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
	/* valgrind is not asked for UMF's addresses, unless that is what it counts. */
	if (argc == 4)
		count = 1;
	run[0] = peer(argv[2]);
#ifdef SS_UMF
	if (count > 1 || run[0] == run_umf)
		umf_start();
#endif
	for (size_t p = 2; p < PEERS; p++)
		run[p - 1] = peers[p].run;
	/* Without a stream one timeline orders all work of the device. */
	if (run[0] == run_async)
		CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (size_t i = 0; i < WARM; i += t->pairs)
		for (size_t p = 0; p < count; p++)
			run[p](t);
	if (argc == 4) {
		counted(run[0], t, atoi(argv[3]));
		printf("%zu\n", t->pairs * (size_t)atoi(argv[3]));
		return 0;
	}
	for (int r = 0; r < ROUNDS; r++)
		for (size_t p = 0; p < count; p++) {
			double start = cpu_ns();

			run[p](t);
			ns[p][r] = (cpu_ns() - start) / (double)t->pairs;
		}
	for (size_t p = 0; p < count; p++)
		printf("%s %.1f\n", p ? peers[p + 1].name : "ours", median(ns[p], ROUNDS));
	return 0;
}

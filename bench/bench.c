/* SPDX-License-Identifier: MIT */
/* Clocks, medians, and reading of logs, for all bench programs. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#include "bench/bench.h"
#include "cli/readers/rmm_csv.h"

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), ascending);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void *symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/* ---- logs --------------------------------------------------------------- */

/* A block that is live at this point of the log, found by its pointer. */
struct live {
	uint64_t pointer;
	uint32_t slot;
	UT_hash_handle hh;
};

static void add(struct trace *t, size_t *cap, uint32_t slot, uint64_t size)
{
	if (t->count == *cap) {
		*cap = *cap ? *cap * 2 : 4096;
		t->op = realloc(t->op, *cap * sizeof(*t->op));
		if (!t->op)
			die("out of memory");
	}
	t->op[t->count].slot = slot;
	t->op[t->count++].size = size;
	t->pairs += size == 0;
}

/* Ends the life of `l`. Its slot is the next to be used. */
static void end_life(struct trace *t, size_t *cap, struct live **live, struct live *l,
		     uint32_t *spare, size_t *spares)
{
	add(t, cap, l->slot, 0);
	spare[(*spares)++] = l->slot;
	HASH_DEL(*live, l);
	free(l);
}

struct trace *trace_open(const char *path)
{
	struct trace *t = calloc(1, sizeof(*t));
	struct live *live = NULL, *l, *next;
	uint32_t *spare = NULL;
	struct ss_rmm_entry e;
	size_t cap = 0, spares = 0;
	struct ss_input in;
	struct ss_rmm_reader *log = NULL;
	char err[256];
	int more;

	if (ss_input_open(&in, path, err, sizeof(err)))
		log = ss_rmm_open(&in, err, sizeof(err));
	if (!t || !log)
		die("%s: %s", path, err);
	while ((more = ss_rmm_next(log, &e, err, sizeof(err))) > 0) {
		if (e.is_free) {
			HASH_FIND(hh, live, &e.pointer, sizeof(e.pointer), l);
			if (l) /* otherwise it was allocated before the log began */
				end_life(t, &cap, &live, l, spare, &spares);
			continue;
		}
		if (!e.size)
			continue;
		l = calloc(1, sizeof(*l));
		if (!spares) {
			spare = realloc(spare, (t->slots + 1) * sizeof(*spare));
			if (spare)
				spare[spares++] = t->slots++;
		}
		if (!l || !spares)
			die("out of memory");
		l->pointer = e.pointer;
		l->slot = spare[--spares];
		HASH_ADD(hh, live, pointer, sizeof(l->pointer), l);
		add(t, &cap, l->slot, e.size);
	}
	if (more < 0)
		die("%s: %s", path, err);
	HASH_ITER(hh, live, l, next)
		end_life(t, &cap, &live, l, spare, &spares);
	ss_rmm_close(log);
	ss_input_close(&in);
	free(spare);
	if (!t->pairs)
		die("%s: no allocations", path);
	return t;
}

uint64_t trace_peak(const struct trace *t)
{
	uint64_t *size = calloc(t->slots, sizeof(*size)), used = 0, peak = 0;

	if (!size)
		die("out of memory");
	for (const struct op *o = t->op; o < t->op + t->count; o++) {
		used += o->size - size[o->slot];
		size[o->slot] = o->size;
		if (used > peak)
			peak = used;
	}
	free(size);
	return peak;
}

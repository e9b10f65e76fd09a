/* SPDX-License-Identifier: MIT */
/* Clocks, medians, and logs read into loops, for every bench program. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

struct live {
	uint64_t pointer;
	uint32_t slot;
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

struct trace *trace_open(const char *path)
{
	struct trace *t = calloc(1, sizeof(*t));
	struct live *live = NULL;
	struct ss_rmm_entry e;
	size_t cap = 0, n = 0, max = 0;
	struct ss_input in;
	struct ss_rmm_reader *log = NULL;
	char err[256];
	int more;

	if (ss_input_open(&in, path, err, sizeof(err)))
		log = ss_rmm_open(&in, err, sizeof(err));
	if (!t || !log)
		die("%s: %s", path, err);
	/* live[0..n) is in use, the slots behind it are spare. */
	while ((more = ss_rmm_next(log, &e, err, sizeof(err))) > 0) {
		size_t i;

		for (i = n; i-- > 0 && live[i].pointer != e.pointer;)
			;
		if (e.is_free) {
			struct live gone;

			if (i == (size_t)-1)
				continue; /* allocated before the log began */
			gone = live[i];
			add(t, &cap, gone.slot, 0);
			live[i] = live[--n];
			live[n] = gone;
			continue;
		}
		if (!e.size)
			continue;
		if (n == max) {
			max = max ? max * 2 : 256;
			live = realloc(live, max * sizeof(*live));
			if (!live)
				die("out of memory");
			for (size_t k = n; k < max; k++)
				live[k].slot = (uint32_t)k;
		}
		live[n].pointer = e.pointer;
		add(t, &cap, live[n++].slot, e.size);
		if (n > t->slots)
			t->slots = (uint32_t)n;
	}
	if (more < 0)
		die("%s: %s", path, err);
	while (n > 0)
		add(t, &cap, live[--n].slot, 0);
	ss_rmm_close(log);
	ss_input_close(&in);
	free(live);
	if (!t->pairs)
		die("%s: no allocations", path);
	return t;
}

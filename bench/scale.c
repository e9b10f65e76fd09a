/* SPDX-License-Identifier: MIT */
/*
 * Throughput of threads that have a stream each: scale TRACE prints the medians of
 * 2 threads over 2 processes, and of 32 threads over 2 threads, each run in a
 * process of its own; scale TRACE N is one such run and prints pairs per second.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"

#define ROUNDS 11
#define SECONDS 0.25
#define WARM 400000 /* pairs, as in pair.c */
#define MAX_THREADS 64

static const struct trace *trace;
static atomic_int ready, go;

static void *worker(void *arg)
{
	void **ptr = calloc(trace->slots, sizeof(*ptr));
	uint64_t *pairs = arg;
	hipStream_t stream;
	double end = 1e300; /* until it is known */

	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int r = -(int)(WARM / trace->pairs) - 1; r < 0 || now_ns() < end; r++) {
		if (r == 0) {
			ready++;
			while (!go)
				usleep(100);
			end = now_ns() + SECONDS * 1e9;
		}
		for (const struct op *o = trace->op; o < trace->op + trace->count; o++)
			if (o->size)
				CHECK(hipMallocAsync(&ptr[o->slot], o->size, stream));
			else
				CHECK(hipFreeAsync(ptr[o->slot], stream));
		*pairs += r >= 0 ? trace->pairs : 0;
	}
	return NULL;
}

static int run(int n)
{
	static struct { _Alignas(64) uint64_t pairs; } count[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	double sum = 0, start;

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, worker, &count[i]))
			die("no thread");
	while (ready < n)
		usleep(1000);
	start = now_ns();
	go = 1;
	for (int i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		sum += (double)count[i].pairs;
	}
	printf("%.0f\n", sum / (now_ns() - start) * 1e9);
	return 0;
}

/* `procs` runs at once, of `threads` each; their sum. */
static double measure(const char *self, const char *path, int procs, int threads)
{
	char line[4096];
	FILE *f[8];
	double sum = 0, x;

	snprintf(line, sizeof(line), "exec '%s' '%s' %d", self, path, threads);
	for (int i = 0; i < procs; i++)
		f[i] = popen(line, "r");
	for (int i = 0; i < procs; i++) {
		if (!f[i] || fscanf(f[i], "%lf", &x) != 1)
			die("a run failed");
		sum += x;
		pclose(f[i]);
	}
	return sum;
}

int main(int argc, char **argv)
{
	double two[ROUNDS], many[ROUNDS];

	if (argc == 3) {
		trace = trace_open(argv[1]);
		return run(atoi(argv[2]));
	}
	if (argc != 2)
		die("usage: scale TRACE [THREADS]");
	for (int r = 0; r < ROUNDS; r++) {
		double t = measure(argv[0], argv[1], 1, 2);

		two[r] = t / measure(argv[0], argv[1], 2, 1);
		many[r] = measure(argv[0], argv[1], 1, 32) / t;
	}
	printf("two %.3f\nmany %.3f\n", median(two, ROUNDS), median(many, ROUNDS));
	return 0;
}

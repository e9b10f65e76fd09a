/* SPDX-License-Identifier: MIT */
/*
 * Threads with a stream each allocate sizes that never repeat. Each stream reuses its own
 * memory and takes from the others what it lacks, while all of them run late. Its stream
 * stamps every block as a whole when it is handed out, and part of them is checked before
 * they are freed.
 *
 *   unique_sizes [SEED [THREADS [ROUNDS]]]
 */
#include <pthread.h>

#include "../random.h"
#include "test.h"

#define LIVE 24
#define MOST (640 << 10)

struct block {
	unsigned char *p;
	size_t size;
	int stamp;
};

static unsigned long long seed = 1;
static int rounds = 6000;

static uint64_t below(uint64_t *s, uint64_t n)
{
	return next_random(s) % n;
}

static void check(const struct block *b, hipStream_t s, unsigned char *got)
{
	OK(hipMemcpyAsync(got, b->p, b->size, hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	for (size_t i = 0; i < b->size; i++)
		if (got[i] != b->stamp) {
			fprintf(stderr, "seed %llu: %zu bytes at %p hold %u at %zu, not %d\n", seed,
				b->size, (void *)b->p, got[i], i, b->stamp);
			exit(1);
		}
}

static void *work(void *arg)
{
	uint64_t rng = seed * 1000 + (uintptr_t)arg;
	unsigned char *got = malloc(MOST);
	struct block block[LIVE];
	unsigned live = 0;
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int r = 0; r < rounds; r++) {
		/* Up to all of them and down to a few, as demand goes. */
		unsigned want = r / 64 % 2 ? 4 : LIVE;

		if (live < LIVE && (live < want || below(&rng, 2))) {
			struct block *b = &block[live++];

			b->size = 1 + below(&rng, below(&rng, 4) ? MOST / 8 : MOST);
			b->stamp = (int)(1 + below(&rng, 255));
			OK(hipMallocAsync(&p, b->size, s));
			b->p = p;
			OK(hipMemsetAsync(b->p, b->stamp, b->size, s));
		}
		if (live > want || (live && below(&rng, 2))) {
			struct block *b = &block[below(&rng, live)];

			if (below(&rng, 6) == 0)
				check(b, s, got);
			OK(hipFreeAsync(b->p, s));
			*b = block[--live];
		}
	}
	while (live) {
		check(&block[--live], s, got);
		OK(hipFreeAsync(block[live].p, s));
	}
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	free(got);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 4;
	pthread_t t[64];

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 3)
		rounds = atoi(argv[3]);
	CHECK(preloaded() && threads > 0 && threads <= 64);
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)(uintptr_t)i));
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("seed %llu: %d threads, none wrong\n", seed, threads);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Many threads, many streams, both kinds of memory. The device stamps every block when it
 * is handed out, and copies of the device are checked before it is freed, while streams
 * stop and go. A byte with two owners shows as a wrong stamp.
 *
 *   stress [seed [seeds [steps]]]     each seed is one replayable program
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "test.h"

#define THREADS 8
#define STREAMS 16
#define LIVE 12 /* per thread */
#define PAGE 4096

struct block {
	char *p;
	size_t size;
	uint32_t stamp;
	bool classic;
	hipStream_t last; /* the stream that its latest work is on */
	hipEvent_t done;  /* recorded there after it */
	bool has_event;
};

struct worker {
	pthread_t thread;
	uint64_t rng;
	int me, steps, wrong;
	uint64_t blocks, bytes;
};

static hipStream_t streams[STREAMS];
static uint64_t seed;

static uint64_t below(struct worker *w, uint64_t n)
{
	return next_random(&w->rng) % n;
}

/* Sizes as programs have them: many small, few large. */
static size_t size_of(struct worker *w)
{
	unsigned bits = (unsigned)below(w, 100);

	bits = bits < 60 ? 4 + (unsigned)below(w, 14) :
	       bits < 95 ? 18 + (unsigned)below(w, 5) :
			   23 + (unsigned)below(w, 3);
	return 1 + below(w, (uint64_t)1 << bits);
}

/* The first, the last and one page between. */
static int pages(const struct block *b, size_t at[3], size_t len[3])
{
	size_t n = 0;

	at[n] = 0;
	len[n++] = b->size < PAGE ? b->size : PAGE;
	if (b->size > PAGE) {
		at[n] = b->size - PAGE;
		len[n++] = PAGE;
	}
	if (b->size > 4 * PAGE) {
		at[n] = b->size / 2 & ~(size_t)3;
		len[n++] = PAGE;
	}
	return (int)n;
}

/* Puts the block's next work on s, behind what is on b->last. */
static void move_to(struct block *b, hipStream_t s)
{
	if (b->last != s && b->has_event)
		OK(hipStreamWaitEvent(s, b->done, 0));
	b->last = s;
}

static void mark(struct block *b)
{
	if (!b->done)
		OK(hipEventCreateWithFlags(&b->done, hipEventDisableTiming));
	OK(hipEventRecord(b->done, b->last));
	b->has_event = true;
}

static void put_stamp(struct block *b, hipStream_t s)
{
	size_t at[3], len[3];
	int n = pages(b, at, len);

	b->last = s;
	for (int i = 0; i < n; i++)
		OK(hipMemsetAsync(b->p + at[i], (int)(b->stamp & 255), len[i], s));
	mark(b);
}

static void check_stamp(struct worker *w, struct block *b, hipStream_t s)
{
	unsigned char got[3][PAGE];
	size_t at[3], len[3];
	int n = pages(b, at, len);

	move_to(b, s);
	for (int i = 0; i < n; i++)
		OK(hipMemcpyAsync(got[i], b->p + at[i], len[i], hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < len[i]; k++)
			if (got[i][k] != (b->stamp & 255)) {
				fprintf(stderr,
					"seed %llu: thread %d: block %p of %zu has %u at "
					"%zu, not %u\n",
					(unsigned long long)seed, w->me, (void *)b->p, b->size,
					got[i][k], at[i] + k, b->stamp & 255);
				w->wrong++;
				return;
			}
}

static void take(struct worker *w, struct block *b)
{
	hipStream_t s = streams[below(w, STREAMS)];
	void *p = NULL;
	hipError_t err;

	b->size = size_of(w);
	b->stamp = (uint32_t)(1 + below(w, 255));
	b->classic = below(w, 3) == 0;
	b->has_event = false;
	err = b->classic ? hipMalloc(&p, b->size) : hipMallocAsync(&p, b->size, s);
	if (err == hipErrorOutOfMemory)
		return;
	OK(err);
	b->p = p;
	w->blocks++;
	w->bytes += b->size;
	put_stamp(b, s);
}

static void give(struct worker *w, struct block *b)
{
	hipStream_t s = below(w, 2) ? b->last : streams[below(w, STREAMS)];

	if (below(w, 2))
		check_stamp(w, b, s);
	else
		move_to(b, s);
	if (b->classic ? below(w, 8) != 0 : below(w, 16) == 0)
		OK(hipFree(b->p));
	else
		OK(hipFreeAsync(b->p, s));
	b->p = NULL;
}

static void disturb(struct worker *w)
{
	hipStream_t s = streams[below(w, STREAMS)], t = streams[below(w, STREAMS)];
	struct timespec nap = {0, 100000};
	hipEvent_t e;

	switch (below(w, 6)) {
	case 0: OK(hipStreamSynchronize(s)); break;
	case 1: (void)hipStreamQuery(s); break;
	case 2:
		OK(hipEventCreate(&e));
		OK(hipEventRecord(e, s));
		OK(hipStreamWaitEvent(t, e, 0));
		OK(hipEventDestroy(e));
		break;
	case 3:
		/* Held for as long as a nap: nobody else waits for ever. */
		if (try_stall(s)) {
			nanosleep(&nap, NULL);
			release(s);
		}
		break;
	case 4:
		if (below(w, 10) == 0)
			OK(hipDeviceSynchronize());
		break;
	default:
		if (below(w, 10) == 0) {
			hipMemPool_t pool;

			OK(hipDeviceGetDefaultMemPool(&pool, 0));
			OK(hipMemPoolTrimTo(pool, 0));
		}
		break;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct block live[LIVE];

	memset(live, 0, sizeof(live));
	for (int i = 0; i < w->steps; i++) {
		struct block *b = &live[below(w, LIVE)];

		if (below(w, 8) == 0)
			disturb(w);
		else if (b->p)
			give(w, b);
		else
			take(w, b);
	}
	for (int i = 0; i < LIVE; i++) {
		if (live[i].p)
			give(w, &live[i]);
		if (live[i].done)
			OK(hipEventDestroy(live[i].done));
	}
	return NULL;
}

static int run(int steps)
{
	struct worker w[THREADS];
	uint64_t rng = seed, blocks = 0, bytes = 0;
	int wrong = 0;

	for (int i = 0; i < STREAMS; i++) /* the null stream, blocking and not */
		if (i == 0)
			streams[i] = NULL;
		else
			OK(hipStreamCreateWithFlags(&streams[i],
						    i < STREAMS / 2 ? hipStreamNonBlocking : 0));
	for (int i = 0; i < THREADS; i++) {
		memset(&w[i], 0, sizeof(w[i]));
		w[i].me = i;
		w[i].steps = steps;
		w[i].rng = next_random(&rng);
		CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		wrong += w[i].wrong;
		blocks += w[i].blocks;
		bytes += w[i].bytes;
	}
	for (int i = 1; i < STREAMS; i++)
		OK(hipStreamDestroy(streams[i]));
	if (wrong)
		fprintf(stderr, "seed %llu: %d of %llu blocks were not what was written\n",
			(unsigned long long)seed, wrong, (unsigned long long)blocks);
	else if (getenv("STRESS_VERBOSE"))
		printf("seed %llu: %llu blocks, %llu MiB\n", (unsigned long long)seed,
		       (unsigned long long)blocks, (unsigned long long)(bytes >> 20));
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) :
				    (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
	int seeds = argc > 2 ? atoi(argv[2]) : 1, steps = argc > 3 ? atoi(argv[3]) : 400;
	int bad = 0;

	CHECK(preloaded());
	printf("stress: seeds %llu to %llu, %d steps in each of %d threads\n",
	       (unsigned long long)first, (unsigned long long)(first + (uint64_t)seeds - 1), steps,
	       THREADS);
	fflush(stdout);
	for (seed = first; seed < first + (uint64_t)seeds; seed++)
		bad += run(steps) != 0;
	printf("stress: %d of %d seeds went wrong\n", bad, seeds);
	return bad != 0;
}

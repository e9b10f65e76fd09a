/* SPDX-License-Identifier: MIT */
/*
 * A random program whose kernels write what no call shows. All that it does is in order, by events
 * or by waits of the host, and within its blocks; at its end it makes one error, unless `kind` is
 * "legal": a write behind a block ("past"), or into one that was freed ("after"). It prints what
 * has to be found: the fault, the address and how many bytes.
 */
#include <inttypes.h>

#include "corpus.h"
#include "tests/random.h"

enum { STREAMS = 4, BLOCKS = 24, STEPS = 400 };

static struct {
	char *at; /* NULL: none */
	size_t size;
	int on; /* the stream of its last use; -1: the host has waited for it */
} blocks[BLOCKS];

static hipStream_t streams[STREAMS]; /* the first is the null stream, the second joins it */
static hipMemPool_t pool;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	return next_random(&state) % below;
}

static void pool_new(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};

	OK(hipMemPoolCreate(&pool, &props));
}

static void stream_new(int s)
{
	OK(hipStreamCreateWithFlags(&streams[s], s == 1 ? hipStreamDefault : hipStreamNonBlocking));
}

static void allocate(int k)
{
	int s = (int)draw(STREAMS);
	void *p;

	blocks[k].size = 1 + draw(draw(8) ? 40000 : 600000);
	blocks[k].on = s;
	if (draw(5) == 0) {
		OK(hipMalloc(&p, blocks[k].size));
		blocks[k].on = -1;
	} else if (draw(3) == 0) {
		OK(hipMallocFromPoolAsync(&p, blocks[k].size, pool, streams[s]));
	} else {
		OK(hipMallocAsync(&p, blocks[k].size, streams[s]));
	}
	blocks[k].at = p;
}

/* What comes on stream s is after all that was done with the block. */
static void bring_to(int k, int s)
{
	int from = blocks[k].on;

	if (from >= 0 && from != s) {
		if (draw(6) == 0)
			OK(hipStreamSynchronize(streams[from]));
		else
			order(streams[from], streams[s]);
	}
	blocks[k].on = s;
}

static void write_inside(int k)
{
	size_t first = draw(blocks[k].size), most = blocks[k].size - first;
	int s = (int)draw(STREAMS);

	bring_to(k, s);
	write_hidden(blocks[k].at + first, draw(2) ? most : 1 + draw(most), streams[s]);
}

/* Returns the stream; -1: hipFree, which waits. */
static int release(int k)
{
	int s = draw(6) ? (int)draw(STREAMS) : -1;

	if (s >= 0) {
		bring_to(k, s);
		OK(hipFreeAsync(blocks[k].at, streams[s]));
	} else {
		OK(hipFree(blocks[k].at));
	}
	blocks[k].at = NULL;
	return s;
}

static void replace_stream(int s)
{
	OK(hipStreamSynchronize(streams[s]));
	for (int k = 0; k < BLOCKS; k++)
		if (blocks[k].on == s)
			blocks[k].on = -1;
	OK(hipStreamDestroy(streams[s]));
	stream_new(s);
}

static void step(void)
{
	int k = (int)draw(BLOCKS);

	switch (draw(60)) {
	case 0: replace_stream(1 + (int)draw(STREAMS - 1)); return;
	case 1:
		OK(hipMemPoolDestroy(pool));
		pool_new();
		return;
	case 2: OK(hipDeviceSynchronize()); return;
	case 3: OK(hipMemPoolTrimTo(pool, 0)); return;
	default: break;
	}
	if (!blocks[k].at)
		allocate(k);
	else if (draw(3))
		write_inside(k);
	else
		(void)release(k);
}

static void expect(const char *fault, const char *at, uint64_t bytes)
{
	printf("%s %" PRIuPTR " %" PRIu64 "\n", fault, (uintptr_t)at, bytes);
}

static void error(const char *kind)
{
	uint64_t first, bytes;
	char *at;
	int k = 0, s;

	while (!blocks[k].at || blocks[k].size > 40000)
		if (++k == BLOCKS) {
			k = 0;
			step();
		}
	at = blocks[k].at;
	s = (int)draw(STREAMS);
	if (!strcmp(kind, "past")) {
		first = blocks[k].size + draw(200);
		bytes = 1 + draw(56);
		bring_to(k, s);
		write_hidden(at + first, bytes, streams[s]);
		(void)release(k);
		expect("overwritten-padding", at + first, bytes);
	} else if (!strcmp(kind, "before")) {
		first = 1 + draw(200);
		bytes = 1 + draw(first);
		bring_to(k, s);
		write_hidden(at - first, bytes, streams[s]);
		(void)release(k);
		expect("overwritten-padding", at - first, bytes);
	} else {
		first = draw(blocks[k].size);
		bytes = 1 + draw(blocks[k].size - first);
		blocks[k].on = release(k);
		bring_to(k, s);
		write_hidden(at + first, bytes, streams[s]);
		blocks[k].on = -1;
		expect("write-after-free", at + first, bytes);
	}
}

void random_memory(uint64_t seed, const char *kind)
{
	state = seed;
	pool_new();
	for (int s = 1; s < STREAMS; s++)
		stream_new(s);
	for (int i = 0; i < STEPS; i++)
		step();
	if (strcmp(kind, "legal"))
		error(kind);
	for (int k = 0; k < BLOCKS; k++)
		if (blocks[k].at)
			(void)release(k);
	OK(hipDeviceSynchronize());
}

/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake on any device, without kernels of its own: how much memory the device has back, by
 * its own figure, and whether every byte is there afterwards.
 *
 *   shim_sleep_device SOMASHIM SLEEPS MIB
 *
 * SLEEPS sleeps of a process that holds about MIB MiB. Naps and `--hold' take turns; calls of all
 * kinds and `somashim wake' wake it. The last line that it prints is the result.
 */
#include "sleep.h"

#define BLOCKS 9
#define SPREAD (2 * MIB) /* other memory that the runtime may take or release meanwhile */

static struct {
	unsigned char *p;
	size_t size;
	uint32_t seed;
	bool classic;
} blocks[BLOCKS];
static uint64_t wrong; /* bytes */
static unsigned char *host, *want;
static size_t largest;

/* The bytes of a block; an odd seed: what a memset makes. */
static void bytes_of(int i)
{
	if (blocks[i].seed % 2)
		memset(want, (int)(blocks[i].seed & 255), blocks[i].size);
	else
		pattern((uint32_t *)want, blocks[i].size / 4, blocks[i].seed);
}

static void write_block(int i, uint32_t seed)
{
	blocks[i].seed = seed;
	bytes_of(i);
	if (seed % 2)
		OK(hipMemsetAsync(blocks[i].p, (int)(seed & 255), blocks[i].size, stream));
	else
		OK(hipMemcpyAsync(blocks[i].p, want, blocks[i].size, hipMemcpyHostToDevice,
				  stream));
	OK(hipStreamSynchronize(stream));
}

static void take_block(int i, uint32_t seed)
{
	if (blocks[i].classic)
		OK(hipMalloc((void **)&blocks[i].p, blocks[i].size));
	else
		OK(hipMallocAsync((void **)&blocks[i].p, blocks[i].size, stream));
	write_block(i, seed);
}

static void free_block(int i)
{
	if (blocks[i].classic)
		OK(hipFree(blocks[i].p));
	else
		OK(hipFreeAsync(blocks[i].p, stream));
}

static void check_blocks(int after)
{
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t bad = 0;

		bytes_of(i);
		OK(hipMemcpyAsync(host, blocks[i].p, blocks[i].size, hipMemcpyDeviceToHost,
				  stream));
		OK(hipStreamSynchronize(stream));
		for (size_t at = 0; at < blocks[i].size; at++)
			bad += host[at] != want[at];
		if (bad)
			fprintf(stderr, "after sleep %d: %llu wrong bytes of %zu in block %d\n",
				after, (unsigned long long)bad, blocks[i].size, i);
		wrong += bad;
	}
}

static void make_blocks(size_t mib)
{
	const char *sleeps = getenv("SOMASHIM_SLEEP");
	bool all = sleeps && !strcmp(sleeps, "all");

	/* 0.5, 0.25 and so on of the size, and small blocks. */
	for (int i = 0; i < BLOCKS; i++) {
		size_t size = (mib * MIB) >> (i + 1);

		blocks[i].size = i < 5  ? size :
				 i == 5 ? MIB + 512 :
				 i == 6 ? 65536 :
				 i == 7 ? 4096 :
					  64;
		blocks[i].classic = all && i % 2;
		largest = blocks[i].size > largest ? blocks[i].size : largest;
	}
	host = malloc(largest);
	want = malloc(largest);
	CHECK(host && want);
	for (int i = 0; i < BLOCKS; i++)
		take_block(i, 2 * (uint32_t)i + (i == 1 || i == 7));
}

/* ---- a graph ------------------------------------------------------------------------------- */

/* It was captured before the first sleep, and is launched after each: copies of all kinds and a
 * memset. The runtime may have kept its own record of the memory that was mapped then. */
#define PART 4096
static struct {
	hipGraphExec_t exec;
	unsigned char *from, *to, *fill; /* in different blocks of device memory */
	unsigned char *in, *out;         /* pinned: PART, and three of PART */
} graph;

static void graph_make(void)
{
	hipGraph_t captured;

	OK(hipMallocAsync((void **)&graph.from, PART, stream));
	OK(hipMallocAsync((void **)&graph.to, 2 * MIB, stream));
	OK(hipMallocAsync((void **)&graph.fill, PART, stream));
	OK(hipHostMalloc((void **)&graph.in, 4 * PART, 0));
	graph.out = graph.in + PART;
	OK(hipStreamSynchronize(stream));
	OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
	OK(hipMemcpyAsync(graph.from, graph.in, PART, hipMemcpyHostToDevice, stream));
	OK(hipMemcpyAsync(graph.to + MIB, graph.from, PART, hipMemcpyDeviceToDevice, stream));
	OK(hipMemsetAsync(graph.fill, 0x5a, PART, stream));
	OK(hipMemcpyAsync(graph.out, graph.from, PART, hipMemcpyDeviceToHost, stream));
	OK(hipMemcpyAsync(graph.out + PART, graph.to + MIB, PART, hipMemcpyDeviceToHost, stream));
	OK(hipMemcpyAsync(graph.out + 2 * PART, graph.fill, PART, hipMemcpyDeviceToHost, stream));
	OK(hipStreamEndCapture(stream, &captured));
	OK(hipGraphInstantiate(&graph.exec, captured, NULL, NULL, 0));
	OK(hipGraphDestroy(captured));
}

static void graph_check(int after)
{
	uint64_t bad = 0;

	pattern((uint32_t *)graph.in, PART / 4, (uint32_t)after);
	memset(graph.out, 0, 3 * PART);
	OK(hipMemsetAsync(graph.fill, 0, PART, stream));
	OK(hipGraphLaunch(graph.exec, stream));
	OK(hipStreamSynchronize(stream));
	for (size_t at = 0; at < PART; at++)
		bad += (graph.out[at] != graph.in[at]) + (graph.out[PART + at] != graph.in[at]) +
		       (graph.out[2 * PART + at] != 0x5a);
	if (bad)
		fprintf(stderr, "after sleep %d: %llu wrong bytes by the graph\n", after,
			(unsigned long long)bad);
	wrong += bad;
}

/* ---- sleeps ------------------------------------------------------------------------------- */

static atomic_int entered, returned;

static void *held_call(void *arg)
{
	(void)arg;
	atomic_store(&entered, 1);
	OK(hipMemcpy(host, blocks[8].p, blocks[8].size, hipMemcpyDeviceToHost));
	atomic_store(&returned, 1);
	return NULL;
}

/* A call that needs the device waits until `somashim wake'. */
static void wake_held(void)
{
	pthread_t thread;

	atomic_store(&entered, 0);
	atomic_store(&returned, 0);
	CHECK(!pthread_create(&thread, NULL, held_call, NULL));
	while (!atomic_load(&entered))
		usleep(1000);
	usleep(20000);
	CHECK(!atomic_load(&returned) && state_now() == SS_LIVE_ASLEEP);
	COMMAND(0, "wake", own_pid());
	pthread_join(thread, NULL);
}

/* Each of these wakes a nap. */
static void wake_by_call(int n)
{
	void *fresh;

	switch (n % 5) {
	case 0: return check_blocks(n);
	case 4: return graph_check(n);
	case 1: return write_block(3, 2 * (uint32_t)n + 101); /* a memset */
	case 2:
		OK(hipMallocAsync(&fresh, 2 * largest, stream)); /* has to map */
		OK(hipFreeAsync(fresh, stream));
		return;
	default: COMMAND(0, "wake", own_pid());
	}
}

static struct ss_live_slept answer(void)
{
	(void)atomic_load(&page_of_ours()->sleep.done); /* it is stored after the answer */
	return page_of_ours()->sleep.slept;
}

static void settle(void)
{
	hipMemPool_t pool;

	OK(hipDeviceSynchronize());
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
}

int main(int argc, char **argv)
{
	uint64_t gone = 0, back = 0, told = 0, awake = 0, asleep = 0, first = 0, sleep_ms = 0;
	size_t info[2], total;
	double wake_ms = 0;
	int sleeps;

	if (argc != 4)
		return 9;
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* said even if the runtime crashes at exit */
	sleep_begin(argv[1]);
	sleeps = atoi(argv[2]);
	make_blocks((size_t)atoi(argv[3]));
	graph_make();
	graph_check(-1);
	if (!atomic_load(&page_of_ours()->sleep.able)) {
		printf("cannot sleep: %s\n", page_of_ours()->sleep.unable);
		return SKIP;
	}
	for (int i = 0; i < sleeps; i++) {
		bool hold = i % 2;
		double before;

		settle();
		OK(hipMemGetInfo(&info[0], &total));
		awake = device_free(0);
		first = i ? first : awake;
		if (hold)
			COMMAND(0, "sleep", "--hold", own_pid());
		else
			COMMAND(0, "sleep", own_pid());
		if (!i)
			printf("%s", said);
		CHECK(state_now() == SS_LIVE_ASLEEP);
		asleep = device_free(0);
		gone += answer().gone + answer().idle;
		told += answer().seen;
		back += asleep > awake ? asleep - awake : 0;
		sleep_ms += answer().sleep_ms;
		/* The process may take it again, so it is not free for the program. */
		OK(hipMemGetInfo(&info[1], &total));
		CHECK(info[1] < info[0] + SPREAD && state_now() == SS_LIVE_ASLEEP);
		before = now_ms();
		if (hold)
			wake_held();
		else
			wake_by_call(i / 2);
		wake_ms += now_ms() - before;
		CHECK(state_now() == SS_LIVE_AWAKE);
		check_blocks(i);
		graph_check(i);
		free_block(i % BLOCKS);
		take_block(i % BLOCKS, 1000 + 7 * (uint32_t)i);
	}
	settle();
	check_blocks(sleeps);
	printf("free before, asleep, after: %.1f, %.1f, %.1f MiB\n", (double)first / MIB,
	       (double)asleep / MIB, (double)device_free(0) / MIB);
	printf("result: %d sleeps, %.3f of %.1f MiB came back (by the answers %.3f), %llu wrong "
	       "bytes, "
	       "%.0f ms to sleep, %.0f to wake\n",
	       sleeps, (double)back / (double)gone, (double)gone / sleeps / MIB,
	       (double)told / (double)gone, (unsigned long long)wrong, (double)sleep_ms / sleeps,
	       wake_ms / sleeps);
	CHECK(!wrong && back * 100 >= gone * 99);
	/* Nothing is lost from sleep to sleep. */
	CHECK(first < device_free(0) + SPREAD + MIB * (uint64_t)atoi(argv[3]));
	return 0;
}

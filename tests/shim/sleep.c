/* SPDX-License-Identifier: MIT */
/*
 * `somashim sleep' and `somashim wake': what the command says, what the device has back, which
 * calls wake, which are held, and that no byte is lost.
 *
 *   shim_sleep SOMASHIM CASE
 */
#include <sched.h>

#include "sleep.h"

/* ---- a process with blocks of all kinds ------------------------------------------------- */

#define BLOCKS 6
static const size_t size_of[BLOCKS] = {64, 4096, 3 * MIB, 5 * MIB, 9 * MIB, MIB + 512};
static void *blocks[BLOCKS];
static char follow; /* the name of a kernel */
static hipGraphExec_t graph;
static void *list; /* pointers in device memory, to words */

/* Adds to the words to which a list in device memory points. */
static void follow_body(void **args)
{
	uint32_t **to = *(uint32_t ***)args[0];

	for (int i = 0; i < BLOCKS; i++)
		*to[i] += 1;
}

static void follow_launch(void)
{
	void *args[] = {&list};

	OK(hipLaunchKernel(&follow, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

/* By the calls of compilers before ROCm 4. The launch comes after the sleep. */
static char legacy; /* the name of a kernel without arguments */

static void legacy_body(void **args)
{
	void *list_of[] = {&list};

	(void)args;
	follow_body(list_of);
}

static void legacy_launch(void)
{
	OK(hipConfigureCall((dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, stream));
	COMMAND(0, "sleep", own_pid());
	CHECK(state_now() == SS_LIVE_ASLEEP);
	OK(hipLaunchByPtr(&legacy));
	CHECK(state_now() == SS_LIVE_AWAKE);
}

static void blocks_make(void)
{
	static const size_t sizes[] = {8, 0}, none[] = {0};
	uint32_t *words[BLOCKS];
	hipGraph_t captured;

	kernel_register(&follow, follow_body, sizes);
	kernel_register(&legacy, legacy_body, none);
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = block(size_of[i], (uint32_t)i);
		words[i] = (uint32_t *)blocks[i] + 3;
	}
	OK(hipMallocAsync(&list, sizeof(words), stream));
	OK(hipMemcpyAsync(list, words, sizeof(words), hipMemcpyHostToDevice, stream));
	OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
	follow_launch();
	OK(hipMemsetAsync((char *)blocks[3] + MIB, 7, 64, stream));
	OK(hipStreamEndCapture(stream, &captured));
	OK(hipGraphInstantiate(&graph, captured, NULL, NULL, 0));
	OK(hipGraphDestroy(captured));
	OK(hipStreamSynchronize(stream));
}

/* `times` launches of the kernel, and whether the graph was launched. */
static void blocks_check(uint32_t times, bool by_graph)
{
	for (int i = 0; i < BLOCKS; i++) {
		uint32_t *host = malloc(size_of[i]), *want = malloc(size_of[i]);

		CHECK(host && want);
		pattern(want, size_of[i] / 4, (uint32_t)i);
		want[3] += times;
		if (i == 3 && by_graph)
			memset((char *)want + MIB, 7, 64);
		OK(hipMemcpyAsync(host, blocks[i], size_of[i], hipMemcpyDeviceToHost, stream));
		OK(hipStreamSynchronize(stream));
		CHECK(!memcmp(host, want, size_of[i]));
		free(host);
		free(want);
	}
}

static uint64_t reserved(void)
{
	hipMemPool_t pool;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

/* ---- nap -------------------------------------------------------------------------------- */

static void nap(void)
{
	uint64_t free_before, held, maps;
	size_t info[2], info_asleep[2], total;
	hipPointerAttribute_t attributes;
	hipMemPool_t pool;
	hipGraph_t made;
	hipGraphNode_t node;
	hipDeviceptr_t base;
	size_t size;
	static char word[4];
	void *p;

	blocks_make();
	OK(hipDeviceSynchronize());
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	held = reserved();
	free_before = device_free(0);
	OK(hipMemGetInfo(&info[0], &total));
	COMMAND(0, "sleep", own_pid());
	SAID("asleep: asked for ");
	SAID("MiB came back by the devices' own figure");
	CHECK(!strstr(said, "awake again"));
	CHECK(state_now() == SS_LIVE_ASLEEP);
	/* (From 7.14 on a trial of 1 MiB in all stays mapped until the first unmap:
	 * driver/rocm/access_probe.c.) */
	CHECK(device_free(0) >= free_before + held &&
	      device_free(0) < free_before + held + 2 * MIB);
	CHECK(atomic_load(&page_of_ours()->sleep.asleep[0]) == held);
	/* The statistics are as if the process were awake. */
	CHECK(reserved() == held);
	OK(hipMemGetInfo(&info_asleep[0], &total));
	CHECK(info_asleep[0] >= info[0] && info_asleep[0] < info[0] + 2 * MIB);
	/* Calls that need no memory of the device leave it asleep. */
	maps = sim_count("hipMemMap");
	for (int i = 0; i < 100; i++) {
		OK(hipFreeAsync(blocks[1], stream));
		OK(hipMallocAsync(&p, size_of[1], stream));
		CHECK(p == blocks[1]);
	}
	OK(hipStreamSynchronize(stream));
	OK(hipDeviceSynchronize());
	CHECK(state_now() == SS_LIVE_ASLEEP && sim_count("hipMemMap") == maps);
	COMMAND(0, "top", "--once");
	SAID("(asleep)");
	SAID("MiB asleep");
	/* That block has no contents any more. */
	uint32_t *host = malloc(size_of[1]);
	pattern(host, size_of[1] / 4, 1);
	OK(hipMemcpyAsync(p, host, size_of[1], hipMemcpyHostToDevice, stream));
	CHECK(state_now() == SS_LIVE_AWAKE);
	free(host);
	blocks_check(0, false);
	CHECK(reserved() == held && device_free(0) - free_before < 2 * MIB);
	CHECK(atomic_load(&page_of_ours()->sleep.asleep[0]) == 0);
	follow_launch();
	OK(hipGraphLaunch(graph, stream));
	blocks_check(2, true);
	/* Each of these wakes, too. */
	COMMAND(0, "sleep", own_pid());
	OK(hipGraphLaunch(graph, stream));
	blocks_check(3, true);
	COMMAND(0, "sleep", own_pid());
	follow_launch();
	blocks_check(4, true);
	legacy_launch();
	blocks_check(5, true);
	/* Calls that ask what a pointer is are answered; a node of a graph needs the memory. */
	COMMAND(0, "sleep", own_pid());
	OK(hipPointerGetAttributes(&attributes, blocks[2]));
	OK(hipMemGetAddressRange(&base, &size, blocks[2]));
	CHECK(base == blocks[2] && size == size_of[2] && state_now() == SS_LIVE_ASLEEP);
	OK(hipGraphCreate(&made, 0));
	OK(hipGraphAddMemcpyNode1D(&node, made, NULL, 0, blocks[2], word, 4,
				   hipMemcpyHostToDevice));
	CHECK(state_now() == SS_LIVE_AWAKE);
	OK(hipGraphDestroy(made));
	COMMAND(0, "sleep", own_pid());
	OK(hipMallocAsync(&p, 100 * MIB, stream)); /* has to map */
	CHECK(state_now() == SS_LIVE_AWAKE);
	OK(hipFreeAsync(p, stream));
	blocks_check(5, true);
	COMMAND(0, "sleep", own_pid());
	COMMAND(0, "wake", own_pid());
	SAID("awake");
	blocks_check(5, true);
	COMMAND(0, "wake", own_pid()); /* it is */
}

/* ---- hold ---------------------------------------------------------------------------------- */

static atomic_int begun, done;
static hipStream_t other[8];

static void *call_copy(void *arg)
{
	char word[4];

	(void)arg;
	atomic_fetch_add(&begun, 1);
	OK(hipMemcpy(word, blocks[0], 4, hipMemcpyDeviceToHost));
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void *call_kernel(void *arg)
{
	(void)arg;
	atomic_fetch_add(&begun, 1);
	follow_launch();
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void *call_growth(void *arg)
{
	void *p;

	(void)arg;
	atomic_fetch_add(&begun, 1);
	OK(hipMallocAsync(&p, 200 * MIB, other[0]));
	atomic_fetch_add(&done, 1);
	OK(hipFreeAsync(p, other[0]));
	return NULL;
}

static void *call_capture(void *arg)
{
	hipGraph_t captured;

	(void)arg;
	atomic_fetch_add(&begun, 1);
	OK(hipStreamBeginCapture(other[1], hipStreamCaptureModeRelaxed));
	atomic_fetch_add(&done, 1);
	OK(hipStreamEndCapture(other[1], &captured));
	OK(hipGraphDestroy(captured));
	return NULL;
}

static void nothing(hipStream_t on, hipError_t error, void *arg)
{
	(void)on;
	(void)error;
	(void)arg;
}

static void *call_host_function(void *arg)
{
	(void)arg;
	atomic_fetch_add(&begun, 1);
	OK(hipStreamAddCallback(other[2], nothing, NULL, 0));
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void hold(void)
{
	static void *(*const calls[])(void *) = {call_copy, call_kernel, call_growth, call_capture,
						 call_host_function};
	enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
	pthread_t thread[CALLS];
	uint64_t free_asleep;
	void *p;

	blocks_make();
	for (int i = 0; i < 8; i++)
		OK(hipStreamCreateWithFlags(&other[i], hipStreamNonBlocking));
	COMMAND(0, "sleep", "--hold", own_pid());
	free_asleep = device_free(0);
	for (int i = 0; i < CALLS; i++)
		CHECK(!pthread_create(&thread[i], NULL, calls[i], NULL));
	while (atomic_load(&begun) < CALLS)
		sched_yield();
	/* Nothing that is held: a hit, waits, queries, the second sleep. */
	OK(hipFreeAsync(blocks[1], stream));
	OK(hipMallocAsync(&p, size_of[1], stream));
	OK(hipDeviceSynchronize());
	OK(hipStreamQuery(stream));
	COMMAND(0, "sleep", "--hold", own_pid());
	usleep(30000);
	CHECK(!atomic_load(&done) && state_now() == SS_LIVE_ASLEEP);
	CHECK(atomic_load(&page_of_ours()->sleep.held) == 1);
	CHECK(device_free(0) == free_asleep);
	COMMAND(0, "wake", own_pid());
	for (int i = 0; i < CALLS; i++)
		pthread_join(thread[i], NULL);
	CHECK(state_now() == SS_LIVE_AWAKE);
	OK(hipDeviceSynchronize());
	blocks[1] = block(size_of[1], 1);
	for (int i = 2; i < BLOCKS; i++) {
		uint32_t word;

		OK(hipMemcpy(&word, (uint32_t *)blocks[i] + 3, 4, hipMemcpyDeviceToHost));
		CHECK(word == 3 * 2654435761u + (uint32_t)i + 1);
	}
	/* A sleep without --hold makes a nap of it: whoever waits wakes it. */
	COMMAND(0, "sleep", "--hold", own_pid());
	CHECK(!pthread_create(&thread[0], NULL, call_copy, NULL));
	while (atomic_load(&begun) < CALLS + 1)
		sched_yield();
	COMMAND(0, "sleep", own_pid());
	pthread_join(thread[0], NULL);
	wait_state(SS_LIVE_AWAKE);
}

int main(int argc, char **argv)
{
	sleep_test_begin(argc, argv);
	if (!strcmp(argv[2], "nap"))
		nap();
	else if (!strcmp(argv[2], "hold"))
		hold();
	else
		return 9;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A program that is recorded: `trace_recorded CASE`. Where it ends in order it prints the figures
 * of each pool that it can ask for, as trace_figures prints those of the file.
 */
#include <hip/hip_runtime_api.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define BLOCKS 40 /* of a thread */
#define CHECK(call) do { \
	hipError_t err_ = (call); \
	if (err_ != hipSuccess) { \
		fprintf(stderr, "%s: %d\n", #call, (int)err_); \
		exit(1); \
	} \
} while (0)

static hipMemPool_t own; /* a pool of the program */
static int rounds = 400;

/* ---- figures ------------------------------------------------------------ */

static uint64_t attribute(hipMemPool_t pool, hipMemPoolAttr attr)
{
	uint64_t value = 0;

	CHECK(hipMemPoolGetAttribute(pool, attr, &value));
	return value;
}

static void print_figures(hipMemPool_t pool)
{
	printf("%p used %" PRIu64 " high %" PRIu64 " reserved %" PRIu64 " high %" PRIu64 "\n",
	       (void *)pool, attribute(pool, hipMemPoolAttrUsedMemCurrent),
	       attribute(pool, hipMemPoolAttrUsedMemHigh),
	       attribute(pool, hipMemPoolAttrReservedMemCurrent),
	       attribute(pool, hipMemPoolAttrReservedMemHigh));
}

static void print_all(void)
{
	hipMemPool_t pool;

	CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
	print_figures(pool);
	if (own)
		print_figures(own);
}

static void create_pool(void)
{
	hipMemPoolProps props;

	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.location.type = hipMemLocationTypeDevice;
	CHECK(hipMemPoolCreate(&own, &props));
}

/* ---- threads ------------------------------------------------------------ */

enum way { CLASSIC, ASYNC, POOL };

struct block {
	void *ptr;
	enum way way;
};

static uint32_t next_random(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

static void allocate(struct block *b, uint32_t *seed, hipStream_t stream)
{
	size_t size = 1 +
		      (next_random(seed) >> 8) % ((next_random(seed) >> 16) % 16 ? 20000 : 3000000);

	b->way = (enum way)((next_random(seed) >> 16) % 3);
	if (b->way == CLASSIC)
		CHECK(hipMalloc(&b->ptr, size));
	else if (b->way == ASYNC)
		CHECK(hipMallocAsync(&b->ptr, size, stream));
	else
		CHECK(hipMallocFromPoolAsync(&b->ptr, size, own, stream));
}

/* Any block may be freed by either call. */
static void release(struct block *b, uint32_t *seed, hipStream_t stream)
{
	bool other = (next_random(seed) >> 16) % 8 == 0;

	if ((b->way == CLASSIC) != other)
		CHECK(hipFree(b->ptr));
	else
		CHECK(hipFreeAsync(b->ptr, stream));
	b->ptr = NULL;
}

static void *run(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;
	struct block block[BLOCKS] = {{0}};
	hipStream_t stream;
	hipEvent_t event;

	CHECK(hipStreamCreateWithFlags(&stream, seed % 2 ? hipStreamNonBlocking : 0));
	CHECK(hipEventCreate(&event));
	for (int i = 0; i < rounds; i++) {
		struct block *b = &block[(next_random(&seed) >> 16) % BLOCKS];

		if (b->ptr)
			release(b, &seed, stream);
		else
			allocate(b, &seed, stream);
		if (i % 50 == 0) {
			CHECK(hipStreamSynchronize(stream));
		} else if (i % 50 == 25) {
			CHECK(hipEventRecord(event, stream));
			CHECK(hipEventSynchronize(event));
		}
		if (i % 200 == 100)
			CHECK(hipMemPoolTrimTo(own, 0));
	}
	CHECK(hipDeviceSynchronize());
	return NULL; /* what it still has is never freed */
}

static void run_threads(int count)
{
	pthread_t thread[THREADS];

	create_pool();
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)(i + 1)) != 0)
			exit(1);
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

/* ---- ends --------------------------------------------------------------- */

static void one_block(void)
{
	void *ptr;

	CHECK(hipMalloc(&ptr, 1000));
	CHECK(hipFree(ptr));
	CHECK(hipMalloc(&ptr, 12345)); /* stays */
}

static void *kill_soon(void *arg)
{
	usleep(300000);
	kill(getpid(), SIGKILL);
	return arg;
}

static void wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		exit(1);
}

/* A child uses the device before its parent does. */
static void fork_before(void)
{
	pid_t child = fork();

	one_block();
	if (child == 0)
		exit(0);
	wait_for(child);
}

/* A child of a process that uses the device: HIP is of no use there. */
static void fork_after(void)
{
	one_block();
	pid_t child = fork();
	if (child == 0)
		exit(0);
	wait_for(child);
	one_block();
}

static void out_of_memory(void)
{
	void *ptr = NULL;

	one_block();
	for (int i = 0; i < 3; i++)
		if (hipMallocAsync(&ptr, (size_t)1 << 40, 0) != hipErrorOutOfMemory)
			exit(1);
	CHECK(hipMallocAsync(&ptr, 4096, 0));
}

static void reset(void)
{
	void *ptr;

	create_pool();
	one_block();
	CHECK(hipMallocAsync(&ptr, 5000, 0));
	CHECK(hipMallocFromPoolAsync(&ptr, 7000, own, 0));
	own = NULL;
	CHECK(hipDeviceReset());
	CHECK(hipMallocAsync(&ptr, 9000, 0));
}

/* Large blocks after small ones: chunks move where they are mapped one by one. The last ones do not
 * fit below a limit. */
static void moves(void)
{
	void *ptr[16];

	for (int i = 0; i < 16; i++)
		CHECK(hipMallocAsync(&ptr[i], 4 << 20, 0));
	for (int i = 1; i < 16; i += 2)
		CHECK(hipFreeAsync(ptr[i], 0));
	CHECK(hipDeviceSynchronize());
	CHECK(hipMallocAsync(&ptr[1], 16 << 20, 0));
	for (int i = 0; i < 4; i++)
		(void)hipMallocAsync(&ptr[3], 100 << 20, 0);
}

/* Each pool is one of its own in the file, though they follow one another in one place. */
static void many_pools(void)
{
	void *ptr;

	one_block();
	for (int i = 0; i < 20; i++) {
		create_pool();
		CHECK(hipMallocFromPoolAsync(&ptr, 10000, own, 0));
		CHECK(hipFreeAsync(ptr, 0));
		CHECK(hipDeviceSynchronize());
		CHECK(hipMemPoolDestroy(own));
		own = NULL;
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t killer;

	if (strcmp(what, "threads") == 0) {
		run_threads(THREADS);
	} else if (strcmp(what, "alone") == 0) {
		run_threads(1);
	} else if (strcmp(what, "killed") == 0) {
		rounds = 100000000;
		if (pthread_create(&killer, NULL, kill_soon, NULL) == 0)
			run_threads(THREADS);
	} else if (strcmp(what, "fork-before") == 0) {
		fork_before();
	} else if (strcmp(what, "fork-after") == 0) {
		fork_after();
	} else if (strcmp(what, "_exit") == 0) {
		one_block();
		_exit(0);
	} else if (strcmp(what, "oom") == 0) {
		out_of_memory();
	} else if (strcmp(what, "reset") == 0) {
		reset();
	} else if (strcmp(what, "moves") == 0) {
		moves();
	} else if (strcmp(what, "pools") == 0) {
		many_pools();
	} else {
		return 2;
	}
	print_all();
	return 0;
}

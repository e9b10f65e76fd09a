/* SPDX-License-Identifier: MIT */
/*
 * Allocations that wait, in a program that puts host functions, waits for values and graphs on its
 * streams. There is no wait while one of these may need the host, and all others are as without
 * them.
 *
 * No time passes for the main thread but what it sleeps, and the device does its work while the
 * main thread sleeps. So nothing depends on how fast the machine is.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define BLOCK ((size_t)16 << 20)
#define STREAMS 6
#define STEPS 8

static char kernel;
static hipStream_t stream[STREAMS];
static hipMemPool_t pool;
static hipError_t (*query)(hipStream_t);

static _Thread_local bool virtual; /* the main thread */
static uint64_t now_ns = 1000000000;
static unsigned sleeps;
static _Atomic bool held;              /* no kernel ends */
static _Atomic bool function_waits;    /* for what the main thread does */
static _Atomic unsigned functions_run; /* and have returned */

static void moment(void)
{
	struct timespec t = {0, 100000};

	syscall(SYS_nanosleep, &t, NULL);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	if (!virtual)
		return (int)syscall(SYS_clock_gettime, id, t);
	now_ns += 1000;
	*t = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

/* The device does all that it can. */
static void device_runs(void)
{
	held = false;
	for (int i = 0; i < STREAMS; i++)
		while (!function_waits && query(stream[i]) == hipErrorNotReady)
			moment();
	held = true;
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *t,
						     struct timespec *rest)
{
	if (!virtual)
		return (int)syscall(SYS_nanosleep, t, rest);
	now_ns += (uint64_t)t->tv_nsec;
	sleeps++;
	device_runs();
	return 0;
}

static void body(void **args)
{
	(void)args;
	while (held)
		moment();
}

static void launch(hipStream_t s)
{
	OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, s));
}

/* One stream frees what the next will need, and so on. How often did the main thread sleep? */
static unsigned step(void)
{
	unsigned before = sleeps;
	void *p;

	for (int i = 0; i < STREAMS; i++) {
		OK(hipMallocFromPoolAsync(&p, BLOCK, pool, stream[i]));
		launch(stream[i]);
		OK(hipFreeAsync(p, stream[i]));
	}
	return sleeps - before;
}

static void pool_begin(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};

	OK(hipMemPoolCreate(&pool, &props));
}

static uint64_t pool_end(void)
{
	uint64_t high = figure(pool, hipMemPoolAttrReservedMemHigh);

	device_runs();
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(pool));
	return high;
}

static void count(hipStream_t s, hipError_t status, void *arg)
{
	(void)s;
	CHECK(status == hipSuccess && arg == &functions_run);
	functions_run++;
}

static void count_alone(void *arg)
{
	CHECK(arg == &functions_run);
	functions_run++;
}

/* ---- memory ------------------------------------------------------------------ */

/* A program with a host function in each step needs as much memory as without. */
static void steps(bool waits)
{
	hipError_t (*host)(hipStream_t, hipHostFn_t, void *) = (hipError_t(*)(
		hipStream_t, hipHostFn_t, void *))dlsym(RTLD_DEFAULT, "hipLaunchHostFunc");
	uint64_t high[2];
	unsigned put = 0;

	for (int with = 0; with < 2; with++) {
		pool_begin();
		for (int i = 0; i < STEPS; i++) {
			step();
			if (!with)
				continue;
			/* Behind a kernel, so that it runs while the main thread sleeps. */
			launch(stream[i % STREAMS]);
			OK(hipStreamAddCallback(stream[i % STREAMS], count, &functions_run, 0));
			put++;
			if (!host)
				continue;
			launch(stream[(i + 1) % STREAMS]);
			OK(host(stream[(i + 1) % STREAMS], count_alone, &functions_run));
			put++;
		}
		high[with] = pool_end();
	}
	fprintf(stderr, "%.1f blocks, with host functions %.1f; %u sleeps\n",
		(double)high[0] / BLOCK, (double)high[1] / BLOCK, sleeps);
	CHECK(functions_run == put && high[0] == high[1]);
	CHECK(waits ? high[0] == BLOCK && sleeps : high[0] == STREAMS * BLOCK && !sleeps);
}

/* ---- host functions ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_lock(hipStream_t s, hipError_t status, void *arg)
{
	function_waits = true;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	function_waits = false;
	functions_run++;
}

/* A host function needs a lock that the main thread holds while it allocates. It waits for one
 * sleep at most. */
static void locked(void)
{
	void *p;

	pool_begin();
	pthread_mutex_lock(&lock);
	OK(hipMallocFromPoolAsync(&p, BLOCK, pool, stream[0]));
	launch(stream[0]);
	OK(hipFreeAsync(p, stream[0]));
	OK(hipStreamAddCallback(stream[0], take_lock, NULL, 0));
	OK(hipMallocFromPoolAsync(&p, BLOCK, pool, stream[1]));
	CHECK(sleeps == 1 && !functions_run);
	/* It runs, so nobody waits. */
	OK(hipFreeAsync(p, stream[1]));
	CHECK(step() == 0);
	pthread_mutex_unlock(&lock);
	held = false;
	OK(hipDeviceSynchronize());
	held = true;
	CHECK(functions_run == 1);
	CHECK(pool_end() > BLOCK);
	pool_begin();
	CHECK(step() > 0 && pool_end() == BLOCK);
}

/* ---- what stands still for the host ---------------------------------------------- */

/* Behind a wait for a value nobody waits before the stream is known to have come past it. */
static void value(void)
{
	uint64_t *flag;

	OK(hipHostMalloc((void **)&flag, sizeof(*flag), 0));
	*flag = 0;
	pool_begin();
	OK(hipStreamWaitValue64(stream[STREAMS - 1], flag, 1, hipStreamWaitValueEq, ~0ull));
	CHECK(step() == 0);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	CHECK(pool_end() == STREAMS * BLOCK);
	pool_begin();
	CHECK(step() > 0 && pool_end() == BLOCK);
	OK(hipHostFree(flag));
}

/* Behind a wait for an event that another process may record: that process may need what the main
 * thread does next. */
static void event(void)
{
	hipIpcEventHandle_t handle;
	hipEvent_t e;

	OK(hipEventCreateWithFlags(&e, hipEventInterprocess | hipEventDisableTiming));
	pool_begin();
	OK(hipEventRecord(e, stream[0]));
	OK(hipStreamWaitEvent(stream[STREAMS - 1], e, 0));
	CHECK(step() > 0 && pool_end() == BLOCK); /* nobody else knows it yet */
	OK(hipIpcGetEventHandle(&handle, e));
	pool_begin();
	launch(stream[0]);
	OK(hipEventRecord(e, stream[0]));
	OK(hipStreamWaitEvent(stream[STREAMS - 1], e, 0));
	CHECK(step() == 0);
	CHECK(pool_end() == STREAMS * BLOCK);
	pool_begin();
	CHECK(step() > 0 && pool_end() == BLOCK);
	OK(hipEventDestroy(e));
}

static unsigned step_beside(hipGraphExec_t exec)
{
	unsigned slept;

	pool_begin();
	launch(stream[0]);
	OK(hipGraphLaunch(exec, stream[0]));
	slept = step();
	(void)pool_end();
	return slept;
}

/* The same of graphs, once one may have a host node. Such a node is the program's own. */
static void graphs(void)
{
	hipGraph_t empty, captured;
	hipGraphExec_t plain, exec;
	hipGraphNode_t node;

	OK(hipGraphCreate(&empty, 0));
	OK(hipGraphAddEmptyNode(&node, empty, NULL, 0));
	OK(hipGraphInstantiate(&plain, empty, NULL, NULL, 0));
	CHECK(step_beside(plain) > 0);
	OK(hipStreamBeginCapture(stream[1], hipStreamCaptureModeRelaxed));
	OK(hipStreamAddCallback(stream[1], count, &functions_run, 0));
	OK(hipStreamEndCapture(stream[1], &captured));
	OK(hipGraphInstantiate(&exec, captured, NULL, NULL, 0));
	CHECK(step_beside(exec) == 0 && step_beside(exec) == 0);
	CHECK(functions_run == 2);
	pool_begin();
	CHECK(step() > 0 && pool_end() == BLOCK);
	OK(hipGraphExecDestroy(plain));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(empty));
	OK(hipGraphDestroy(captured));
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {0};
	void (*reg)(const void *, void (*)(void **), const size_t *);

	CHECK(argc == 2 && preloaded());
	reg = (void (*)(const void *, void (*)(void **), const size_t *))sim_call(
		"somasim_register_kernel_args");
	if (!reg)
		return SKIP;
	reg(&kernel, body, sizes);
	query = RUNTIME(hipStreamQuery);
	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
	virtual = held = true;
	if (!strcmp(argv[1], "steps") || !strcmp(argv[1], "grows"))
		steps(!strcmp(argv[1], "steps"));
	else if (!strcmp(argv[1], "locked"))
		locked();
	else if (!strcmp(argv[1], "value"))
		value();
	else if (!strcmp(argv[1], "event"))
		event();
	else
		graphs();
	held = false;
	virtual = false;
	return 0;
}

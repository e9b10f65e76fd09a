/* SPDX-License-Identifier: MIT */
/*
 * Threads that are cancelled in a HIP call. The cancellation is there before the call, so the first
 * cancellation point that the thread reaches acts on it: a wait for another thread, a sleep, a file
 * that is opened. The call must come back all the same, and other threads must be able to go on.
 *
 *   start    the first call of the process, which opens the journal; a stream that hipFree waits
 *            for
 *   claim    the wait for a thread that maps memory of the same pool
 *   turn     the wait for a thread that maps memory of another pool
 *   reset    hipDeviceReset, which waits for the thread of decay; then a fork
 *   fork     a fork, which waits for the same
 *   limit    an allocation for which the process has no mappings left: a file is read
 *   grows    an allocation that waits before the pool grows
 *   oom      an allocation that waits because memory is out
 *   ends     _exit() and exit(), which write files
 *   waits    a synchronization ends, the thread's handlers may use HIP, and nobody waits for the
 *            stream any more
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

static hipStream_t stream, other;
static atomic_bool returned;
static atomic_bool go = true; /* the thread may call */
static hipError_t failure;    /* of the call */

/* ---- a thread that is cancelled ----------------------------------------------- */

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void *cancelled(void *arg)
{
	struct call *c = arg;

	while (!atomic_load(&go))
		usleep(100);
	pthread_cancel(pthread_self());
	c->fn(c->arg);
	atomic_store(&returned, true);
	pthread_testcancel();
	return NULL;
}

static pthread_t begin(struct call *c)
{
	pthread_t thread;

	atomic_store(&returned, false);
	CHECK(!pthread_create(&thread, NULL, cancelled, c));
	return thread;
}

static void end(pthread_t thread)
{
	void *result;

	CHECK(!pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
	CHECK(atomic_load(&returned)); /* the call, or the thread was cancelled in it */
}

static void run(void (*fn)(void *), void *arg)
{
	struct call c = {fn, arg};

	end(begin(&c));
}

/* ---- another thread that stands still in a call of the runtime ------------------------- */

static int (*holds)(void);
static void (*let_go)(void);

static void hold(const char *name)
{
	int (*fn)(const char *, int) = sim_must("somasim_hold");

	holds = sim_must("somasim_holds");
	let_go = sim_must("somasim_let_go");
	CHECK(fn(name, 0) == 0);
}

static void wait_held(void)
{
	while (!holds())
		usleep(1000);
}

/* ---- the calls ------------------------------------------------------------------- */

static void alloc_classic(void *arg)
{
	void *p;

	(void)hipMalloc(&p, 4096);
}

static void free_classic(void *block)
{
	(void)hipFree(block);
}

static void alloc_default(void *on)
{
	void *p;

	failure = hipMallocAsync(&p, 64 * MIB, on);
}

static void alloc_pool(void *pool)
{
	void *p;

	failure = hipMallocFromPoolAsync(&p, 64 * MIB, pool, other);
}

static void reset(void *arg)
{
	failure = hipDeviceReset();
}

static void forks(void *arg)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		_exit(0);
	/* waitpid() is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	CHECK(waitpid(child, &status, 0) == child && !status);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

static void start(void)
{
	void *p;

	run(alloc_classic, NULL);
	OK(hipMalloc(&p, 4096));
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipMemsetAsync(p, 1, 4096, stream));
	run(free_classic, p); /* waits for the stream on the thread's account, which pins it */
	OK(hipStreamDestroy(stream));
	OK(hipMalloc(&p, 4096));
	OK(hipFree(p));
}

static void *alloc_thread(void *on)
{
	void *p;

	OK(hipMallocAsync(&p, 64 * MIB, on));
	return NULL;
}

/* `fn` waits for a thread that maps. */
static void behind_map(void (*fn)(void *), void *arg)
{
	struct call c = {fn, arg};
	pthread_t first, second;

	hold("hipMemMap");
	CHECK(!pthread_create(&first, NULL, alloc_thread, stream));
	wait_held();
	second = begin(&c);
	usleep(50000); /* it comes to its wait, or the test shows less */
	let_go();
	end(second);
	CHECK(failure == hipSuccess);
	CHECK(!pthread_join(first, NULL));
	fn(arg);
	CHECK(failure == hipSuccess);
}

/* `fn` waits for the thread of decay, which stands still in hipFree. */
static void behind_decay(void (*fn)(void *))
{
	struct call c = {fn, NULL};
	pthread_t thread;
	void *p;

	OK(hipMallocAsync(&p, 64 * MIB, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipStreamSynchronize(stream));
	hold("hipFree");
	wait_held();
	thread = begin(&c);
	usleep(50000);
	let_go();
	end(thread);
	CHECK(failure == hipSuccess);
	forks(NULL);
}

static void nothing(void *arg)
{
}

static void limit(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct call c = {alloc_default, stream};
	long most = 0;
	pthread_t thread;
	char *at;
	void *p;

	CHECK(f && fscanf(f, "%ld", &most) == 1);
	fclose(f);
	if (most > 1000000)
		exit(SKIP);
	OK(hipMallocAsync(&p, MIB, stream)); /* what HIP needs for itself is there */
	OK(hipStreamSynchronize(stream));
	run(nothing, NULL); /* so is the library by which libc ends a thread */
	at = mmap(NULL, page * 2 * (size_t)most, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	atomic_store(&go, false);
	thread = begin(&c); /* its stack is a mapping */
	for (long i = 0; i < most && !mprotect(at + 2 * (size_t)i * page, page, PROT_READ); i++)
		;
	atomic_store(&go, true);
	end(thread);
	munmap(at, page * 2 * (size_t)most);
	CHECK(failure == hipErrorOutOfMemory);
	alloc_default(stream);
	CHECK(failure == hipSuccess);
}

static char kernel;
static atomic_bool held = true;

static void body(void **args)
{
	while (atomic_load(&held))
		usleep(100);
}

/* No wait for a value, since beside one nobody waits. */
static void launch_held(void)
{
	static const size_t none[] = {0};
	void (*reg)(const void *, void (*)(void **), const size_t *) = (void (*)(
		const void *, void (*)(void **),
		const size_t *))sim_must("somasim_register_kernel_args");

	reg(&kernel, body, none);
	OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream));
}

/* The pool has enough free memory, of a stream that stands still. */
static void behind_kernel(hipError_t expected)
{
	void *p;

	OK(hipMallocAsync(&p, 64 * MIB, stream));
	launch_held();
	OK(hipFreeAsync(p, stream));
	run(alloc_default, other);
	CHECK(failure == expected);
	atomic_store(&held, false);
	OK(hipStreamSynchronize(stream));
	alloc_default(other);
	CHECK(failure == hipSuccess);
}

/* ---- the end of the process ------------------------------------------------------------- */

static void leave_at_once(void *arg)
{
	alloc_classic(NULL);
	_exit(7);
}

static void leave(void *arg)
{
	alloc_classic(NULL);
	exit(7);
}

/* In a child, which begins with HIP since the parent has not. */
static void ends(void (*fn)(void *))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		alarm(30);
		run(fn, NULL);
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* ---- a synchronization --------------------------------------------------------------------- */

static hipEvent_t event;
static bool freed;

static void on_stream(void *arg)
{
	(void)hipStreamSynchronize(stream);
}

static void on_event(void *arg)
{
	(void)hipEventSynchronize(event);
}

static void on_device(void *arg)
{
	(void)hipDeviceSynchronize();
}

static void clean(void *block)
{
	OK(hipFreeAsync(block, other));
	freed = true;
}

static void *synchronizes(void *arg)
{
	struct call *c = arg;
	void *p;

	OK(hipMallocAsync(&p, MIB, other));
	pthread_cleanup_push(clean, p);
	pthread_cancel(pthread_self());
	c->fn(c->arg);
	atomic_store(&returned, true);
	pthread_cleanup_pop(0);
	return NULL;
}

/* On a stream that stands still. A thread that has forbidden its cancellation is not cancelled. */
static void waits(void)
{
	static void (*const calls[])(void *) = {on_event, on_stream, on_device};
	hipMemPool_t pool;
	uint64_t used;
	void *result, *p;
	int was;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	OK(hipEventRecord(event, stream));
	OK(hipStreamSynchronize(stream));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		calls[i](NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	CHECK(was == PTHREAD_CANCEL_DISABLE);
	launch_held();
	OK(hipEventRecord(event, stream));
	used = figure(pool, hipMemPoolAttrUsedMemCurrent);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct call c = {calls[i], NULL};
		pthread_t thread;

		atomic_store(&returned, false);
		freed = false;
		CHECK(!pthread_create(&thread, NULL, synchronizes, &c));
		CHECK(!pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED && freed && !atomic_load(&returned));
		CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == used);
		alloc_classic(NULL);
		alloc_default(other);
		used = figure(pool, hipMemPoolAttrUsedMemCurrent);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	atomic_store(&held, false);
	while (hipStreamQuery(stream) != hipSuccess || hipStreamQuery(other) != hipSuccess)
		usleep(100);
	/* Nobody waits for the stream any more, so a trim asks it. */
	used = figure(pool, hipMemPoolAttrReservedMemCurrent);
	OK(hipMallocAsync(&p, 1024 * MIB, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) <= used);
	OK(hipStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	alarm(60); /* a lock that is left behind hangs */
	if (!strcmp(what, "ends")) {
		ends(leave_at_once);
		ends(leave);
		return 0;
	}
	CHECK(preloaded());
	if (!strcmp(what, "start")) {
		start();
		return 0;
	}
	if (!sim_call("somasim_hold"))
		return SKIP;
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	if (!strcmp(what, "claim"))
		behind_map(alloc_default, other);
	else if (!strcmp(what, "turn"))
		behind_map(alloc_pool, make_pool(0, hipMemHandleTypeNone));
	else if (!strcmp(what, "reset"))
		behind_decay(reset);
	else if (!strcmp(what, "fork"))
		behind_decay(forks);
	else if (!strcmp(what, "limit"))
		limit();
	else if (!strcmp(what, "grows"))
		behind_kernel(hipSuccess);
	else if (!strcmp(what, "oom"))
		behind_kernel(hipErrorOutOfMemory);
	else
		waits();
	return 0;
}

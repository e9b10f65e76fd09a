/* SPDX-License-Identifier: MIT */
/* Allocations and frees beside and inside a stream capture. */
#include <pthread.h>

#include "test.h"

static hipStream_t a, b, n;

static void begin(hipStreamCaptureMode mode)
{
	hipError_t err = hipStreamBeginCapture(a, mode);

	if (err == hipErrorNotSupported) {
		fprintf(stderr, "no stream capture here\n");
		exit(SKIP);
	}
	OK(err);
}

static void end(hipError_t want)
{
	hipGraph_t graph = NULL;

	GIVES(want, hipStreamEndCapture(a, &graph));
	if (graph)
		OK(hipGraphDestroy(graph));
}

static hipMemPool_t pool;

struct attempt {
	hipStream_t stream;
	hipError_t got;
};

static void *try_elsewhere(void *arg)
{
	struct attempt *t = arg;
	void *p;

	t->got = hipMallocAsync(&p, 4096, t->stream);
	if (t->got == hipSuccess)
		OK(hipFreeAsync(p, t->stream));
	return NULL;
}

static hipError_t elsewhere(hipStream_t stream)
{
	struct attempt t = {stream, hipErrorUnknown};
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, try_elsewhere, &t));
	pthread_join(thread, NULL);
	return t.got;
}

/* hipMallocAsync on a stream that does not capture, while a blocking one does: an
 * error from 6.0 on, but in relaxed mode, of the capture or of the thread. */
static void refused(hipStreamCaptureMode mode)
{
	bool strict = runtime_major() >= 6 && mode != hipStreamCaptureModeRelaxed;
	hipError_t want = strict ? hipErrorStreamCaptureUnsupported : hipSuccess;
	hipStreamCaptureMode mine = hipStreamCaptureModeRelaxed;
	void *p = NULL;

	GIVES(want, hipMallocAsync(&p, 4096, n));
	if (p)
		OK(hipFreeAsync(p, n));
	GIVES(mode == hipStreamCaptureModeGlobal ? want : hipSuccess, elsewhere(n));
	OK(hipThreadExchangeStreamCaptureMode(&mine));
	CHECK(mine == hipStreamCaptureModeGlobal); /* the shim has left it alone */
	OK(hipMallocAsync(&p, 4096, n));
	OK(hipFreeAsync(p, n));
	OK(hipThreadExchangeStreamCaptureMode(&mine));
	CHECK(mine == hipStreamCaptureModeRelaxed);
}

/* Pools as objects: none is made, ended or made current beside a capture that is not
 * relaxed, from 7.0 on; another thread's in thread-local mode is nobody else's affair. */
static hipError_t object(hipMemPool_t *other)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipMemPool_t made = NULL;
	hipError_t err;

	GIVES(hipErrorInvalidValue, hipMemPoolCreate(NULL, &props));
	GIVES(hipErrorInvalidValue, hipMemPoolDestroy(NULL));
	GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(0, NULL));
	err = hipDeviceSetMemPool(0, *other);
	GIVES(err, hipMemPoolCreate(&made, &props));
	GIVES(err, hipMemPoolDestroy(made ? made : *other));
	if (err == hipSuccess)
		OK(hipDeviceSetMemPool(0, pool));
	return err;
}

static void *object_elsewhere(void *arg)
{
	return (void *)(uintptr_t)object(arg);
}

static void objects(hipStreamCaptureMode mode)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipError_t refused = runtime_major() >= 7 ? hipErrorStreamCaptureUnsupported : hipSuccess;
	hipStreamCaptureMode mine = hipStreamCaptureModeRelaxed;
	hipMemPool_t other, now;
	pthread_t thread;
	void *got;

	OK(hipMemPoolCreate(&other, &props));
	begin(mode);
	GIVES(mode == hipStreamCaptureModeRelaxed ? hipSuccess : refused, object(&other));
	/* The thread's own mode is not asked. */
	OK(hipThreadExchangeStreamCaptureMode(&mine));
	GIVES(mode == hipStreamCaptureModeRelaxed ? hipSuccess : refused, object(&other));
	OK(hipThreadExchangeStreamCaptureMode(&mine));
	CHECK(!pthread_create(&thread, NULL, object_elsewhere, &other));
	pthread_join(thread, &got);
	GIVES(mode == hipStreamCaptureModeGlobal ? refused : hipSuccess,
	      (hipError_t)(uintptr_t)got);
	end(hipSuccess);
	OK(hipDeviceGetMemPool(&now, 0));
	CHECK(now == pool);
	OK(hipMemPoolDestroy(other));
}

/* Beside a capture on `a`, in every mode: pools serve, and the capture lives. */
static void beside(hipStreamCaptureMode mode, bool blocking)
{
	hipError_t (*ext)(void) = (hipError_t(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT,
									"hipExtGetLastError");
	void *p, *q, *mine, *plain;
	hipEvent_t e;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipMallocAsync(&mine, 4096, a));
	OK(hipMalloc(&plain, 4096));
	begin(mode);
	if (blocking)
		refused(mode);
	OK(hipMallocFromPoolAsync(&p, 100 << 20, pool, b)); /* grows */
	OK(hipMemsetAsync(p, 1, 4096, b));
	OK(hipFreeAsync(p, b));
	OK(hipMallocFromPoolAsync(&q, 100 << 20, pool, b));
	CHECK(q == p);
	OK(hipFreeAsync(q, b));
	OK(hipMallocFromPoolAsync(&q, 100 << 20, pool, n)); /* asks for fences on b */
	OK(hipFreeAsync(q, n));
	if (!blocking) {
		OK(hipMallocAsync(&q, 100 << 20, b));
		OK(hipFreeAsync(q, b));
	}
	/* A block of ours has no place in a graph. */
	GIVES(hipErrorInvalidValue, hipFreeAsync(mine, a));
	if (blocking) {
		GIVES(hipErrorStreamCaptureImplicit, hipMallocAsync(&q, 4096, NULL));
		GIVES(hipErrorStreamCaptureImplicit, hipFreeAsync(mine, NULL));
		/* Nobody but us knows of it, and asking for the last command's leaves it. */
		if (ext && runtime_major() >= 7) {
			GIVES(hipErrorStreamCaptureImplicit, ext());
			GIVES(hipErrorStreamCaptureImplicit, hipGetLastError());
			GIVES(hipSuccess, hipGetLastError());
		}
	}
	OK(hipFreeAsync(mine, b));
	/* It waits, but is no hipFree, which would end the capture. */
	OK(hipFreeAsync(plain, b));
	GIVES(hipErrorInvalidValue, hipFreeAsync(plain, b));
	OK(hipMallocFromPoolAsync(&q, 0, pool, NULL));
	CHECK(!q);
	/* What is recorded on it is a place in the graph: no clock. */
	OK(hipEventRecord(e, a));
	end(hipSuccess);
	OK(hipEventDestroy(e));
}

/* A stream that waits for a captured event is captured too, until the end. */
static void spreads(void)
{
	hipEvent_t e, back;
	void *mine;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipEventCreateWithFlags(&back, hipEventDisableTiming));
	OK(hipMallocAsync(&mine, 4096, b));
	begin(hipStreamCaptureModeRelaxed);
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	GIVES(hipErrorInvalidValue, hipFreeAsync(mine, b));
	OK(hipEventRecord(back, b));
	OK(hipStreamWaitEvent(a, back, 0));
	end(hipSuccess);
	OK(hipFreeAsync(mine, b));
	OK(hipEventDestroy(e));
	OK(hipEventDestroy(back));
}

static void busy(hipStream_t stream, hipError_t err, void *arg)
{
	struct timespec ts = {0, 20000000};

	nanosleep(&ts, NULL);
}

/* Fences from before the capture, on the stream or on one that is gone and had the same
 * handle: 6.4.3 ends the capture when it is asked for them. */
static void fences_before(hipStreamCaptureMode mode, bool gone)
{
	hipStream_t more[16], old = a;
	int count = 0;
	void *p, *q;

	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	OK(hipMallocAsync(&p, 100 << 20, a));
	OK(hipStreamAddCallback(a, busy, NULL, 0));
	OK(hipFreeAsync(p, a));
	OK(hipMallocFromPoolAsync(&q, 100 << 20, pool, n)); /* asks for a fence on a */
	if (gone) {
		OK(hipStreamDestroy(a));
		do {
			OK(hipStreamCreateWithFlags(&more[count], hipStreamNonBlocking));
			a = more[count++];
		} while (a != old && count < 16);
	}
	begin(mode);
	OK(hipMallocFromPoolAsync(&p, 200 << 20, pool, n)); /* looks at those there are */
	OK(hipFreeAsync(p, n));
	OK(hipFreeAsync(q, n));
	end(hipSuccess);
	while (count--)
		if (more[count] != a)
			OK(hipStreamDestroy(more[count]));
	OK(hipDeviceSynchronize());
	OK(hipMallocAsync(&q, 300 << 20, n)); /* nothing is lost by that */
	OK(hipFreeAsync(q, n));
}

/* hipMalloc and hipFree are what the mode says. */
static void classic(void)
{
	hipError_t want = hipErrorStreamCaptureUnsupported;
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	void *p, *q = (void *)7;

	OK(hipMalloc(&p, 4096));
	begin(hipStreamCaptureModeGlobal);
	GIVES(want, hipMalloc(&q, 4096));
	CHECK(q == (void *)7);
	/* It is lost from 6.x on and survives in 5.x. */
	end(runtime_major() < 6 ? hipSuccess : hipErrorStreamCaptureInvalidated);

	OK(hipThreadExchangeStreamCaptureMode(&mode));
	begin(hipStreamCaptureModeRelaxed);
	OK(hipMalloc(&q, 4096));
	OK(hipFree(q));
	OK(hipFree(p));
	end(hipSuccess);
	OK(hipThreadExchangeStreamCaptureMode(&mode));
}

int main(void)
{
	CHECK(preloaded());
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipStreamCreate(&b));
	OK(hipStreamCreateWithFlags(&n, hipStreamNonBlocking));
	for (int blocking = 0; blocking < 2; blocking++) {
		OK(hipStreamCreateWithFlags(&a,
					    blocking ? hipStreamDefault : hipStreamNonBlocking));
		beside(hipStreamCaptureModeGlobal, blocking);
		beside(hipStreamCaptureModeThreadLocal, blocking);
		beside(hipStreamCaptureModeRelaxed, blocking);
		spreads();
		for (int mode = 0; mode <= hipStreamCaptureModeRelaxed; mode++)
			objects((hipStreamCaptureMode)mode);
		for (int k = 0; k < 6; k++)
			fences_before((hipStreamCaptureMode)(k / 2), k % 2);
		OK(hipStreamDestroy(a));
	}
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	classic();
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	OK(hipStreamDestroy(n));
	return 0;
}

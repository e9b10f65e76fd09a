/* SPDX-License-Identifier: MIT */
/*
 * Calls that came after 7.2: streams of execution contexts, pools by place, lists of copies
 * and ranges, and another call that returns addresses. The installed headers do not declare
 * them.
 */
#include <dlfcn.h>
#include <string.h>

#define BYTES (1 << 20)
#include "test.h"

#define DETACHED ((hipError_t)916)
#define NEW(name, ret, params) static ret (*name) params
NEW(green_create, hipError_t, (void **, void *, int, unsigned));
NEW(primary_of, hipError_t, (void **, int));
NEW(context_stream, hipError_t, (hipStream_t *, void *, unsigned, int));
NEW(context_destroy, hipError_t, (void *));
NEW(context_record, hipError_t, (void *, hipEvent_t));
NEW(context_sync, hipError_t, (void *));
NEW(get_pool, hipError_t, (hipMemPool_t *, hipMemLocation *, hipMemAllocationType));
NEW(set_pool, hipError_t, (hipMemLocation *, hipMemAllocationType, hipMemPool_t));
NEW(batch, hipError_t, (void **, void **, size_t *, size_t, void *, size_t *, size_t, size_t *,
			hipStream_t));
NEW(boxes, hipError_t, (size_t, void *, size_t *, unsigned long long, hipStream_t));
NEW(peer_box, hipError_t, (void *));
NEW(prefetch, hipError_t, (void **, size_t *, size_t, hipMemLocation *, size_t *, size_t,
			   unsigned long long, hipStream_t));
NEW(discard, hipError_t, (void **, size_t *, size_t, unsigned long long, hipStream_t));
NEW(address_spt, hipError_t, (const char *, void **, int, uint64_t, void *));

static void find_all(void)
{
	const struct { void *at; const char *name; } list[] = {
		{&green_create, "hipGreenCtxCreate"}, {&primary_of, "hipDeviceGetExecutionCtx"},
		{&context_stream, "hipExecutionCtxStreamCreate"},
		{&context_destroy, "hipExecutionCtxDestroy"},
		{&context_record, "hipExecutionCtxRecordEvent"},
		{&context_sync, "hipExecutionCtxSynchronize"},
		{&get_pool, "hipMemGetMemPool"}, {&set_pool, "hipMemSetMemPool"},
		{&batch, "hipMemcpyBatchAsync"}, {&boxes, "hipMemcpy3DBatchAsync"},
		{&peer_box, "hipMemcpy3DPeer"}, {&prefetch, "hipMemPrefetchBatchAsync"},
		{&discard, "hipMemDiscardBatchAsync"}, {&address_spt, "hipGetProcAddress_spt"},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		void *fn = dlsym(RTLD_DEFAULT, list[i].name);

		if (!fn) {
			fprintf(stderr, "no %s: an older runtime\n", list[i].name);
			exit(SKIP);
		}
		memcpy(list[i].at, &fn, sizeof(fn));
	}
}

static void *context(void)
{
	static int desc; /* what the software device takes for a description */
	void *c;

	(void)sim_must("somasim_total_calls");
	OK(green_create(&c, &desc, 0, 0));
	return c;
}

static void *take(hipStream_t s)
{
	void *p;

	OK(hipMallocAsync(&p, BYTES, s));
	return p;
}

/* Is p among what this stream gets next? It is kept. */
static bool comes_back(void *p, hipStream_t s)
{
	for (int i = 0; i < 8; i++)
		if (take(s) == p)
			return true;
	return false;
}

/* A stream of a context is a stream like others: what an event orders is used again at once. */
static void streams(void)
{
	void *c = context(), *p;
	hipStream_t a, b;
	hipEvent_t e;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(context_stream(&a, c, hipStreamNonBlocking, 0));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	p = take(a);
	stall(a);
	OK(hipMemsetAsync(p, 1, BYTES, a));
	OK(hipFreeAsync(p, a));
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(p, b));
	release(a);
	OK(hipDeviceSynchronize());
	OK(hipStreamDestroy(a));
	OK(context_destroy(c));
}

/* An event that a context records says nothing of where it was recorded before. */
static void record(void)
{
	void *c = context(), *p;
	hipStream_t a, b, other;
	hipEvent_t e;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(context_stream(&other, c, hipStreamNonBlocking, 0));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	p = take(a);
	stall(a);
	OK(hipMemsetAsync(p, 1, BYTES, a));
	OK(hipFreeAsync(p, a));
	OK(hipEventRecord(e, a));
	OK(context_record(c, e));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(!comes_back(p, b));
	release(a);
	OK(hipDeviceSynchronize());
}

/* What a synchronization of the context has waited for is free, even to a pool that may not find out by
 * itself what has completed. */
static void sync(void)
{
	void *c = context(), *p, *q;
	hipStream_t a, b, busy;
	hipMemPool_t pool;
	int no = 0;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &no));
	OK(context_stream(&a, c, hipStreamNonBlocking, 0));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&busy, hipStreamNonBlocking));
	p = take(a);
	q = take(busy);
	stall(busy);
	OK(hipFreeAsync(q, busy));
	OK(hipMemsetAsync(p, 1, BYTES, a));
	OK(hipFreeAsync(p, a));
	OK(context_sync(c));
	CHECK(comes_back(p, b));
	release(busy);
	OK(hipDeviceSynchronize());
}

/* A stream whose context is gone takes nothing any more; what it freed waits for what runs on
 * it, and comes back after that. */
static void detached(void)
{
	void *c = context(), *p, *q, *r;
	hipStream_t a, b, again;
	hipMemPool_t pool;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(context_stream(&a, c, hipStreamNonBlocking, 0));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	p = take(a);
	q = take(a);
	stall(a);
	OK(hipMemsetAsync(p, 1, BYTES, a));
	OK(hipFreeAsync(p, a));
	OK(context_destroy(c));
	GIVES(DETACHED, hipMallocAsync(&r, BYTES, a));
	GIVES(DETACHED, hipFreeAsync(q, a));
	GIVES(DETACHED, hipStreamSynchronize(a));
	r = take(b);
	OK(hipMemsetAsync(r, 2, BYTES, b));
	OK(hipStreamSynchronize(b));
	release(a);
	OK(hipDeviceSynchronize());
	CHECK(holds(r, 2));
	CHECK(comes_back(p, b));
	OK(hipStreamDestroy(a));
	OK(hipFreeAsync(q, b));
	/* Another stream may get its handle. */
	OK(hipStreamCreateWithFlags(&again, hipStreamNonBlocking));
	OK(hipFreeAsync(take(again), again));
	/* Streams of a context that can't be destroyed stay what they are. */
	OK(primary_of(&c, 0));
	OK(context_stream(&a, c, hipStreamNonBlocking, 0));
	p = take(a);
	GIVES(hipErrorInvalidValue, context_destroy(c));
	OK(hipFreeAsync(p, a));
	CHECK(comes_back(p, a));
	OK(hipStreamDestroy(a));
}

static void pools(void)
{
	hipMemLocation here = {hipMemLocationTypeDevice, 0}, none = {hipMemLocationTypeDevice, 99};
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone), is, usual;
	void *p;

	OK(hipDeviceGetDefaultMemPool(&usual, 0));
	OK(get_pool(&is, &here, hipMemAllocationTypePinned));
	CHECK(is == usual);
	OK(set_pool(&here, hipMemAllocationTypePinned, pool));
	OK(get_pool(&is, &here, hipMemAllocationTypePinned));
	CHECK(is == pool);
	OK(hipDeviceGetMemPool(&is, 0));
	CHECK(is == pool);
	p = take(NULL);
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == BYTES);
	OK(hipFreeAsync(p, NULL));
	GIVES(hipErrorInvalidValue, set_pool(&none, hipMemAllocationTypePinned, usual));
	GIVES(hipErrorInvalidValue, set_pool(NULL, hipMemAllocationTypePinned, usual));
	GIVES(hipErrorInvalidValue, set_pool(&here, (hipMemAllocationType)2, usual));
	GIVES(hipErrorInvalidValue, set_pool(&here, hipMemAllocationTypePinned, NULL));
	GIVES(hipErrorInvalidValue, get_pool(NULL, &here, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_pool(&is, &none, hipMemAllocationTypePinned));
	OK(hipDeviceGetMemPool(&is, 0));
	CHECK(is == pool);
	OK(hipMemPoolDestroy(pool));
	OK(get_pool(&is, &here, hipMemAllocationTypePinned));
	CHECK(is == usual);
	GIVES(hipErrorInvalidValue, set_pool(&here, hipMemAllocationTypePinned, pool));
}

/* Up to 7.2 the copies before a refused one are made. */
static void lists(void)
{
	enum { N = 1000 };
	struct { int type; union { struct { void *p; size_t row, rows; hipMemLocation at; }; char all[32]; }; }
		host = {1, {{NULL, 0, 0, {0}}}}, dev = {1, {{NULL, 0, 0, {0}}}};
	struct { char src[40], dst[40]; hipExtent box; int order; unsigned flags; } op = {.order = 1};
	struct { void *a; struct hipPos ap; hipPitchedPtr s; int sd; void *b; struct hipPos bp;
		 hipPitchedPtr d; int dd; hipExtent box; } peer;
	static unsigned char from[2 * N], got[N];
	hipMemLocation here = {hipMemLocationTypeDevice, 0};
	size_t sizes[] = {N, N + 1, N}, failed = 99, zero = 0;
	void *dst[3], *src[3];
	hipStream_t s;

	memset(from, 7, sizeof(from));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		OK(hipMalloc(&dst[i], N));
		OK(hipMemset(dst[i], i, N));
		src[i] = from;
	}
	OK(hipDeviceSynchronize());
	GIVES(hipErrorInvalidValue, batch(dst, src, sizes, 3, NULL, NULL, 0, &failed, s));
	CHECK(failed == 1);
	OK(hipStreamSynchronize(s));
	for (int i = 0; i < 3; i++) {
		OK(hipMemcpy(got, dst[i], N, hipMemcpyDeviceToHost));
		CHECK(got[0] == (i ? i : 7) && got[N - 1] == (i ? i : 7));
	}
	sizes[1] = N;
	OK(batch(dst, src, sizes, 3, NULL, NULL, 0, &failed, s));
	OK(hipStreamSynchronize(s));
	CHECK(failed == SIZE_MAX);
	GIVES(hipErrorInvalidValue, batch(NULL, src, sizes, 3, NULL, NULL, 0, &failed, s));

	/* What stays inside reaches the software device, which does not do these. */
	_Static_assert(sizeof(op) == 112 && sizeof(host) == 40 && sizeof(peer) == 168, "7.1");
	host.p = from;
	dev.p = dst[0];
	memcpy(op.src, &host, 40);
	memcpy(op.dst, &dev, 40);
	op.box = (hipExtent){N / 10, 10, 1};
	GIVES(hipErrorNotSupported, boxes(1, &op, &failed, 0, s));
	op.box.height = 11;
	failed = 99;
	GIVES(hipErrorInvalidValue, boxes(1, &op, &failed, 0, s));
	CHECK(failed == 0);
	memset(&peer, 0, sizeof(peer));
	peer.s = (hipPitchedPtr){dst[1], 100, 100, 10};
	peer.d = (hipPitchedPtr){dst[0], 100, 100, 10};
	peer.box = (hipExtent){100, 10, 1};
	GIVES(hipErrorNotSupported, peer_box(&peer));
	peer.bp.y = 1;
	GIVES(hipErrorInvalidValue, peer_box(&peer));

	GIVES(hipErrorNotSupported, prefetch(dst, sizes, 3, &here, &zero, 1, 0, s));
	GIVES(hipErrorNotSupported, discard(dst, sizes, 3, 0, s));
	sizes[2] = N + 1;
	GIVES(hipErrorInvalidValue, prefetch(dst, sizes, 3, &here, &zero, 1, 0, s));
	GIVES(hipErrorInvalidValue, discard(dst, sizes, 3, 0, s));
}

static void address(void)
{
	void *fn;

	OK(address_spt("hipMalloc", &fn, 71400000, 0, NULL));
	CHECK(fn == dlsym(RTLD_DEFAULT, "hipMalloc"));
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } cases[] = {
		{"streams", streams}, {"record", record}, {"sync", sync}, {"detached", detached},
		{"pools", pools}, {"lists", lists}, {"address", address},
	};

	find_all();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	fprintf(stderr, "newer CASE\n");
	return 2;
}

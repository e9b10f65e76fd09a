/* SPDX-License-Identifier: MIT */
/*
 * Calls that came after 7.2: streams of execution contexts, pools by place, lists of copies
 * and ranges, libraries of code, and another call that returns addresses. The installed headers
 * do not declare them.
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
NEW(batch, hipError_t,
    (void **, void **, size_t *, size_t, void *, size_t *, size_t, size_t *, hipStream_t));
NEW(boxes, hipError_t, (size_t, void *, size_t *, unsigned long long, hipStream_t));
NEW(peer_box, hipError_t, (void *));
NEW(prefetch, hipError_t,
    (void **, size_t *, size_t, hipMemLocation *, size_t *, size_t, unsigned long long,
     hipStream_t));
NEW(discard, hipError_t, (void **, size_t *, size_t, unsigned long long, hipStream_t));
NEW(get_default, hipError_t, (hipMemPool_t *, hipMemLocation *, hipMemAllocationType));
NEW(library_load, hipError_t,
    (void **, const void *, void *, void **, unsigned, void *, void **, unsigned));
NEW(library_unload, hipError_t, (void *));
NEW(library_module, hipError_t, (hipModule_t *, void *));
NEW(library_global, hipError_t, (void **, size_t *, void *, const char *));
NEW(library_managed, hipError_t, (void **, size_t *, void *, const char *));
NEW(init_device, hipError_t, (int, unsigned, unsigned));
NEW(flush_writes, hipError_t, (int, int));
NEW(address_spt, hipError_t, (const char *, void **, int, uint64_t, void *));

static void find_all(void)
{
	const struct {
		void *at;
		const char *name;
	} list[] = {
		{&green_create, "hipGreenCtxCreate"},
		{&primary_of, "hipDeviceGetExecutionCtx"},
		{&context_stream, "hipExecutionCtxStreamCreate"},
		{&context_destroy, "hipExecutionCtxDestroy"},
		{&context_record, "hipExecutionCtxRecordEvent"},
		{&context_sync, "hipExecutionCtxSynchronize"},
		{&get_pool, "hipMemGetMemPool"},
		{&set_pool, "hipMemSetMemPool"},
		{&batch, "hipMemcpyBatchAsync"},
		{&boxes, "hipMemcpy3DBatchAsync"},
		{&peer_box, "hipMemcpy3DPeer"},
		{&prefetch, "hipMemPrefetchBatchAsync"},
		{&get_default, "hipMemGetDefaultMemPool"},
		{&library_load, "hipLibraryLoadData"},
		{&library_unload, "hipLibraryUnload"},
		{&library_module, "hipLibraryGetModule"},
		{&library_global, "hipLibraryGetGlobal"},
		{&library_managed, "hipLibraryGetManaged"},
		{&init_device, "hipInitDevice"},
		{&flush_writes, "hipDeviceFlushGPUDirectRDMAWrites"},
		{&discard, "hipMemDiscardBatchAsync"},
		{&address_spt, "hipGetProcAddress_spt"},
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

/* What a synchronization of the context has waited for is free, even to a pool that may not find
 * out by itself what has completed. */
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

/* The runtime takes the pool in every call. */
static void usable(hipMemPool_t pool)
{
	uint64_t threshold = 1 << 20, got = 0;
	hipMemPool_t is, was;
	void *p, *q;

	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &got));
	CHECK(got == threshold);
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, NULL));
	OK(hipDeviceGetMemPool(&was, 0));
	OK(hipDeviceSetMemPool(0, pool));
	OK(hipDeviceGetMemPool(&is, 0));
	CHECK(is == pool);
	q = take(NULL);
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == 2 * BYTES);
	fill(p, 1);
	fill(q, 2);
	CHECK(holds(p, 1) && holds(q, 2));
	OK(hipFreeAsync(p, NULL));
	OK(hipFree(q));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSetMemPool(0, was));
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == 0);
}

static void default_pool(void)
{
	hipMemLocation here = {hipMemLocationTypeDevice, 0}, none = {hipMemLocationTypeDevice, 99},
		       host = {(hipMemLocationType)2, 0}, nowhere = {(hipMemLocationType)0, 0};
	hipMemPool_t usual, is, managed;

	OK(hipDeviceGetDefaultMemPool(&usual, 0));
	OK(get_default(&is, &here, hipMemAllocationTypePinned));
	CHECK(is == usual);
	usable(is);
	OK(get_default(&managed, &here, (hipMemAllocationType)2));
	CHECK(managed && managed != usual);
	usable(managed);
	GIVES(hipErrorInvalidValue, get_default(NULL, &here, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_default(&is, NULL, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_default(&is, &none, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_default(&is, &host, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_default(&is, &nowhere, hipMemAllocationTypePinned));
	GIVES(hipErrorInvalidValue, get_default(&is, &here, (hipMemAllocationType)9));
}

/* A pool that came by a call which somashim does not have: a runtime that is newer than all that
 * somashim knows is believed, others are not. */
static void foreign_pool(void)
{
	hipMemPool_t (*new_pool)(int) = (hipMemPool_t(*)(int))sim_must("somasim_new_pool");
	hipMemPool_t gone = make_pool(0, hipMemHandleTypeNone), pool;
	uint64_t threshold = 1;
	int version;
	void *p;

	OK(hipRuntimeGetVersion(&version));
	pool = new_pool(0);
	OK(hipMemPoolDestroy(gone));
	if (version >= 80000000) {
		usable(pool);
	} else {
		GIVES(hipErrorInvalidValue,
		      hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
		GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&p, BYTES, pool, NULL));
		GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(0, pool));
	}
	/* One of ours that is gone reaches no runtime. */
	GIVES(hipErrorInvalidValue,
	      hipMemPoolSetAttribute(gone, hipMemPoolAttrReleaseThreshold, &threshold));
	GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&p, BYTES, gone, NULL));
}

/* The calls for code that is loaded as a library reach the runtime. */
static void library(void)
{
	hipModule_t module = NULL;
	void *code, *p;
	size_t size;

	OK(library_load(&code, "code", NULL, NULL, 0, NULL, NULL, 0));
	OK(library_module(&module, code));
	CHECK(module);
	GIVES((hipError_t)800, hipModuleUnload(module));
	GIVES(hipErrorNotFound, library_global(&p, &size, code, "no such variable"));
	GIVES(hipErrorNotFound, library_managed(&p, &size, code, "no such variable"));
	GIVES(hipErrorInvalidHandle, library_module(&module, NULL));
	GIVES(hipErrorInvalidHandle, library_global(&p, &size, NULL, "x"));
	OK(library_unload(code));
	OK(init_device(0, 0, 0));
	GIVES(hipErrorInvalidDevice, init_device(99, 0, 0));
	OK(flush_writes(0, 0));
}

/* Up to 7.2 the copies before a refused one are made; later none is, and none is named. */
static void lists(void)
{
	enum { N = 1000 };
	struct {
		int type;
		union {
			struct {
				void *p;
				size_t row, rows;
				hipMemLocation at;
			};
			char all[32];
		};
	} host = {1, {{NULL, 0, 0, {0}}}}, dev = {1, {{NULL, 0, 0, {0}}}};
	struct {
		char src[40], dst[40];
		hipExtent box;
		int order;
		unsigned flags;
	} op = {.order = 1};
	struct {
		void *a;
		struct hipPos ap;
		hipPitchedPtr s;
		int sd;
		void *b;
		struct hipPos bp;
		hipPitchedPtr d;
		int dd;
		hipExtent box;
	} peer;
	static unsigned char from[2 * N], got[N];
	hipMemLocation here = {hipMemLocationTypeDevice, 0};
	size_t sizes[] = {N, N + 1, N}, failed = 99, zero = 0;
	void *dst[3], *src[3];
	hipStream_t s;
	int version;
	bool made;

	memset(from, 7, sizeof(from));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		OK(hipMalloc(&dst[i], N));
		OK(hipMemset(dst[i], i, N));
		src[i] = from;
	}
	OK(hipDeviceSynchronize());
	GIVES(hipErrorInvalidValue, batch(dst, src, sizes, 3, NULL, NULL, 0, &failed, s));
	OK(hipRuntimeGetVersion(&version));
	made = version < 70300000;
	CHECK(failed == (made ? 1 : SIZE_MAX));
	OK(hipStreamSynchronize(s));
	for (int i = 0; i < 3; i++) {
		int is = i || !made ? i : 7;

		OK(hipMemcpy(got, dst[i], N, hipMemcpyDeviceToHost));
		CHECK(got[0] == is && got[N - 1] == is);
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
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"streams", streams},
		{"record", record},
		{"sync", sync},
		{"detached", detached},
		{"pools", pools},
		{"default_pool", default_pool},
		{"foreign_pool", foreign_pool},
		{"library", library},
		{"lists", lists},
		{"address", address},
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

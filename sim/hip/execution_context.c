/* SPDX-License-Identifier: MIT */
/*
 * Execution contexts (7.14), and what else is newer than 7.2: pools by place, batches, and
 * prefetches of lists. A context here only has streams; it divides no device.
 *
 * Locks: lock (which streams a context has), above the locks of streams.
 */
#include <stdlib.h>
#include <string.h>

#include "hip.h"
#include "pool.h"

#define STREAMS 256

struct context {
	int device;
	bool primary;
	unsigned long long id;
	unsigned count;
	hipStream_t streams[STREAMS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *primary[SIM_MAX_DEVICES];
static unsigned long long last_id;

static struct context *context_new(int device, bool is_primary)
{
	struct context *c = calloc(1, sizeof *c);

	if (c) {
		c->device = device;
		c->primary = is_primary;
		c->id = ++last_id;
	}
	return c;
}

hipError_t i_hipGreenCtxCreate(void **out, void *desc, int device, unsigned flags)
{
	struct context *c;

	if (!out || !desc || flags)
		return hipErrorInvalidValue;
	if (check_device(device))
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	c = context_new(device, false);
	pthread_mutex_unlock(&lock);
	*out = c;
	return c ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t i_hipDeviceGetExecutionCtx(void **out, int device)
{
	if (!out)
		return hipErrorInvalidValue;
	if (check_device(device))
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		primary[device] = context_new(device, true);
	*out = primary[device];
	pthread_mutex_unlock(&lock);
	return *out ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t i_hipExecutionCtxGetDevice(int *device, void *ctx)
{
	if (!device || !ctx)
		return hipErrorInvalidValue;
	*device = ((struct context *)ctx)->device;
	return hipSuccess;
}

hipError_t i_hipExecutionCtxGetId(void *ctx, unsigned long long *id)
{
	if (!ctx || !id)
		return hipErrorInvalidValue;
	*id = ((struct context *)ctx)->id;
	return hipSuccess;
}

/* Those that are no more leave here. Lock held. */
static void tidy(struct context *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->count; i++)
		if (stream_of(c->streams[i]))
			c->streams[n++] = c->streams[i];
	c->count = n;
}

hipError_t i_hipExecutionCtxStreamCreate(hipStream_t *out, void *ctx, unsigned flags, int priority)
{
	struct context *c = ctx;
	hipError_t e;

	if (!out || !c)
		return hipErrorInvalidValue;
	e = stream_create_on(c->device, out, flags, priority);
	if (e)
		return e;
	pthread_mutex_lock(&lock);
	tidy(c);
	if (c->count < STREAMS)
		c->streams[c->count++] = *out;
	pthread_mutex_unlock(&lock);
	return hipSuccess;
}

hipError_t i_hipExecutionCtxDestroy(void *ctx)
{
	struct context *c = ctx;

	if (!c || c->primary)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&lock);
	tidy(c);
	for (unsigned i = 0; i < c->count; i++)
		atomic_store(&stream_of(c->streams[i])->detached, true);
	pthread_mutex_unlock(&lock);
	free(c);
	return hipSuccess;
}

/* As a program would with each stream for itself. */
static hipError_t each(struct context *c, hipError_t (*what)(hipStream_t, void *), void *arg)
{
	hipError_t e = hipSuccess;
	hipStream_t list[STREAMS];
	unsigned n;

	if (!c)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&lock);
	tidy(c);
	n = c->count;
	memcpy(list, c->streams, n * sizeof *list);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < n && !e; i++)
		e = what(list[i], arg);
	return e;
}

static hipError_t wait_one(hipStream_t s, void *arg)
{
	return i_hipStreamSynchronize(s);
}

static hipError_t wait_for(hipStream_t s, void *event)
{
	return i_hipStreamWaitEvent(s, event, 0);
}

/* The first stream waits for the others, and the event is recorded there. */
static hipError_t gather(hipStream_t s, void *first)
{
	hipEvent_t e;
	hipError_t err;

	if (!*(hipStream_t *)first) {
		*(hipStream_t *)first = s;
		return hipSuccess;
	}
	err = i_hipEventCreateWithFlags(&e, hipEventDisableTiming);
	if (!err)
		err = i_hipEventRecord(e, s);
	if (!err)
		err = i_hipStreamWaitEvent(*(hipStream_t *)first, e, 0);
	i_hipEventDestroy(e);
	return err;
}

hipError_t i_hipExecutionCtxSynchronize(void *ctx)
{
	return each(ctx, wait_one, NULL);
}

hipError_t i_hipExecutionCtxWaitEvent(void *ctx, hipEvent_t event)
{
	return event ? each(ctx, wait_for, event) : hipErrorInvalidHandle;
}

hipError_t i_hipExecutionCtxRecordEvent(void *ctx, hipEvent_t event)
{
	hipStream_t first = NULL;
	hipError_t e;

	if (!event)
		return hipErrorInvalidHandle;
	e = each(ctx, gather, &first);
	return e || !first ? e : i_hipEventRecord(event, first);
}

/* ---- pools by place ------------------------------------------------------ */

static bool place(const hipMemLocation *at, hipMemAllocationType type)
{
	return at && at->type == hipMemLocationTypeDevice && type == hipMemAllocationTypePinned &&
	       !check_device(at->id);
}

hipError_t i_hipMemGetMemPool(hipMemPool_t *out, hipMemLocation *at, hipMemAllocationType type)
{
	return out && place(at, type) ? i_hipDeviceGetMemPool(out, at->id) : hipErrorInvalidValue;
}

hipError_t i_hipMemSetMemPool(hipMemLocation *at, hipMemAllocationType type, hipMemPool_t pool)
{
	hipError_t e = place(at, type) ? i_hipDeviceSetMemPool(at->id, pool) : hipErrorInvalidValue;

	return e == hipErrorInvalidDevice ? hipErrorInvalidValue : e;
}

/* ---- batches ------------------------------------------------------------- */

hipError_t i_hipMemcpyBatchAsync(void **dst, void **src, size_t *sizes, size_t count, void *attrs,
				 size_t *which, size_t attr_count, size_t *failed,
				 hipStream_t stream)
{
	if (!dst || !src || !sizes || !count)
		return hipErrorInvalidValue;
	if (attr_count)
		return hipErrorNotSupported; /* as 7.2.4 */
	if (failed)
		*failed = SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		hipError_t e = i_hipMemcpyAsync(dst[i], src[i], sizes[i], hipMemcpyDefault, stream);

		if (e) {
			if (failed)
				*failed = i;
			return e;
		}
	}
	return hipSuccess;
}

hipError_t i_hipGetProcAddress_spt(const char *symbol, void **pfn, int version, uint64_t flags,
				   int *status)
{
	return i_hipGetProcAddress(symbol, pfn, version, flags ? flags : 2, status);
}

/* SPDX-License-Identifier: MIT */
/*
 * Execution contexts (7.14). Here a context only has streams; it does not divide a device.
 *
 * Locks: lock guards which streams a context has. Nothing is taken inside it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/macros.h"
#include "hip/entry_points.h"
#include "hip/handle.h"
#include "hip/stream.h"
#include "hip/thread_state.h"

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

/* Forgets streams that were destroyed. Caller holds lock. */
static void forget_destroyed(struct context *c)
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
	forget_destroyed(c);
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
	forget_destroyed(c);
	for (unsigned i = 0; i < c->count; i++)
		atomic_store(&stream_of(c->streams[i])->detached, true);
	pthread_mutex_unlock(&lock);
	free(c);
	return hipSuccess;
}

/* Calls `what` for each stream, as a program could do itself. */
static hipError_t each(struct context *c, hipError_t (*what)(hipStream_t, void *), void *arg)
{
	hipError_t e = hipSuccess;
	hipStream_t list[STREAMS];
	unsigned n;

	if (!c)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&lock);
	forget_destroyed(c);
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

/* Makes the first stream wait for the others; the event is then recorded on it. */
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

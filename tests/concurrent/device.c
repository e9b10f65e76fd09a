/* SPDX-License-Identifier: MIT */
/*
 * The fake device with clocks: row[s][t] is the number of the last command of stream t that is
 * ordered before the next command of stream s. Records copy a row, waits join it, those of the core
 * as well as those of the program.
 *
 * The null stream joins the blocking streams as the runtime's does: when a command is enqueued
 * there, it waits for what they were given before, and their next commands wait for it. A stream
 * that was destroyed is joined no more, and one that begins at the same handle is not ordered after
 * it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "concurrent.h"

struct ss_fake *fake;
static struct ss_driver inner;
static atomic_ulong waits;
static bool free_waits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before that of the fake device */
static uint64_t row[STREAMS][STREAMS];
static struct {
	atomic_bool blocking;
	uint64_t begun;     /* number of its handle's last command before the stream was created */
	uint64_t joined;    /* commands that the null stream has waited for */
	uint64_t seen_null; /* commands of the null stream that this stream has waited for */
} state[STREAMS];

/* What a fence of the core, or an event of the program, stands for. */
struct point {
	struct ss_fence fence;
	uint64_t row[STREAMS];
};

void *native_of(int stream)
{
	return stream == NULL_STREAM ? NULL : (void *)(uintptr_t)(0x1000 + 16 * stream);
}

static int stream_of(const void *native)
{
	uintptr_t s = native ? ((uintptr_t)native - 0x1000) / 16 : NULL_STREAM;

	if (s >= STREAMS)
		wrong("the core used a stream that is none: %p", native);
	return (int)s;
}

static uint64_t enqueued(int s)
{
	return ss_fake_enqueued(fake, 0, native_of(s));
}

static void join_row(int s, const uint64_t from[STREAMS])
{
	for (int t = 0; t < STREAMS; t++)
		if (row[s][t] < from[t])
			row[s][t] = from[t];
}

/* The next command of s waits for all of t. The runtime does this by itself, so it does not
 * fail. */
static void order_after(int s, int t)
{
	struct ss_fence f;

	while (inner.fence_record(inner.ctx, 0, native_of(t), &f) != SS_OK)
		;
	while (inner.fence_wait(inner.ctx, 0, native_of(s), &f) != SS_OK)
		;
	inner.fence_release(inner.ctx, &f);
	join_row(s, row[t]);
	row[s][t] = enqueued(t);
}

/* A command is about to be enqueued on s. Lock held. */
static void join(int s)
{
	if (s == NULL_STREAM) {
		for (int t = 0; t < NULL_STREAM; t++)
			if (state[t].blocking && enqueued(t) > state[t].joined) {
				state[t].joined = enqueued(t);
				order_after(s, t);
			}
	} else if (state[s].blocking && enqueued(NULL_STREAM) > state[s].seen_null) {
		state[s].seen_null = enqueued(NULL_STREAM);
		order_after(s, NULL_STREAM);
	}
}

/* A record is a command too. */
static enum ss_status fence_record(void *ctx, int dev, void *native, struct ss_fence *out)
{
	struct point *p = calloc(1, sizeof(*p));
	int s = stream_of(native);
	enum ss_status st;

	if (!p)
		return SS_ERR_NOMEM;
	pthread_mutex_lock(&lock);
	join(s);
	ss_fake_enqueue(fake, dev, native);
	st = inner.fence_record(ctx, dev, native, &p->fence);
	memcpy(p->row, row[s], sizeof(p->row));
	p->row[s] = enqueued(s);
	pthread_mutex_unlock(&lock);
	if (st != SS_OK) {
		free(p);
		return st;
	}
	*out = p->fence;
	out->h = p;
	return SS_OK;
}

static enum ss_status fence_query(void *ctx, const struct ss_fence *fence)
{
	const struct point *p = fence->h;

	return inner.fence_query(ctx, &p->fence);
}

static enum ss_status fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence)
{
	const struct point *p = fence->h;
	int s = stream_of(native);
	enum ss_status st;

	pthread_mutex_lock(&lock);
	join(s);
	st = inner.fence_wait(ctx, dev, native, &p->fence);
	if (st == SS_OK)
		join_row(s, p->row);
	pthread_mutex_unlock(&lock);
	return st;
}

static void fence_release(void *ctx, struct ss_fence *fence)
{
	struct point *p = fence->h;

	inner.fence_release(ctx, &p->fence);
	free(p);
}

/* Where it waits for the device, the core gives it memory that may still be in use: what was
 * exported goes with the hipFree, which would have waited itself. */
static enum ss_status segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				   size_t size)
{
	if (backing == SS_BACKING_HIP && free_waits)
		device_drain_all();
	shadow_gone(ptr, size);
	return inner.segment_free(ctx, dev, backing, ptr, size);
}

static enum ss_status unmap(void *ctx, int dev, void *va, size_t size)
{
	shadow_gone(va, size);
	return inner.unmap(ctx, dev, va, size);
}

/* On a busy machine a pause may take long, so some take a millisecond. */
static void pause_thread(void *ctx)
{
	static atomic_uint pauses;

	(void)ctx;
	if (atomic_fetch_add(&pauses, 1) % 4 == 0)
		ss_fake_advance_ms(fake, 1);
	sched_yield();
}

/* While the core sleeps, the device works. */
static void on_sleep(void *arg, unsigned ms)
{
	(void)arg;
	(void)ms;
	atomic_fetch_add(&waits, 1);
	device_work(UINT64_MAX);
}

static uint64_t nap(void *ctx, unsigned us)
{
	atomic_fetch_add(&waits, 1);
	pause_thread(ctx);
	device_work(UINT64_MAX);
	return us;
}

unsigned long device_waits(void)
{
	return atomic_load(&waits);
}

struct ss_driver device_create(const struct ss_fake_config *config)
{
	struct ss_driver drv;

	free_waits = config->hip_release_waits;
	memset(row, 0, sizeof(row));
	memset(state, 0, sizeof(state));
	fake = ss_fake_create(config);
	ss_fake_on_sleep(fake, on_sleep, NULL);
	drv = inner = ss_fake_driver(fake);
	drv.fence_record = fence_record;
	drv.fence_query = fence_query;
	drv.fence_wait = fence_wait;
	drv.fence_release = fence_release;
	drv.segment_free = segment_free;
	drv.unmap = unmap;
	drv.pause = pause_thread;
	drv.nap = nap;
	return drv;
}

void device_destroy(void)
{
	ss_fake_destroy(fake);
}

void device_stream(int stream, bool blocking)
{
	pthread_mutex_lock(&lock);
	state[stream].blocking = blocking;
	state[stream].begun = state[stream].joined = enqueued(stream);
	state[stream].seen_null = 0;
	memset(row[stream], 0, sizeof(row[stream]));
	pthread_mutex_unlock(&lock);
}

bool device_joins(int s, int t)
{
	return (s == NULL_STREAM && state[t].blocking) || (t == NULL_STREAM && state[s].blocking);
}

uint64_t enqueue(int stream)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	join(stream);
	ss_fake_enqueue(fake, 0, native_of(stream));
	n = enqueued(stream);
	pthread_mutex_unlock(&lock);
	return n;
}

void positions(uint64_t out[STREAMS])
{
	for (int s = 0; s < STREAMS; s++)
		out[s] = enqueued(s);
}

/* Lock held. */
static bool is_ordered(int s, uint64_t n, int stream)
{
	if ((s == stream && n > state[s].begun) || row[stream][s] >= n)
		return true;
	/* What the next command joins. */
	if (stream != NULL_STREAM)
		return state[stream].blocking && (s == NULL_STREAM || row[NULL_STREAM][s] >= n);
	for (int t = 0; t < NULL_STREAM; t++)
		if (state[t].blocking && ((s == t && n > state[t].begun) || row[t][s] >= n))
			return true;
	return false;
}

bool is_before(int s, uint64_t n, int stream)
{
	bool before;

	if (ss_fake_done(fake, 0, native_of(s)) >= n)
		return true;
	if (stream == NO_STREAM)
		return false;
	pthread_mutex_lock(&lock);
	before = is_ordered(s, n, stream);
	pthread_mutex_unlock(&lock);
	return before;
}

bool device_record(int stream, struct ss_fence *out)
{
	return fence_record(inner.ctx, 0, native_of(stream), out) == SS_OK;
}

bool device_wait(int stream, const struct ss_fence *fence)
{
	return fence_wait(inner.ctx, 0, native_of(stream), fence) == SS_OK;
}

void device_forget(struct ss_fence *fence)
{
	fence_release(inner.ctx, fence);
}

void device_drain(int stream)
{
	for (int t = 0; stream == NULL_STREAM && t < NULL_STREAM; t++)
		if (state[t].blocking)
			ss_fake_drain(fake, 0, native_of(t));
	ss_fake_drain(fake, 0, native_of(stream));
}

void device_drain_all(void)
{
	for (int s = 0; s < STREAMS; s++)
		device_drain(s);
}

void device_work(uint64_t random)
{
	for (int s = 0; s < STREAMS; s++)
		if (random >> s & 1)
			ss_fake_progress(fake, 0, native_of(s), 1 + random % 64);
}

/* SPDX-License-Identifier: MIT */
/*
 * The fake device with clocks: row[s][t] is the number of the last command of stream t that is ordered
 * before the next command of stream s. Records copy a row, waits join it, those of the core as well as
 * those of the program.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "concurrent.h"

struct ss_fake *fake;
static struct ss_driver inner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before that of the fake device */
static uint64_t row[STREAMS][STREAMS];

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

static enum ss_status fence_record(void *ctx, int dev, void *native, struct ss_fence *out)
{
	struct point *p = calloc(1, sizeof(*p));
	int s = stream_of(native);
	enum ss_status st;

	if (!p)
		return SS_ERR_NOMEM;
	pthread_mutex_lock(&lock);
	st = inner.fence_record(ctx, dev, native, &p->fence);
	memcpy(p->row, row[s], sizeof(p->row));
	p->row[s] = p->fence.value;
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
	st = inner.fence_wait(ctx, dev, native, &p->fence);
	for (int t = 0; st == SS_OK && t < STREAMS; t++)
		if (row[s][t] < p->row[t])
			row[s][t] = p->row[t];
	pthread_mutex_unlock(&lock);
	return st;
}

static void fence_release(void *ctx, struct ss_fence *fence)
{
	struct point *p = fence->h;

	inner.fence_release(ctx, &p->fence);
	free(p);
}

static enum ss_status segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr, size_t size)
{
	shadow_gone(ptr, size);
	return inner.segment_free(ctx, dev, backing, ptr, size);
}

static enum ss_status unmap(void *ctx, int dev, void *va, size_t size)
{
	shadow_gone(va, size);
	return inner.unmap(ctx, dev, va, size);
}

static void pause_thread(void *ctx)
{
	(void)ctx;
	sched_yield();
}

/* While the core sleeps, the device works. */
static void on_sleep(void *arg, unsigned ms)
{
	(void)arg;
	device_work(ms);
}

struct ss_driver device_create(const struct ss_fake_config *config)
{
	struct ss_driver drv;

	memset(row, 0, sizeof(row));
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
	return drv;
}

void device_destroy(void)
{
	ss_fake_destroy(fake);
}

uint64_t enqueue(int stream)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	ss_fake_enqueue(fake, 0, native_of(stream));
	n = ss_fake_enqueued(fake, 0, native_of(stream));
	pthread_mutex_unlock(&lock);
	return n;
}

void positions(uint64_t out[STREAMS])
{
	for (int s = 0; s < STREAMS; s++)
		out[s] = ss_fake_enqueued(fake, 0, native_of(s));
}

bool is_before(int s, uint64_t n, int stream)
{
	bool before;

	if (s == stream || ss_fake_done(fake, 0, native_of(s)) >= n)
		return true;
	if (stream == NO_STREAM)
		return false;
	pthread_mutex_lock(&lock);
	before = row[stream][s] >= n;
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

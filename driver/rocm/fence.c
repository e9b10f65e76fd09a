/* SPDX-License-Identifier: MIT */
/*
 * Fences tell the host which work of a stream has completed.
 *
 * SS_FENCE_EVENT records a pooled event without timing, which is one barrier packet with a signal.
 * SS_FENCE_SIGNAL has one counter per stream, which hipStreamWriteValue64 raises and the host
 * reads. A signal takes twice the packets, but is legal during captures of every mode. (Never on a
 * stream that captures: since 7.15 its graph would do the write.)
 *
 * Locks: pool_lock, for idle events and counters. Never held across a call.
 */
#include <pthread.h>
#include <stdlib.h>

#include "driver/rocm/calls.h"
#include "driver/rocm/fence.h"

#define IDLE_MAX 256  /* idle events kept per device; more are destroyed */
#define SLOTS 512     /* counters per page of host memory */

/* The counter of one stream. After the destruction of the stream another stream may use the
 * counter, but only after the last value has arrived; otherwise the values of the two streams could
 * arrive out of order. */
struct counter {
	void *native;     /* NULL: the null stream */
	bool spare;       /* its stream was destroyed */
	pthread_t thread; /* the owner, if it is a per-thread stream */
	int dev;
	_Atomic uint64_t last; /* the value of the newest fence */
	atomic_bool dead;      /* the device was reset */
	hsa_signal_t signal;   /* handle 0: `value` is a slot of a host page instead */
	volatile uint64_t *value;
	struct counter *next;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static hipEvent_t idle[SS_MAX_DEVICES][IDLE_MAX];
static unsigned idle_count[SS_MAX_DEVICES];
static uint32_t generation[SS_MAX_DEVICES]; /* the number of device resets */
static struct counter *counters;
static volatile uint64_t *page[SS_MAX_DEVICES];
static unsigned page_left[SS_MAX_DEVICES];

/* ---- events ------------------------------------------------------------- */

static hipEvent_t event_take(int dev)
{
	hipEvent_t e = NULL;
	struct ss_scope s;

	pthread_mutex_lock(&pool_lock);
	if (idle_count[dev])
		e = idle[dev][--idle_count[dev]];
	pthread_mutex_unlock(&pool_lock);
	if (e || !ss_scope_open(&s, dev))
		return e;
	if (SS_HIP(hipEventCreateWithFlags, &e, hipEventDisableTiming) != hipSuccess)
		e = NULL;
	ss_scope_close(&s);
	return e;
}

static void event_give(int dev, hipEvent_t e, uint32_t gen)
{
	bool kept = false;

	pthread_mutex_lock(&pool_lock);
	if (gen != generation[dev]) {
		kept = true; /* hipDeviceReset has destroyed it */
	} else if (idle_count[dev] < IDLE_MAX) {
		idle[dev][idle_count[dev]++] = e;
		kept = true;
	}
	pthread_mutex_unlock(&pool_lock);
	if (kept)
		return;
	ss_enter();
	(void)SS_HIP(hipEventDestroy, e);
	ss_leave();
}

static enum ss_status record_event(int dev, void *native, struct ss_fence *out)
{
	hipEvent_t e = event_take(dev);
	struct ss_scope s;
	hipError_t err;

	if (!e)
		return SS_ERR_FAILED;
	pthread_mutex_lock(&pool_lock);
	out->value = generation[dev];
	pthread_mutex_unlock(&pool_lock);
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipEventRecord, e, native);
	ss_scope_close(&s);
	if (err != hipSuccess) {
		event_give(dev, e, (uint32_t)out->value);
		return ss_rocm_status(err);
	}
	out->h = e;
	return SS_OK;
}

/* From 7.0 on, querying an event of an unrelated stream ends a capture unless the thread is in
 * relaxed mode (observed). A capture may begin at any moment, so in these releases the mode
 * is always exchanged. */
static enum ss_status query_event(const struct ss_fence *fence)
{
	bool relax = ss_rocm.quirks[fence->device] & SS_Q_QUERY_IN_CAPTURE, stale;
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	hipError_t err;

	pthread_mutex_lock(&pool_lock);
	stale = fence->value != generation[fence->device];
	pthread_mutex_unlock(&pool_lock);
	if (stale)
		return SS_OK; /* the reset has ended all work */
	ss_enter();
	if (relax && SS_HIP(hipThreadExchangeStreamCaptureMode, &mode) != hipSuccess) {
		ss_leave();
		return SS_ERR_NOT_READY;
	}
	err = SS_HIP(hipEventQuery, fence->h);
	if (relax)
		(void)SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
	ss_leave();
	return ss_rocm_status(err);
}

/* In relaxed mode for the same reason. The null stream must not be touched during a capture. */
enum ss_status ss_rocm_stream_idle(void *ctx, int dev, void *native)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!native && ss_capture_live())
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
	if (err == hipSuccess) {
		err = SS_HIP(hipStreamQuery, native);
		(void)SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
	}
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

/* ---- counters ----------------------------------------------------------- */

static uint64_t counter_read(const struct counter *c)
{
	if (c->signal.handle)
		return (uint64_t)ss_rocm.f.hsa_signal_load_scacquire(c->signal);
	return __atomic_load_n(c->value, __ATOMIC_ACQUIRE);
}

static struct counter *counter_create(int dev)
{
	struct counter *c = calloc(1, sizeof(*c));
	volatile hsa_signal_value_t *value = NULL;
	struct ss_scope s;
	void *p = NULL;

	if (!c || !ss_scope_open(&s, dev)) {
		free(c);
		return NULL;
	}
	c->dev = dev;
	if (ss_rocm.f.hsa_amd_signal_create && ss_rocm.f.hsa_amd_signal_value_pointer &&
	    ss_rocm.f.hsa_signal_load_scacquire &&
	    ss_rocm.f.hsa_amd_signal_create(0, 0, NULL, 0, &c->signal) == HSA_STATUS_SUCCESS) {
		if (ss_rocm.f.hsa_amd_signal_value_pointer(c->signal, &value) ==
		    HSA_STATUS_SUCCESS) {
			c->value = (volatile uint64_t *)value;
		} else {
			ss_rocm.f.hsa_signal_destroy(c->signal);
			c->signal.handle = 0;
		}
	}
	if (!c->value) {
		pthread_mutex_lock(&pool_lock);
		if (page_left[dev])
			c->value = &page[dev][--page_left[dev]];
		pthread_mutex_unlock(&pool_lock);
	}
	/* hipHostMalloc is not legal during a capture. */
	if (!c->value && !ss_capture_live() &&
	    SS_HIP(hipHostMalloc, &p, SLOTS * sizeof(uint64_t), 0) == hipSuccess) {
		pthread_mutex_lock(&pool_lock);
		page[dev] = p;
		for (int i = 0; i < SLOTS; i++)
			page[dev][i] = 0;
		page_left[dev] = SLOTS - 1;
		c->value = &page[dev][SLOTS - 1];
		pthread_mutex_unlock(&pool_lock);
	}
	ss_scope_close(&s);
	if (!c->value) {
		free(c);
		return NULL;
	}
	return c;
}

static bool belongs_to(const struct counter *c, int dev, void *native)
{
	return !c->spare && c->native == native && c->dev == dev &&
	       (native != SS_NATIVE_PER_THREAD || pthread_equal(c->thread, pthread_self()));
}

static struct counter *counter_of(int dev, void *native)
{
	struct counter *c, *spare = NULL;

	pthread_mutex_lock(&pool_lock);
	for (c = counters; c && !belongs_to(c, dev, native); c = c->next)
		if (!spare && c->spare && c->dev == dev && !atomic_load(&c->dead) &&
		    counter_read(c) >= atomic_load(&c->last))
			spare = c;
	if (!c && spare) {
		c = spare;
		c->spare = false;
		c->native = native;
		c->thread = pthread_self();
	}
	pthread_mutex_unlock(&pool_lock);
	if (c)
		return c;
	c = counter_create(dev);
	if (!c)
		return NULL;
	c->native = native;
	c->thread = pthread_self();
	pthread_mutex_lock(&pool_lock);
	c->next = counters;
	counters = c;
	pthread_mutex_unlock(&pool_lock);
	return c;
}

/* Two threads that record on one stream may enqueue their values in the wrong order. A larger value
 * that arrives early is right: its number was taken later, so the work before the smaller number is
 * before the larger number, too. But the smaller value must not overwrite the larger one for good,
 * so a thread that finds a newer number after its write writes the newer number as well. */
static enum ss_status record_signal(int dev, void *native, struct ss_fence *out)
{
	struct counter *c = counter_of(dev, native);
	uint64_t newest, v;
	struct ss_scope s;
	hipError_t err;

	if (!c)
		return SS_ERR_FAILED;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	newest = atomic_fetch_add(&c->last, 1) + 1;
	out->value = newest;
	do {
		v = newest;
		err = SS_HIP(hipStreamWriteValue64, native, (void *)(uintptr_t)c->value, v, 0);
		newest = atomic_load(&c->last);
	} while (err == hipSuccess && newest > v);
	ss_scope_close(&s);
	if (err != hipSuccess)
		return ss_rocm_status(err);
	out->h = c;
	return SS_OK;
}

static enum ss_status query_signal(const struct ss_fence *fence)
{
	const struct counter *c = fence->h;

	if (atomic_load(&c->dead))
		return SS_OK;
	return counter_read(c) >= fence->value ? SS_OK : SS_ERR_NOT_READY;
}

/* ---- the operations ----------------------------------------------------- */

enum ss_status ss_rocm_fence_record(void *ctx, int dev, void *native, struct ss_fence *out)
{
	(void)ctx;
	/* A command on the null stream would join a blocking stream that captures. */
	if (!native && atomic_load(&ss_captures_blocking))
		return SS_ERR_CAPTURE;
	out->kind = (uint32_t)ss_rocm.fence;
	out->device = dev;
	return out->kind == SS_FENCE_SIGNAL ? record_signal(dev, native, out) :
					      record_event(dev, native, out);
}

enum ss_status ss_rocm_fence_query(void *ctx, const struct ss_fence *fence)
{
	(void)ctx;
	return fence->kind == SS_FENCE_SIGNAL ? query_signal(fence) : query_event(fence);
}

enum ss_status ss_rocm_fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence)
{
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	/* hipStreamWaitValue64 runs a kernel that spins, which costs more than the reuse of a block
	 * saves. */
	if (fence->kind == SS_FENCE_SIGNAL)
		return SS_ERR_UNSUPPORTED;
	if (!native && atomic_load(&ss_captures_blocking))
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipStreamWaitEvent, native, fence->h, 0);
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

void ss_rocm_fence_release(void *ctx, struct ss_fence *fence)
{
	(void)ctx;
	if (fence->kind == SS_FENCE_EVENT)
		event_give(fence->device, fence->h, (uint32_t)fence->value);
	fence->h = NULL;
}

void ss_rocm_fence_reset(int dev)
{
	pthread_mutex_lock(&pool_lock);
	generation[dev]++;
	idle_count[dev] = 0;
	page_left[dev] = 0; /* the reset frees the page */
	for (struct counter *c = counters; c; c = c->next)
		if (c->dev == dev) {
			atomic_store(&c->dead, true);
			c->spare = true;
		}
	pthread_mutex_unlock(&pool_lock);
}

void ss_rocm_fence_stream_destroyed(void *native)
{
	if (ss_rocm.fence != SS_FENCE_SIGNAL)
		return;
	pthread_mutex_lock(&pool_lock);
	for (struct counter *c = counters; c; c = c->next)
		if (c->native == native)
			c->spare = true;
	pthread_mutex_unlock(&pool_lock);
}

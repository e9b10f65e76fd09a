/* SPDX-License-Identifier: MIT */
/*
 * The ops table on a real ROCm, and what all its parts lean on.
 *
 * Locks: start_lock, round the storing of what was found. The runtime is asked
 * without it, by every thread that comes first at once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/rocm/rocm.h"

struct ss_rocm ss_rocm;
_Atomic uint64_t ss_rocm_peers[SS_MAX_DEVICES];

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;

/* ---- errors ------------------------------------------------------------- */

int ss_rocm_peek(void)
{
	if (likely(ss_runtime()->major < 7) || !ss_rocm.f.hipPeekAtLastError)
		return hipSuccess;
	return ss_rocm.f.hipPeekAtLastError();
}

hipError_t ss_rocm_settle(int earlier, hipError_t err)
{
	bool keeps = ss_runtime()->major >= 7;
	int dev;

	/* What is not ready is no error to them. */
	if (!keeps || err != hipErrorNotReady) {
		if (ss_rocm.f.hipGetLastError)
			(void)ss_rocm.f.hipGetLastError();
		if (earlier != hipSuccess)
			ss_tls.error = earlier;
	}
	/* But it was the last command, until the next. */
	if (keeps)
		(void)ss_rocm.f.hipGetDevice(&dev);
	return err;
}

enum ss_status ss_rocm_status(hipError_t err)
{
	static const struct { hipError_t err; enum ss_status status; } table[] = {
		{ hipSuccess, SS_OK },
		{ hipErrorOutOfMemory, SS_ERR_NOMEM },
		{ hipErrorInvalidValue, SS_ERR_INVALID },
		{ hipErrorNotReady, SS_ERR_NOT_READY },
		{ hipErrorNotSupported, SS_ERR_UNSUPPORTED },
		{ hipErrorNoDevice, SS_ERR_NO_DEVICE },
		{ hipErrorInvalidDevice, SS_ERR_NO_DEVICE },
		{ hipErrorStreamCaptureUnsupported, SS_ERR_CAPTURE },
		{ hipErrorStreamCaptureImplicit, SS_ERR_CAPTURE },
		{ hipErrorStreamCaptureInvalidated, SS_ERR_CAPTURE },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == err)
			return table[i].status;
	return SS_ERR_FAILED;
}

/* ---- devices ------------------------------------------------------------ */

bool ss_scope_open(struct ss_scope *s, int dev)
{
	ss_enter();
	s->switched = false;
	if (SS_HIP(hipGetDevice, &s->old) != hipSuccess)
		goto fail;
	if (s->old == dev)
		return true;
	if (SS_HIP(hipSetDevice, dev) != hipSuccess)
		goto fail;
	s->switched = true;
	return true;
fail:
	ss_leave();
	return false;
}

void ss_scope_close(struct ss_scope *s)
{
	if (s->switched)
		(void)SS_HIP(hipSetDevice, s->old);
	ss_leave();
}

int ss_rocm_start(const struct ss_options *opt)
{
	struct ss_rocm *r = calloc(1, sizeof(*r));
	int n = 0;

	if (!r)
		return 0;
	ss_enter();
#define X(name) r->f.name = (__typeof__(name) *)ss_runtime_symbol(#name);
	SS_HIP_FUNCTIONS(X)
#undef X
	if (!r->f.hipGetDeviceCount || !r->f.hipGetDevice || !r->f.hipSetDevice)
		n = 0;
	else if (r->f.hipGetDeviceCount(&n) != hipSuccess) {
		n = 0;
		if (r->f.hipGetLastError) /* it was not the program's call */
			(void)r->f.hipGetLastError();
	}
	if (n > SS_MAX_DEVICES)
		n = SS_MAX_DEVICES;
	if (n > 0) {
#define X(name) r->f.name = (__typeof__(name) *)ss_hsa_symbol(#name);
		SS_HSA_FUNCTIONS(X)
#undef X
		r->devices = n;
		/* An event costs half the packets of a value write, and a stream
		 * can wait for it on the device (hip-observed: "what follows"). */
		r->fence = opt->fence == SS_FENCE_SIGNAL ? SS_FENCE_SIGNAL : SS_FENCE_EVENT;
		ss_rocm_hsa_start(r);
		for (int i = 0; i < n; i++)
			r->quirks[i] = ss_quirk_flags(ss_runtime()->major, ss_runtime()->minor,
						      r->hsa[i].known ? r->hsa[i].arch : NULL);
	}
	ss_leave();
	pthread_mutex_lock(&start_lock);
	if (!started) {
		ss_rocm = *r;
		started = true;
	}
	n = ss_rocm.devices;
	pthread_mutex_unlock(&start_lock);
	free(r);
	return n;
}

static int device_count(void *ctx)
{
	(void)ctx;
	return ss_rocm.devices;
}

static enum ss_status device_info(void *ctx, int dev, struct ss_device_info *out)
{
	struct ss_scope s;
	size_t total = 0;
	int integrated = 0;
	const char *why;

	(void)ctx;
	if (dev < 0 || dev >= ss_rocm.devices)
		return SS_ERR_NO_DEVICE;
	memset(out, 0, sizeof(*out));
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	if (SS_HIP(hipDeviceGetName, out->name, (int)sizeof(out->name), dev) != hipSuccess)
		snprintf(out->name, sizeof(out->name), "device %d", dev);
	if (SS_HIP(hipDeviceTotalMem, &total, dev) != hipSuccess)
		(void)SS_HIP(hipMemGetInfo, NULL, &total);
	out->total_bytes = total;
	if (SS_HIP(hipDeviceGetAttribute, &integrated, hipDeviceAttributeIntegrated, dev) ==
	    hipSuccess)
		out->integrated = integrated != 0;
	out->chunk_bytes = ss_rocm_usable(dev, SS_BACKING_VMM, &why) ? ss_rocm_vmm_least(dev) : 0;
	out->no_hsa = !ss_rocm_usable(dev, SS_BACKING_HSA, &why);
	out->best = ss_rocm_best(dev, &why);
	out->query_spoils = ss_rocm.fence == SS_FENCE_EVENT &&
			    ss_rocm.quirks[dev] & SS_Q_QUERY_BEFORE;
	out->unmap_at_exit = ss_rocm.quirks[dev] & SS_Q_EXIT_MAPPED;
	out->access_prefix = ss_rocm.quirks[dev] & SS_Q_ACCESS_PREFIX;
	out->release_waits[SS_BACKING_HIP] = true;
	out->release_waits[SS_BACKING_HSA] = false;
	/* 6.x waits on the null stream, 7.x for every stream that has access;
	 * observed: both for a held blocking stream only. */
	out->release_waits[SS_BACKING_VMM] = true;
	ss_scope_close(&s);
	return SS_OK;
}

static enum ss_status mem_info(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ss_scope s;
	size_t f = 0, t = 0;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemGetInfo, &f, &t);
	ss_scope_close(&s);
	if (err != hipSuccess)
		return ss_rocm_status(err);
	if (free_bytes)
		*free_bytes = f;
	if (total_bytes)
		*total_bytes = t;
	return SS_OK;
}

void ss_rocm_add_peers(int dev, uint64_t peers)
{
	atomic_fetch_or(&ss_rocm_peers[dev], peers);
}

void ss_rocm_device_reset(int dev)
{
	ss_rocm_fence_reset(dev);
	ss_rocm_settle_reset(dev);
}

void ss_rocm_stream_gone(void *native)
{
	ss_rocm_fence_forget(native);
}

enum ss_fence_kind ss_rocm_fence_kind(void)
{
	return (enum ss_fence_kind)ss_rocm.fence;
}

/* ---- time --------------------------------------------------------------- */

static uint64_t now_ms(void *ctx)
{
	struct timespec t;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sleep_ms(void *ctx, unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)ctx;
	nanosleep(&t, NULL);
}

static uint64_t nap(void *ctx, unsigned us)
{
	struct timespec from, to, t = { 0, (long)us * 1000 };
	int64_t ns;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &from);
	nanosleep(&t, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ns = (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec);
	return (uint64_t)ns / 1000;
}

static void pause_now(void *ctx)
{
	(void)ctx;
	sched_yield();
}

struct ss_driver ss_rocm_driver(void)
{
	return (struct ss_driver){
		.device_count = device_count,
		.device_info = device_info,
		.mem_info = mem_info,
		.segment_alloc = ss_rocm_segment_alloc,
		.segment_free = ss_rocm_segment_free,
		.segment_access = ss_rocm_segment_access,
		.vmm_reserve = ss_rocm_vmm_reserve,
		.vmm_unreserve = ss_rocm_vmm_unreserve,
		.chunk_create = ss_rocm_vmm_create,
		.chunk_release = ss_rocm_vmm_release,
		.map = ss_rocm_vmm_map,
		.unmap = ss_rocm_vmm_unmap,
		.set_access = ss_rocm_vmm_access,
		.settle = ss_rocm_vmm_settle,
		.limit = ss_rocm_limit,
		.fence_record = ss_rocm_fence_record,
		.fence_query = ss_rocm_fence_query,
		.stream_idle = ss_rocm_stream_idle,
		.fence_wait = ss_rocm_fence_wait,
		.fence_release = ss_rocm_fence_release,
		.now_ms = now_ms,
		.real_time = true,
		.sleep_ms = sleep_ms,
		.pause = pause_now,
		.nap = nap,
	};
}

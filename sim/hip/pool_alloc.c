/* SPDX-License-Identifier: MIT */
/* hipMallocAsync, hipFreeAsync, and allocation from a given pool. */
#include "device/queue.h"
#include "hip/allocation.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/memory.h"
#include "hip/pool.h"
#include "hip/submit.h"
#include "hip/version.h"

static hipError_t bad_stream(void)
{
	return V52 ? hipErrorInvalidValue : hipErrorInvalidHandle;
}

static hipError_t alloc_async(void **out, size_t size, hipMemPool_t h, bool given,
			      hipStream_t stream)
{
	struct sim_queue *q;
	struct stream *s;
	struct pool *p;
	hipError_t e;

	if (!out)
		return hipErrorInvalidValue;
	if (resolve(stream, &q, &s))
		return bad_stream();
	if (!size) {
		sim_queue_unref(q);
		if (V52)
			return hipErrorInvalidValue;
		*out = NULL;
		return hipSuccess;
	}
	if (atomic_load(&captures_live)) {
		if (s && capture_alloc(s, out, size, &e)) {
			sim_queue_unref(q);
			return e;
		}
		if (V6 && !given && blocking_capture_on(q->device, s)) {
			sim_queue_unref(q);
			return hipErrorStreamCaptureUnsupported;
		}
	}
	pthread_mutex_lock(&pool_lock);
	pool_default(q->device);
	p = given ? pool_of(h) : pool_current[q->device];
	e = p ? pool_alloc(p, out, size, q) : hipErrorInvalidValue;
	pthread_mutex_unlock(&pool_lock);
	sim_queue_unref(q);
	return e;
}

hipError_t i_hipMallocAsync(void **out, size_t size, hipStream_t stream)
{
	return alloc_async(out, size, NULL, false, stream);
}

hipError_t i_hipMallocFromPoolAsync(void **out, size_t size, hipMemPool_t pool, hipStream_t stream)
{
	return alloc_async(out, size, pool, true, stream);
}

hipError_t i_hipFreeAsync(void *ptr, hipStream_t stream)
{
	struct sim_alloc a;
	struct sim_queue *q;
	struct stream *s;
	hipError_t e;

	if (!ptr)
		return V7 ? hipSuccess : hipErrorInvalidValue;
	if (resolve(stream, &q, &s))
		return bad_stream();
	if (s && atomic_load(&captures_live) && capture_free(s, ptr, &e))
		goto out;
	if (!hip_find(ptr, &a))
		e = hipErrorInvalidValue;
	else if (V6 && atomic_load(&captures_live) && blocking_capture_on(q->device, s))
		e = hipErrorStreamCaptureUnsupported;
	else if (a.ownertype == OWNER_POOL)
		e = pool_free_block(&a, q);
	else
		e = memory_free(ptr);
out:
	sim_queue_unref(q);
	return e;
}

/* SPDX-License-Identifier: MIT */
/* Finds the queue of a stream handle, and submits commands to the queue or to a capture. */
#include "device/command.h"
#include "device/device_queues.h"
#include "device/macros.h"
#include "device/queue.h"
#include "hip/capture.h"
#include "hip/handle.h"
#include "hip/submit.h"
#include "hip/thread_state.h"
#include "hip/version.h"

#define ERROR_STREAM_DETACHED ((hipError_t)916)    /* hipErrorStreamDetached of 7.14 */

hipError_t resolve_detached(hipStream_t h, struct sim_queue **q, struct stream **s)
{
	struct stream *st;

	*s = NULL;
	if (h == NULL || (h == STREAM_LEGACY && !V57 && !V52)) {
		*q = sim_null_queue(current_device());
		return hipSuccess;
	}
	if (h == hipStreamPerThread) {
		*q = sim_thread_queue(current_device());
		return hipSuccess;
	}
	st = stream_of(h);
	if (!st)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&st->lock);
	*q = st->queue ? sim_queue_ref(st->queue) : NULL;
	pthread_mutex_unlock(&st->lock);
	if (!*q)
		return hipErrorContextIsDestroyed;
	*s = st;
	return hipSuccess;
}

hipError_t resolve(hipStream_t h, struct sim_queue **q, struct stream **s)
{
	hipError_t e = resolve_detached(h, q, s);

	if (!e && *s && atomic_load(&(*s)->detached)) {
		sim_queue_unref(*q);
		return ERROR_STREAM_DETACHED;
	}
	return e;
}

hipError_t submit(hipStream_t h, struct sim_command *c, bool wait)
{
	struct sim_queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);
	uint64_t seq;

	if (e) {
		sim_command_free(c);
		return e;
	}
	if (unlikely(s && atomic_load(&captures_live)) && capture_submit(s, c, &e)) {
		sim_queue_unref(q);
		return e;
	}
	seq = sim_enqueue(q, c);
	if (wait)
		sim_queue_wait(q, seq);
	sim_queue_unref(q);
	return hipSuccess;
}

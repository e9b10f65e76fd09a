/* SPDX-License-Identifier: MIT */
/* Finds the timeline of a stream handle, and tells the core of streams and their work. */
#ifndef SS_SHIM_TIMELINE_H
#define SS_SHIM_TIMELINE_H

#include <hip/hip_runtime_api.h>
#include <stdint.h>

#include "shim/alloc/observers.h"
#include "shim/check/checker.h"
#include "shim/process/service.h"

#define SS_LEGACY ((hipStream_t)1)     /* hipStreamLegacy, since 6.0 */
#define SS_PER_THREAD ((hipStream_t)2) /* hipStreamPerThread */

/* The timeline of a handle; NULL and *err for an invalid handle. A stream that is not known yet (a
 * thread's own, or one that the shim did not see created) becomes known. */
struct ss_timeline *ss_stream_slow(hipStream_t stream, hipError_t *err);
static inline struct ss_timeline *ss_stream(hipStream_t stream, hipError_t *err)
{
	struct ss_timeline *tl = NULL;

	if (likely((uintptr_t)stream > 2))
		tl = ss_timeline_find(ss_core, stream);
	return likely(tl != NULL) ? tl : ss_stream_slow(stream, err);
}
/* The same for callers whose real call reports the error. */
static inline struct ss_timeline *ss_stream_or_null(hipStream_t stream)
{
	hipError_t err;

	return ss_stream(stream, &err);
}
/* The device of a stream; -1: the handle is invalid. */
int ss_device_of(hipStream_t stream);
/* In the _spt entries a null handle means hipStreamPerThread. */
static inline hipStream_t ss_spt_stream(hipStream_t stream)
{
	return stream ? stream : SS_PER_THREAD;
}

/* After the real create of a stream. */
void ss_stream_register(hipStream_t stream, unsigned int flags, int dev);
/* Before the real destroy, or before the stream becomes unusable: `tl` ends. */
void ss_stream_retire(hipStream_t stream, struct ss_timeline *tl);

/* Before work is enqueued on the stream: makes it known. */
static inline void ss_stream_used(hipStream_t stream)
{
	if ((uintptr_t)stream > 1)
		(void)ss_stream_or_null(stream);
}
/* The same for a copy, which may wait for the stream. The caller calls ss_waiting_end() after the
 * copy. */
static inline struct ss_waiting ss_stream_copies(hipStream_t stream)
{
	return ss_waiting_begin(ss_core, ss_stream_or_null(stream));
}
/* As ss_stream_used() for a list of `count` kernels that are launched, hipLaunchParams (`host`) or
 * hipFunctionLaunchParams. Returns NULL, which is a stream that is known, for use as an
 * argument. */
hipStream_t ss_launches(const void *list, unsigned int count, unsigned int flags, bool host);

/* The stream at offset `at` of a structure, which becomes known; NULL: there is no structure. */
hipStream_t ss_stream_in(const void *config, size_t at);
/* A kernel is about to be launched on the stream, which is returned. */
static inline hipStream_t ss_launch(hipStream_t stream, const void *function, bool host,
				    void **args, void **extra)
{
	if (unlikely(ss_checking))
		ss_check_kernel(ss_stream_or_null(stream), function, host, args, extra);
	return stream;
}
/* The program is about to enqueue a command that waits for a value at ptr, or writes one. Returns
 * the stream. The second function does so for each command of a list of
 * hipStreamBatchMemOpParams. */
static inline hipStream_t ss_value(hipStream_t stream, const void *ptr, size_t size)
{
	if (unlikely(ss_checking))
		ss_check_value(ss_stream_or_null(stream), ptr, size);
	return stream;
}
hipStream_t ss_values(hipStream_t stream, const void *list, unsigned int count);

/* Brackets the real call that enqueues a command which may need the host. */
struct ss_host_command {
	bool on;
	struct ss_timeline *tl;
};
static inline struct ss_host_command ss_host_command_begin(hipStream_t stream)
{
	struct ss_host_command host = {true, ss_stream_or_null(stream)};

	/* The command may become a node of the graph. */
	if (ss_capture_live())
		ss_observer_add(-1, SS_OBSERVER_HOSTNODE);
	ss_host_begin(ss_core);
	return host;
}
/* The same for the launch of a graph. somashim knows only that some nodes of graphs may need the
 * host. After a bypass such nodes may exist unknown to us. */
static inline struct ss_host_command ss_graph_command_begin(hipStream_t stream)
{
	const unsigned some = SS_OBSERVER_HOSTNODE | SS_OBSERVER_UNKNOWN;

	if (likely(!(atomic_load(&ss_observers[0]) & some)))
		return (struct ss_host_command){0};
	return ss_host_command_begin(stream);
}
static inline void ss_host_command_end(const struct ss_host_command *host, bool ok)
{
	if (host->on)
		ss_host_end(ss_core, host->tl, ok);
}

/* A command on this stream uses the memory at ptr, which may be of another device; NULL: of any
 * device. Needed only if the process uses several devices. */
void ss_stream_touch(hipStream_t stream, const void *ptr);
static inline void ss_stream_touch_unknown(hipStream_t stream)
{
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)))
		ss_stream_touch(stream, NULL);
}

#endif

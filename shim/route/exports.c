/* SPDX-License-Identifier: MIT */
/*
 * Every exported symbol, generated from shim/entries.h: is it for us, then the
 * handler, else the real function, with nothing in between.
 *
 * The exports have no version node, so that references with one bind to them
 * (ld.so takes an unversioned definition for any version that is asked for).
 */
#include <stdint.h>

#include "shim/shim.h"

#define FORWARD(name, args) (ss_real.name ? ss_real.name args : ss_real_missing())

#define EXPORT_HANDLED(kind, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(kind))) \
			return FORWARD(name, args); \
		return do_##name args; \
	}

#define EXPORT_SERVE(extra, name, params, args) EXPORT_HANDLED(SS_SERVE, name, params, args)
#define EXPORT_GUARD(extra, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(SS_SERVE))) \
			return ss_serving_ended() ? after_exit_##name args : FORWARD(name, args); \
		return do_##name args; \
	}
/* Looks for itself whether the call is for us, and is the export itself: SS_HOT in shim.h. */
#define EXPORT_HOT(extra, name, params, args)
#define EXPORT_ALWAYS(extra, name, params, args) EXPORT_HANDLED(SS_LATE, name, params, args)
#define EXPORT_WATCH(extra, name, params, args) EXPORT_HANDLED(SS_WATCH, name, params, args)
#define EXPORT_ERROR(extra, name, params, args) EXPORT_HANDLED(SS_ERROR, name, params, args)

#define EXPORT_PLAIN(kind, before, name, params, args) \
	hipError_t name params \
	{ \
		hipError_t err; \
		if (unlikely(ss_pass(kind))) \
			return FORWARD(name, args); \
		before; \
		ss_enter(); \
		err = FORWARD(name, args); \
		ss_leave(); \
		return ss_result(err); \
	}

/* What is noted comes first: it may begin inside the real call. */
#define EXPORT_OBSERVER(extra, name, params, args) \
	EXPORT_PLAIN(SS_NOTE, ss_observer_add(-1, extra), name, params, args)
#define EXPORT_QUEUE(extra, name, params, args) \
	EXPORT_PLAIN(SS_QUEUE, ss_stream_used(extra), name, params, args)
#define EXPORT_QUEUE_ANY(extra, name, params, args) \
	EXPORT_PLAIN(SS_MOVE, ss_stream_used(extra); ss_stream_touch_unknown(extra), name, params, args)
/* `size` bytes from src to dst: not across the end of a block. */
#define EXPORT_COPY(extra, name, params, args) \
	EXPORT_PLAIN(SS_COPY, \
		     if (ss_exceeds_on(extra, dst, size) || ss_exceeds_on(extra, src, size)) \
			     return ss_fail(hipErrorInvalidValue); \
		     ss_stream_used(extra), name, params, args)
/* `count` values of `extra` bytes each. */
#define EXPORT_FILL(extra, name, params, args) \
	EXPORT_PLAIN(SS_FILL, \
		     if (count > SIZE_MAX / (extra) || ss_exceeds_on(stream, dst, count * (extra))) \
			     return ss_fail(hipErrorInvalidValue); \
		     ss_stream_used(stream), name, params, args)
#define EXPORT_CHECK(extra, name, params, args) \
	EXPORT_PLAIN(SS_BOUND, if (extra) return ss_fail(hipErrorInvalidValue), name, params, args)
#define EXPORT_QUERY(extra, name, params, args) \
	EXPORT_PLAIN(SS_LOOK, ss_debts_pay(), name, params, args)
#define EXPORT_PASS(extra, name, params, args) \
	EXPORT_PLAIN(SS_PASS, (void)0, name, params, args)

#define EXPORT_MEMORY(kind, before, dev, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(kind))) \
			return FORWARD(name, args); \
		before; \
		ss_graph_memory_reserve(dev); \
		return ss_result(SS_RETRY(dev, FORWARD(name, args))); \
	}

#define HERE (-1)
#define EXPORT_RETRY(extra, name, params, args) \
	EXPORT_MEMORY(SS_TRY, (void)0, extra, name, params, args)
/* We do not know what a graph does: it may write to the host when nothing else does. */
#define EXPORT_GRAPH(extra, name, params, args) \
	EXPORT_MEMORY(SS_START, ss_stream_used(extra); ss_observer_add(-1, SS_OBSERVER_GRAPH); \
		      ss_stream_touch_unknown(extra), \
		      ss_device_of(extra), name, params, args)

#define EXPORT(kind, extra, name, params, args) EXPORT_##kind(extra, name, params, args)
#define E(kind, extra, name, node, since, params, args) EXPORT(kind, extra, name, params, args)
SS_ENTRIES(E)
#undef E

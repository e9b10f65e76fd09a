/* SPDX-License-Identifier: MIT */
/*
 * Generates every exported symbol from shim/entries.h. Each export calls its handler if the shim
 * serves the call, else the real function with nothing in between.
 *
 * The exports have no version node. ld.so accepts an unversioned definition for any version of a
 * reference, so references with a version bind to them, too.
 */
#include <stdint.h>

#include "driver/rocm/map_turn.h"
#include "shim/alloc/debt.h"
#include "shim/alloc/device_memory.h"
#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/process/outside.h"
#include "shim/alloc/retry.h"
#include "shim/bounds/check.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/process/submit_gate.h"
#include "shim/stream/timeline.h"

#define FORWARD(name, args) (ss_real.name ? ss_real.name args : ss_real_missing())

/* The reports to the checker around a call that is served. */
#define CHECKED_BEGIN(name) if (unlikely(ss_checking)) ss_check_call(#name)
#define CHECKED_END(err) if (unlikely(ss_checking)) ss_check_called(err)
#define CHECKED(name, call) \
	{ \
		hipError_t result_; \
		if (likely(!ss_checking)) \
			return call; \
		ss_check_call(#name); \
		result_ = call; \
		ss_check_called(result_); \
		return result_; \
	}

#define EXPORT_HANDLED(kind, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(kind))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED(name, do_##name args) \
	}

#define EXPORT_SERVE(extra, name, params, args) EXPORT_HANDLED(SS_ENTRY_SERVED, name, params, args)
#define EXPORT_GUARD(extra, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(SS_ENTRY_SERVED)) && !ss_serving_ended()) \
			return FORWARD(name, args); \
		SS_SERVED; \
		if (ss_serving_ended()) \
			return after_exit_##name args; \
		CHECKED(name, do_##name args) \
	}
/* A call that may put work on a device, which is refused once the gate is shut. `open` is the call
 * if the gate is open. */
#define EXPORT_GATED(name, params, args) \
	hipError_t name params \
	{ \
		enum ss_gate gate = ss_gate_enter(); \
		hipError_t err; \
		if (unlikely(gate < SS_GATE_OPEN)) \
			return ss_gate_error(gate); \
		err = open_##name args; \
		ss_gate_leave(gate); \
		return err; \
	}
#define EXPORT_SUBMIT(extra, name, params, args) \
	static inline hipError_t open_##name params \
	{ \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED(name, do_##name args) \
	} \
	EXPORT_GATED(name, params, args)
/* The handler asks ss_pass() itself and is the export itself (SS_HOT in shim/handlers.h). */
#define EXPORT_HOT(extra, name, params, args)
#define EXPORT_ALWAYS(extra, name, params, args) EXPORT_HANDLED(SS_ENTRY_ALWAYS, name, params, args)
#define EXPORT_WATCH(extra, name, params, args) EXPORT_HANDLED(SS_ENTRY_SERVED, name, params, args)
#define EXPORT_ERROR(extra, name, params, args) EXPORT_HANDLED(SS_ENTRY_ERROR, name, params, args)

/* The real call with something before and after it. */
#define BODY_PLAIN(before, after, name, args) \
	{ \
		hipError_t err; \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED_BEGIN(name); \
		before; \
		ss_enter(); \
		err = FORWARD(name, args); \
		ss_leave(); \
		after; \
		CHECKED_END(err); \
		return ss_result(err); \
	}
/* The report to the checker after the real call has succeeded. */
#define TOLD(what) if (unlikely(ss_checking) && err == hipSuccess) what
#define REFUSE do { \
	CHECKED_END(hipErrorInvalidValue); \
	return ss_fail(hipErrorInvalidValue); \
} while (0)
#define EXPORT_PLAIN(before, name, params, args) \
	hipError_t name params BODY_PLAIN(before, (void)0, name, args)
#define EXPORT_AROUND_GATED(before, after, name, params, args) \
	static inline hipError_t open_##name params BODY_PLAIN(before, after, name, args) \
	EXPORT_GATED(name, params, args)
#define EXPORT_PLAIN_GATED(before, name, params, args) \
	EXPORT_AROUND_GATED(before, (void)0, name, params, args)

/* The observer is added first, because it may begin to observe inside the real call. */
#define EXPORT_OBSERVER(extra, name, params, args) \
	EXPORT_PLAIN(ss_observer_add(-1, extra), name, params, args)
/* As OBSERVER, for a call that allocates memory which the host sees, too, at `extra`. */
#define HERE (-1) /* the current device */
#define EXPORT_PINNED(extra, name, params, args) \
	hipError_t name params \
	{ \
		hipError_t err; \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		ss_observer_add(-1, SS_OBSERVER_PINNED); \
		CHECKED_BEGIN(name); \
		ss_enter(); \
		err = FORWARD(name, args); \
		ss_leave(); \
		/* hipHostRegister pins memory that existed before. */ \
		if (err == hipSuccess && (const void *)(extra) != (const void *)ptr) \
			ss_outside_keep(SS_TRACE_OUTSIDE_HOST, extra, HERE, size); \
		if (unlikely(ss_checking) && err == hipSuccess) \
			ss_check_host_memory(extra, size, true); \
		return ss_result(err); \
	}
/* The program's own maps run at the same time as the maps of our pools. */
#define EXPORT_MAP(extra, name, params, args) \
	hipError_t name params \
	{ \
		uint64_t turn; \
		hipError_t err; \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		ss_observer_add(-1, extra); \
		CHECKED_BEGIN(name); \
		ss_enter(); \
		turn = ss_rocm_map_turn_begin(); \
		err = FORWARD(name, args); \
		ss_rocm_map_turn_end(turn); \
		ss_leave(); \
		CHECKED_END(err); \
		return ss_result(err); \
	}
#define EXPORT_QUEUE(extra, name, params, args) \
	EXPORT_PLAIN_GATED(ss_stream_used(extra), name, params, args)
#define EXPORT_QUEUE_ANY(extra, name, params, args) \
	EXPORT_PLAIN_GATED(hipStream_t on_ = (extra); ss_stream_used(on_); ss_stream_touch_unknown(on_); \
		     CHECK_OPAQUE(on_, false), name, params, args)
/* The host may see, or the stream may wait for, values that the shim does not see. */
#define CHECK_OPAQUE(stream, hold) \
	(unlikely(ss_checking) ? ss_check_stream_opaque(ss_stream_or_null(stream), hold, true) : (void)0)
/* The host may write the value that the stream waits for, and may do so after later calls. */
#define EXPORT_QUEUE_WAIT(extra, name, params, args) \
	EXPORT_AROUND_GATED(hipStream_t on_ = (extra); ss_stream_touch_unknown(on_); CHECK_OPAQUE(on_, true); \
		     const struct ss_host_command host_ = ss_host_command_begin(on_), \
		     ss_host_command_end(&host_, err == hipSuccess), name, params, args)
/* A copy from or to memory that is not pinned waits inside, even if its name says Async. */
#define COPY_GATED(stream, exceeds, name, params, args) \
	EXPORT_AROUND_GATED(if (exceeds) REFUSE; struct ss_waiting copies_ = ss_stream_copies(stream), \
			    ss_waiting_end(ss_core, &copies_), name, params, args)
/* Would a copy of `size` bytes from src to dst cross the end of a block? */
#define COPY_EXCEEDS(stream) \
	((unlikely(ss_checking) ? ss_check_source(dst, src, true) : (void)0), \
	 ss_exceeds_on(stream, SS_WRITES, dst, size) || ss_exceeds_on(stream, SS_READS, src, size))
#define EXPORT_COPY(extra, name, params, args) \
	COPY_GATED(extra, COPY_EXCEEDS(extra), name, params, args)
#define FIRST(a, b) a
#define SECOND(a, b) b
#define EXPORT_COPY_CHECK(extra, name, params, args) \
	COPY_GATED(FIRST extra, SECOND extra, name, params, args)
/* A memset of `count` values of `extra` bytes each at dst. */
#define EXPORT_FILL(extra, name, params, args) \
	EXPORT_PLAIN_GATED( \
		if (unlikely(ss_checking)) ss_check_value_set(dst, (uint64_t)value, extra); \
		if (count > SIZE_MAX / (extra) || ss_exceeds_on(stream, SS_WRITES, dst, count * (extra))) REFUSE; \
		ss_stream_used(stream), name, params, args)
#define EXPORT_CHECK(extra, name, params, args) \
	EXPORT_PLAIN_GATED(if (extra) REFUSE, name, params, args)
#define EXPORT_QUERY(extra, name, params, args) \
	hipError_t name params BODY_PLAIN(ss_debts_pay(), TOLD(extra), name, args)
#define EXPORT_PASS(extra, name, params, args) \
	EXPORT_PLAIN((void)0, name, params, args)

/* A real call that needs device memory, with something before and after it. */
#define BODY_AROUND(before, dev, after, name, args) \
	{ \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		hipError_t err; \
		CHECKED_BEGIN(name); \
		before; \
		ss_graph_memory_reserve(dev); \
		err = SS_RETRY(dev, FORWARD(name, args)); \
		after; \
		err = ss_result(err); \
		CHECKED_END(err); \
		return err; \
	}
#define BODY_MEMORY(before, dev, name, args) BODY_AROUND(before, dev, (void)0, name, args)

/* The same, for a call that loads code. The code is read before the call, which may be the last one
 * that sees the code. */
static inline int ss_code_device(const void *image, const char *path)
{
	if (unlikely(ss_checking) && image)
		ss_check_code(image);
	if (unlikely(ss_checking) && path)
		ss_check_code_file(path);
	return HERE;
}
#define EXPORT_RETRY(extra, name, params, args) \
	hipError_t name params BODY_MEMORY(const int dev_ = (extra), dev_, name, args)
#define TAKE_DEVICE(dev, bytes, key, kind) dev
#define TAKE_BYTES(dev, bytes, key, kind) bytes
#define TAKE_KEY(dev, bytes, key, kind) key
#define TAKE_KIND(dev, bytes, key, kind) SS_TRACE_OUTSIDE_##kind
#define EXPORT_TAKE(extra, name, params, args) \
	hipError_t name params \
	{ \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED_BEGIN(name); \
		hipError_t err = SS_LIMITED(TAKE_DEVICE extra, TAKE_BYTES extra, TAKE_KEY extra, \
					    FORWARD(name, args)); \
		if (err == hipSuccess) \
			ss_outside_keep(TAKE_KIND extra, \
					(const void *)(uintptr_t)(TAKE_KEY extra), \
					TAKE_DEVICE extra, TAKE_BYTES extra); \
		return ss_result(err); \
	}
#define EXPORT_GIVE(extra, name, params, args) \
	hipError_t name params \
	{ \
		hipError_t err; \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED_BEGIN(name); \
		const struct ss_outside_free outside_ = \
			ss_outside_free_begin((const void *)(uintptr_t)(extra)); \
		ss_enter(); \
		err = FORWARD(name, args); \
		ss_leave(); \
		(void)ss_outside_free_end(&outside_, err); \
		CHECKED_END(err); \
		if (err == hipSuccess) \
			ss_limit_drop((const void *)(uintptr_t)(extra)); \
		return ss_result(err); \
	}
/* A graph may do anything, for example write to the host when nothing else does. */
#define PUT_GRAPH(stream, before, after, name, params, args) \
	static inline hipError_t open_##name params \
	BODY_AROUND(ss_stream_used(stream); ss_observer_add(-1, SS_OBSERVER_GRAPH); \
		    ss_stream_touch_unknown(stream); before, \
		    ss_device_of(stream), after, name, args) \
	EXPORT_GATED(name, params, args)
#define EXPORT_GRAPH(extra, name, params, args) \
	PUT_GRAPH(extra, \
		  if (unlikely(ss_checking)) ss_check_graph(ss_stream_or_null(extra), exec); \
		  const struct ss_host_command host = ss_graph_command_begin(extra), \
		  ss_host_command_end(&host, err == hipSuccess), name, params, args)
#define EXPORT_UPLOAD(extra, name, params, args) \
	PUT_GRAPH(extra, (void)0, (void)0, name, params, args)

#define NODE_EXCEEDS(exceeds, told) exceeds
#define NODE_TOLD(exceeds, told) told
/* The runtime looks up what the pointers of a node are, so their memory must be mapped: these two
 * pass the gate. */
#define EXPORT_NODE(extra, name, params, args) \
	static inline hipError_t open_##name params \
	{ \
		hipError_t err; \
		if (unlikely(ss_pass(SS_ENTRY_SERVED))) \
			return FORWARD(name, args); \
		SS_SERVED; \
		CHECKED_BEGIN(name); \
		if (NODE_EXCEEDS extra) \
			REFUSE; \
		ss_enter(); \
		err = FORWARD(name, args); \
		ss_leave(); \
		TOLD(NODE_TOLD extra); \
		CHECKED_END(err); \
		return ss_result(err); \
	} \
	EXPORT_GATED(name, params, args)
#define EXPORT_INSTANTIATE(extra, name, params, args) \
	static inline hipError_t make_##name params BODY_MEMORY((void)0, HERE, name, args) \
	static inline hipError_t open_##name params \
	{ \
		hipError_t err = make_##name args; \
		TOLD(extra); \
		return err; \
	} \
	EXPORT_GATED(name, params, args)

#define EXPORT(kind, extra, name, params, args) EXPORT_##kind(extra, name, params, args)
#define E(kind, extra, name, node, since, params, args) EXPORT(kind, extra, name, params, args)
SS_ENTRIES(E)
#undef E

/* SPDX-License-Identifier: MIT */
/* What the files of the shim share. */
#ifndef SS_SHIM_H
#define SS_SHIM_H

#include <hip/hip_runtime_api.h>
#include <link.h>

#include "core/core.h"
#include "driver/guard.h"
#include "driver/resolve.h"
#include "shim/entries.h"

#define SS_EXPORT __attribute__((visibility("default")))
/* What is not defined in the same file is taken for another library's otherwise. */
#define SS_HIDDEN __attribute__((visibility("hidden")))

/* ---- state.c: whether the shim is in the way at all --------------------- */

enum ss_state {
	SS_UNKNOWN = 0, /* no intercepted call yet, or no runtime yet */
	SS_ON,
	SS_OFF,         /* disabled, no device, or a forked child: all passes */
	SS_EXITING,     /* the program is going: nothing is served any more */
};

enum ss_entry_kind {
	SS_SERVE, SS_LATE, SS_WATCH, SS_NOTE, SS_QUEUE, SS_MOVE, SS_COPY, SS_FILL, SS_BOUND, SS_LOOK, SS_PASS,
	SS_TRY, SS_START, SS_ERROR,
};

extern _Atomic int ss_state SS_HIDDEN;
extern struct ss_core *ss_core SS_HIDDEN;
/* The same for who has not looked at the state; NULL until it is complete. */
extern struct ss_core *_Atomic ss_hits_core SS_HIDDEN;
extern struct ss_options ss_options SS_HIDDEN;

int ss_device_count(void);
bool ss_pass_slow(enum ss_entry_kind kind);
/* True: hand this call to the real function and do nothing else. */
static inline bool ss_pass(enum ss_entry_kind kind)
{
	if (likely(!ss_tls.depth &&
		   atomic_load_explicit(&ss_state, memory_order_acquire) == SS_ON))
		return false;
	return ss_pass_slow(kind);
}

/* Nothing stands between a call and the usual case: not while a capture is live, nor
 * while an error of ours is remembered, nor if the program ever made a pool of the runtime
 * its current one. */
extern _Atomic int ss_slow_reasons SS_HIDDEN; /* captures, and one more for each other reason */
void ss_slow_reasons_add(int more);
static inline bool ss_fast_path(void)
{
	return likely(!atomic_load_explicit(&ss_slow_reasons, memory_order_acquire)) && ss_tls_clear();
}

static inline bool ss_exiting(void)
{
	return unlikely(atomic_load_explicit(&ss_state, memory_order_relaxed) == SS_EXITING);
}

/* Nothing is served any more, but blocks and pools of ours are about: the program is going,
 * or this is a forked child. */
static inline bool ss_serving_ended(void)
{
	int state = atomic_load_explicit(&ss_state, memory_order_acquire);

	return !ss_tls.depth && (state == SS_EXITING || state == SS_OFF) && ss_core;
}

/* exit() has begun, but the runtime is sure to be there still: hipFree waits. */
bool ss_exit_waits(void);

/* ---- real.c: the functions that we stand in front of -------------------- */

struct ss_real {
#define E(kind, extra, name, node, since, params, args) hipError_t (*name) params;
	SS_ENTRIES(E)
#undef E
#define H(ret, name, params) ret (*name) params;
	SS_HELPERS(H)
#undef H
};

extern struct ss_real ss_real SS_HIDDEN;
/* False: no runtime is loaded yet. */
bool ss_real_resolve(void);
/* What a call of a function that the runtime does not have returns. */
hipError_t ss_real_missing(void);

/* A real call of ours. Whatever the runtime calls back meanwhile is passed on. */
#define REAL(name, ...) __extension__({ \
	hipError_t ss_err_; \
	ss_enter(); \
	ss_err_ = ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing(); \
	ss_leave(); \
	ss_err_; })

/* The hand-written half of every entry. */
#define SS_HANDLER_SERVE(name, params) hipError_t do_##name params;
#define SS_HANDLER_HOT(name, params) hipError_t do_##name params;
/* Behind a handler of that kind: another name of it, which costs a jump less than a call. */
#define SS_HOT(name) \
	extern __typeof__(do_##name) name \
		__attribute__((alias("do_" #name), visibility("default")));
#define SS_HANDLER_GUARD(name, params) \
	hipError_t do_##name params; \
	hipError_t after_exit_##name params;
#define SS_HANDLER_ALWAYS(name, params) hipError_t do_##name params;
#define SS_HANDLER_WATCH(name, params) hipError_t do_##name params;
#define SS_HANDLER_ERROR(name, params) hipError_t do_##name params;
#define SS_HANDLER_OBSERVER(name, params)
#define SS_HANDLER_PASS(name, params)
#define SS_HANDLER_QUEUE(name, params)
#define SS_HANDLER_QUEUE_ANY(name, params)
#define SS_HANDLER_COPY(name, params)
#define SS_HANDLER_FILL(name, params)
#define SS_HANDLER_CHECK(name, params)
#define SS_HANDLER_QUERY(name, params)
#define SS_HANDLER_RETRY(name, params)
#define SS_HANDLER_GRAPH(name, params)
#define SS_HANDLER(kind, name, params) SS_HANDLER_##kind(name, params)
#define E(kind, extra, name, node, since, params, args) SS_HANDLER(kind, name, params)
SS_ENTRIES(E)
#undef E

/* The exports. Where a released header differs from the table, this does not
 * compile. */
#define E(kind, extra, name, node, since, params, args) SS_EXPORT hipError_t name params;
SS_ENTRIES(E)
#undef E

/* ---- error.c ------------------------------------------------------------ */

/* Returns `err`, having made it this thread's last error. */
hipError_t ss_fail(hipError_t err);
/* An application's call succeeded, or failed in the runtime on its own: up to 6.x that
 * replaces the last error. A failure takes this thread off the fast paths, until the
 * next success of ours has been heard of. */
hipError_t ss_result_slow(hipError_t err);
static inline hipError_t ss_result(hipError_t err)
{
	return likely(!(ss_tls.error | (int)err)) ? err : ss_result_slow(err);
}
hipError_t ss_status_error(enum ss_status status);

/* ---- stream.c ----------------------------------------------------------- */

#define SS_PER_THREAD ((hipStream_t)2)

/* -1 and *err if there is none. */
int ss_current_device(hipError_t *err);
struct ss_timeline *ss_stream_slow(hipStream_t stream, hipError_t *err);
/* The timeline behind a handle; NULL and *err for a handle that is none. */
static inline struct ss_timeline *ss_stream(hipStream_t stream, hipError_t *err)
{
	struct ss_timeline *tl = NULL;

	if (likely((uintptr_t)stream > 2))
		tl = ss_timeline_find(ss_core, stream);
	return likely(tl != NULL) ? tl : ss_stream_slow(stream, err);
}
/* For watched calls: NULL where the real call is going to complain anyway. */
static inline struct ss_timeline *ss_stream_or_null(hipStream_t stream)
{
	hipError_t err;

	return ss_stream(stream, &err);
}
/* hipStreamPerThread is what a null handle means to a _spt entry. */
static inline hipStream_t ss_spt_stream(hipStream_t stream)
{
	return stream ? stream : SS_PER_THREAD;
}
void ss_stream_register(hipStream_t stream, unsigned int flags, int dev);
/* It is about to be destroyed, or to become unusable: `tl` ends. */
void ss_stream_retire(hipStream_t stream, struct ss_timeline *tl);
/* 916 for a stream whose execution context was destroyed, else hipSuccess. */
hipError_t ss_context_detached(hipStream_t stream);
void ss_context_forget(hipStream_t stream);
/* Work is about to be enqueued on this stream: a stream of a thread, or one that
 * nobody saw created, becomes known now. */
static inline void ss_stream_used(hipStream_t stream)
{
	if ((uintptr_t)stream > 1)
		(void)ss_stream_or_null(stream);
}
/* The same for `count` structures of `size` bytes, with a stream `at` bytes in each. Returns
 * NULL, a stream that is known. */
hipStream_t ss_streams_used(const void *list, unsigned int count, size_t size, size_t at);
/* mappings.c: how many bytes from ptr on belong to the block of another process that it points
 * into; 0 where it points beside all that are open there. False: it is in no such memory. */
extern atomic_int ss_imports SS_HIDDEN; /* mappings of which we know what lies in them */
bool ss_import_left_slow(const void *ptr, uint64_t *left);
static inline bool ss_import_left(const void *ptr, uint64_t *left)
{
	return unlikely(atomic_load_explicit(&ss_imports, memory_order_relaxed)) &&
	       ss_import_left_slow(ptr, left);
}
/* Would `size` bytes from ptr on leave a block of ours, or one that is open here? The runtime,
 * which refuses what leaves an allocation, knows only segments. */
static inline bool ss_exceeds(const void *ptr, size_t size)
{
	uint64_t left;

	return (ss_bytes_left(ss_core, ptr, &left) || ss_import_left(ptr, &left)) &&
	       unlikely(size > left);
}
/* The process uses another device than the first, perhaps beside it. */
extern atomic_bool ss_multi_device;
/* A command on this stream uses what ptr points to; NULL: nobody knows what. */
void ss_stream_touch(hipStream_t stream, const void *ptr);
static inline void ss_stream_touch_unknown(hipStream_t stream)
{
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)))
		ss_stream_touch(stream, NULL);
}
/* Would `size` bytes from ptr on, for a command on this stream, leave a block of ours? */
static inline bool ss_exceeds_on(hipStream_t stream, const void *ptr, size_t size)
{
	if (ss_exceeds(ptr, size))
		return true;
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)) && ptr)
		ss_stream_touch(stream, ptr);
	return false;
}
/* The same of a stream that may not be known yet. */
bool ss_range_exceeds(hipStream_t stream, const void *ptr, size_t size);
/* From the first byte to the last of `rows` rows. */
size_t ss_rows_bytes(size_t pitch, size_t width, size_t rows);
/* Would a copy between two pointers, on `stream`, or a node's memset? */
bool ss_box_exceeds(const hipMemcpy3DParms *p, hipStream_t stream);
bool ss_2d_exceeds(const hip_Memcpy2D *p, hipStream_t stream);
bool ss_3d_exceeds(const HIP_MEMCPY3D *p, hipStream_t stream);
bool ss_memset_exceeds(const hipMemsetParams *p);
bool ss_drv_memset_exceeds(const void *p); /* of the driver API */
/* One of a list of ranges, or a copy between two devices (hipMemcpy3DPeerParms)? */
bool ss_list_exceeds(hipStream_t stream, void *const *list, const size_t *sizes, size_t count);
bool ss_peer_copy_exceeds(const void *p, hipStream_t stream);
/* The size of an array's element in bytes; 0: unknown. */
size_t ss_array_element(hipArray_const_t array);
/* From where the pitched memory begins to the last byte of a box in it. */
size_t ss_box_bytes(const hipPitchedPtr *p, const struct hipPos *at, const hipExtent *box);
/* Memsets in rows of raw HSA memory. False: the real call can do it; `sync`: one that waits. */
struct ss_row_fill {
	void *dst;
	size_t pitch, slice, depth, element; /* slice: rows */
	int value;
	size_t width, height;                /* width: elements */
};
bool ss_row_fill_needed(const void *dst, bool sync);
hipError_t ss_row_fill(const struct ss_row_fill *r, hipStream_t stream);
/* While a thread waits for a stream on its own account, the stream must not be
 * destroyed. */
struct ss_stream_pin;
struct ss_stream_pin *ss_stream_pin(hipStream_t stream);
void ss_stream_unpin(struct ss_stream_pin *pin);
void ss_stream_pins_drain(hipStream_t stream);
/* The calling thread has a timeline of its own on `dev`. */
void ss_thread_exit_register(int dev);
/* Waits for the calling thread's stream, which is about to go with it. False: in vain. */
bool ss_thread_drain(int dev);

/* Makes `dev` current for the calling thread until it is closed. */
struct ss_device_switch { int old; bool switched; };
bool ss_device_switch(struct ss_device_switch *s, int dev);
void ss_device_restore(struct ss_device_switch *s);

/* ---- capture.c ---------------------------------------------------------- */

/* Not hot: call when ss_capture_live(). */
bool ss_capture_has_event(hipEvent_t event);
void ss_capture_event_set(hipEvent_t event, struct ss_timeline *tl);
void ss_capture_event_clear(hipEvent_t event);
/* Before `tl` waits for an event that was recorded on a capturing stream. True: it was in no capture
 * yet, and is now; ss_capture_drop_stream() if the wait fails. */
bool ss_capture_join(struct ss_timeline *tl, hipEvent_t event);
/* Is hipMallocAsync on a stream of dev that is not captured an error now? */
bool ss_capture_refuses_alloc(int dev);
/* Is it an error now to make or end a pool, or to make one current? */
bool ss_capture_forbids_pools(void);
/* The stream is about to be destroyed, or all of a device are. */
void ss_capture_drop_stream(struct ss_timeline *tl);
void ss_capture_drop_device(int dev);

/* ---- debt.c ------------------------------------------------------------- */

/* Who but the null stream's own work could look at the device while a hipFree
 * does not wait. Bits, set for good; a new one pays what is owed. */
enum ss_observer {
	SS_OBSERVER_STREAM = 1 << 0,   /* a stream besides the null stream */
	SS_OBSERVER_UNKNOWN = 1 << 1,  /* ... that nobody saw created */
	SS_OBSERVER_HOSTFUNC = 1 << 2,
	SS_OBSERVER_PINNED = 1 << 3,
	SS_OBSERVER_MANAGED = 1 << 4,
	SS_OBSERVER_FINE = 1 << 5,
	SS_OBSERVER_PEER = 1 << 6,
	SS_OBSERVER_IPC = 1 << 7,
	SS_OBSERVER_THREAD = 1 << 8,   /* a per-thread stream */
	SS_OBSERVER_READER = 1 << 9,   /* a library that reads device memory behind HIP's back */
	SS_OBSERVER_GRAPH = 1 << 10,   /* a launched graph, which may have host nodes and copies */
	SS_OBSERVER_DEVICES = 1 << 11, /* a second device was current: its streams join none here */
};
void ss_observer_add(int dev, unsigned what); /* dev -1: all devices; before the real call */
unsigned ss_observers_on(int dev);
/* The same for every device there may be, before the shim has started too. */
void ss_observer_add_early(unsigned what);
/* dev is current: the program uses it, or will. */
void ss_device_used(int dev);
/* May hipFree of a block on dev skip its wait, because the null stream orders all work
 * there? After using it: ss_debt_confirm(), which pays if that ended meanwhile. */
bool ss_debt_allowed(int dev);
/* The same, and then the debt is announced; the second as far as it can be said without a
 * call, else false. */
bool ss_debt_add(int dev);
bool ss_debt_add_now(int dev);
void ss_debt_add_and_pay(int dev);
/* What was seen there, and whether the mode is possible at all. */
extern _Atomic unsigned ss_observers[SS_MAX_DEVICES] SS_HIDDEN;
#define SS_DEBT_POSSIBLE (1u << 31)
/* What the loader's list ends with if nothing was loaded since debt.c looked last; NULL: it
 * cannot be told that way. */
extern struct link_map *_Atomic ss_loads_last SS_HIDDEN;
static inline bool ss_loads_none_new(void)
{
	const struct link_map *map = atomic_load_explicit(&ss_loads_last, memory_order_acquire);

	return likely(map && !__atomic_load_n(&map->l_next, __ATOMIC_RELAXED) &&
		      __atomic_load_n(&_r_debug.r_version, __ATOMIC_RELAXED) == 1);
}
/* Is ss_debt_allowed() true, without a call? */
static inline bool ss_debt_allowed_now(int dev)
{
	return ss_loads_none_new() &&
	       likely(atomic_load(&ss_observers[dev]) == SS_DEBT_POSSIBLE) && !ss_capture_live();
}
static inline void ss_debt_confirm(int dev)
{
	if (unlikely(atomic_load(&ss_observers[dev]) != SS_DEBT_POSSIBLE || ss_capture_live()))
		ss_debt_add_and_pay(dev);
}
void ss_debt_pay(int dev);
/* Once, before the first use of the mode, with no lock held. */
void ss_loads_start(void);
extern _Atomic uint64_t ss_debts_due SS_HIDDEN;
void ss_debts_pay_slow(void);
/* Before anything that could tell. */
static inline void ss_debts_pay(void)
{
	if (unlikely(atomic_load_explicit(&ss_debts_due, memory_order_acquire)))
		ss_debts_pay_slow();
}

/* ---- again.c ------------------------------------------------------------ */

/* The runtime's last error of this thread, before a call that may be made again. */
int ss_retry_before(void);
/* It found no memory on dev (-1: the current device). True: memory of ours went back
 * there, and the thread's error is `before` as if nobody had asked yet. */
bool ss_retry(int dev, int before, uint64_t *end);
int ss_device_of(hipStream_t stream);
int ss_device_of_prop(const void *prop); /* of hipMemCreate */

/* What `call`, a real one that asks for device memory, returns when it lacks none that is
 * idle with us. */
#define SS_RETRY(dev, call) __extension__({ \
	int before_ = ss_retry_before(); \
	uint64_t end_ = 0; \
	hipError_t again_; \
	do { \
		ss_enter(); \
		again_ = (call); \
		ss_leave(); \
	} while (unlikely(again_ == hipErrorOutOfMemory) && ss_retry(dev, before_, &end_)); \
	again_; })
/* A graph node takes so many bytes (dev -1: of the current device; hipMemAllocNodeParams) when its
 * graph runs; before that there must be room, since nobody says when there is none. */
void ss_graph_memory_add(int dev, uint64_t bytes);
void ss_graph_memory_add_node(const void *params);
void ss_graph_memory_reserve(int dev);
#define REAL_RETRY(dev, name, ...) \
	SS_RETRY(dev, ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

/* ---- intercept.c -------------------------------------------------------- */

hipError_t ss_malloc(void **ptr, size_t size, bool guarded);
hipError_t ss_foreign_free_async(void *ptr, hipStream_t stream);
/* Waits for every stream of `dev`, the current device. */
hipError_t ss_wait_streams(int dev);
/* The same where nothing of ours may touch a stream: the runtime waits. */
hipError_t ss_wait_in_runtime(int dev);

/* ---- pools.c ------------------------------------------------------------ */

/* A handle that the runtime gave out and we let through. */
bool ss_pool_is_native(hipMemPool_t pool);
void ss_pool_native_add(hipMemPool_t pool);
/* The native pool that the program made current on `dev`, or NULL. */
hipMemPool_t ss_pool_native_current(int dev);
/* It is none of the runtime's any more, after a reset or its end. */
void ss_pool_native_reset(int dev);
/* It ever made one current, on any device. */
extern atomic_bool ss_native_current_set SS_HIDDEN;
static inline bool ss_pools_native(void)
{
	return unlikely(atomic_load_explicit(&ss_native_current_set, memory_order_relaxed));
}

/* ---- remark.c ----------------------------------------------------------- */

/* The program asked for synchronous memory operations on this block, or on any at all. */
bool ss_sync_memops(uint64_t id);
bool ss_sync_memops_any(void);
/* False: no host memory. */
bool ss_sync_memops_set(const struct ss_block_info *b, bool on);
/* A BUFFER_ID that nothing else has or had; a block's own (0: no host memory). */
unsigned ss_buffer_id_new(void);
unsigned ss_buffer_id(const struct ss_block_info *b);

/* ---- selftest.c --------------------------------------------------------- */

/* Tries every backing on every device and says what works. */
void ss_selftest(const struct ss_options *options, int devices);

/* ---- mappings.c (more of it in shim/share/import.h) --------------------------- */

/* The block of another process that this points into, where it is not all that the
 * runtime has mapped there: sets base, size and device of *out. */
bool ss_import_find(const void *ptr, struct ss_block_info *out, unsigned *number);
void ss_import_reset(int dev);

/* ---- banner.c ----------------------------------------------------------- */

void ss_shim_log_open(void);
FILE *ss_shim_log_file(void);
void ss_banner(int devices);
void ss_shim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

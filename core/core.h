/* SPDX-License-Identifier: MIT */
/*
 * The interface of the core: what the shim, the tests and `somashim replay` may call. No HIP or
 * HSA type appears here.
 *
 * Unless a function says otherwise:
 *  - any thread may call it at any time; no lock of the core is held while the driver is called;
 *  - sizes are bytes, times are milliseconds of the driver's clock;
 *  - a set of devices is a uint64_t with one bit per device number;
 *  - pointers that it returns belong to the core, and the caller frees none of them;
 *  - a call that fails changes nothing.
 */
#ifndef SS_CORE_H
#define SS_CORE_H

#include <stdio.h>

#include "core/driver.h"
#include "config/options.h"

struct ss_core;
struct ss_oom; /* core/statistics.h */
struct ss_pool;
struct ss_timeline;
struct ss_segment;
struct ss_block;

/* Makes a core. The shim has one per process, tests have many. The driver and the options are
 * copied. Returns NULL if host memory is out. */
struct ss_core *ss_core_create(const struct ss_driver *drv, const struct ss_options *opt);
/* Releases all memory to the driver and frees the core, which no other thread may be using. For
 * tests and tools: the shim never destroys its core. */
void ss_core_destroy(struct ss_core *core);
/* True if memory that is still mapped on `dev` must be unmapped before the process ends, because
 * the runtime would crash otherwise (device_info.unmap_at_exit). */
bool ss_must_unmap(struct ss_core *core, int dev);
/* Unmaps that memory. The caller has seen all work of the device end, and nobody uses memory of
 * the device any more. */
void ss_unmap(struct ss_core *core, int dev);
/* Functions that the core calls when something happens. Each may be NULL. */
struct ss_watch {
	/* The file for the core's messages: SOMASHIM_INITIAL failed, a runtime refuses to map
	 * memory. The caller owns it. */
	FILE *log;
	/* The pools took memory of a device for an allocation, or the device had none. Called on
	 * the allocating thread, with no lock held. */
	void (*grew)(void);
	/* An allocation failed. As above. */
	void (*out_of_memory)(struct ss_core *core, const struct ss_oom *oom);
	/* A block was handed out (`allocated`), is freed, or ends with its device at a reset. At a
	 * reset a lock is held, so the function calls nothing of the core. If it is set, all calls
	 * take the slow path. */
	void (*block)(bool allocated, const void *ptr, size_t size, const void *stream);
	/* A thread needs memory that sleeps, or takes memory of the device (sleep.h). It holds no
	 * lock. The function may wait until the memory is awake. False: it will not be, so the
	 * thread's call fails. */
	bool (*wake)(void);
	/* Between the two no call puts work on a device: others wait meanwhile, and none is in
	 * progress. It holds no lock, and lasts for a few calls of the driver that wait for
	 * nothing. False, and nothing to end: a call does not return. */
	bool (*quiet_begin)(void);
	void (*quiet_end)(void);
};
/* Not thread safe: call it before anything else. The struct is copied. */
void ss_core_watch(struct ss_core *core, const struct ss_watch *watch);

/* ---- streams ------------------------------------------------------------ */

/* A timeline is one stream from its creation to its destruction. The record stays valid as long as
 * the core, but stands for another stream once its own has been retired. */
enum ss_timeline_kind {
	SS_TL_NULL,     /* the legacy null stream of a device */
	SS_TL_BLOCKING, /* joins the null stream */
	SS_TL_NONBLOCKING,
	SS_TL_THREAD, /* hipStreamPerThread of one thread; blocking */
};

/* The null timeline of a device. NULL if host memory is out, or all slots are taken. */
struct ss_timeline *ss_timeline_null(struct ss_core *core, int dev);
/* hipStreamPerThread of the calling thread on `dev`. ss_thread_exit() retires it. NULL if host
 * memory is out. */
struct ss_timeline *ss_timeline_thread(struct ss_core *core, int dev);
/* Retires the per-thread streams of the calling thread. `late`: the runtime has destroyed them
 * already and must not be asked about them. `drained`: devices whose per-thread stream the thread
 * has just waited for. */
void ss_thread_exit(struct ss_core *core, bool late, uint64_t drained);
/* Enters a stream that begins with no history; call it after the real create. `seen` is false for
 * a handle whose creation went past the shim. */
struct ss_timeline *ss_timeline_add(struct ss_core *core, int dev, void *native,
				    enum ss_timeline_kind kind, bool seen);
/* NULL for an unknown handle. `native` must not be a null or per-thread handle. */
struct ss_timeline *ss_timeline_find(struct ss_core *core, void *native);
/* Forgets the handle; call it before the real destroy. A last fence will show when memory that was
 * freed on the stream may be reused, and the pools take the ranges of its shelf. Returns true if
 * the caller must synchronize the stream (by the real call) before it destroys it, because the
 * null stream relies on joining it. */
bool ss_timeline_retire(struct ss_core *core, struct ss_timeline *tl);
/* Stores the native handles of the live non-blocking streams of `dev`, at most `max`, and returns
 * how many there are. A wait for these and for the null stream covers every live stream. */
size_t ss_streams_nonblocking(struct ss_core *core, int dev, void **out, size_t max);
int ss_timeline_device(const struct ss_timeline *tl);
enum ss_timeline_kind ss_timeline_kind(const struct ss_timeline *tl);
void *ss_timeline_native(const struct ss_timeline *tl);

/* A point on a stream: everything that was enqueued on it until then. */
struct ss_mark {
	uint32_t slot; /* of the stream among all */
	uint64_t n;
};
struct ss_mark ss_timeline_mark(struct ss_timeline *tl);
/* Does the next command on tl certainly come after the mark, which is of another stream: by events,
 * or because it has completed? */
bool ss_timeline_after(struct ss_core *core, struct ss_timeline *tl, const struct ss_mark *mark);

/* Says that a capture of the stream begins (`on`) or ends. A stream that is captured is neither
 * asked how far it is nor given a fence. */
void ss_timeline_set_capturing(struct ss_core *core, struct ss_timeline *tl, bool on);
bool ss_timeline_capturing(const struct ss_timeline *tl);
/* Around a call that must not become part of a capture of tl. False: it would. Else a capture
 * begins after ss_capture_release(). */
bool ss_capture_hold(struct ss_core *core, struct ss_timeline *tl);
void ss_capture_release(struct ss_timeline *tl);

/* ---- threads that wait in the runtime ------------------------------------ */
/*
 * From HIP 7.2 on a query of a stream, or a record on it, lasts as long as another thread is inside
 * the runtime's wait for that stream. So nothing is asked of a stream in which a thread waits.
 * ss_stream_sync_begin(), ss_device_sync_begin() and ss_event_wait_begin() say so themselves, until
 * ss_sync_end(). The pairs below are for other calls that may wait: copies, and waits in hipFree.
 */
struct ss_waiting {
	struct ss_timeline *tl; /* NULL: for a device, or for nothing */
	int32_t dev;
	int32_t what; /* enum ss_waits_for in order/waiting.c; 0: nothing */
};
/* Around a call that may wait for tl (NULL: for nothing that is known). Never blocks for longer
 * than a query of another thread takes. */
struct ss_waiting ss_waiting_begin(struct ss_core *core, struct ss_timeline *tl);
/* The same for a call that waits for all streams of a device; -1: for nothing. */
struct ss_waiting ss_waiting_begin_device(struct ss_core *core, int dev);
/* Takes a fence that somebody would have liked to have meanwhile. */
void ss_waiting_end(struct ss_core *core, struct ss_waiting *w);
/* Is another thread in a wait because of which a call on tl might not return? */
bool ss_waited(const struct ss_core *core, const struct ss_timeline *tl);

/* ---- events and host synchronization ------------------------------------ */
/*
 * A watched call is a pair: `begin` reads positions before the real call, and `end` grants them
 * after it, if it succeeded. The token lives on the caller's stack. Each token must be passed to
 * `end` exactly once, by the thread that began.
 */
struct ss_token {
	void *a, *b;
	uint64_t n, gen, host;
	int32_t kind, dev;
	uint32_t cover;
	struct ss_waiting waiting;
};

/* A new event, which has no clock. A known address means a new event at the old address. */
void ss_event_add(struct ss_core *core, void *event);
/* Call it before the real destroy. */
void ss_event_forget(struct ss_core *core, void *event);
/* The event was, or may have been, recorded by a call that the shim does not see: it loses its
 * clock, with `sticky` for the rest of its life (graph nodes, other processes). */
void ss_event_taint(struct ss_core *core, void *event, bool sticky);

/* Records, waits of streams for events, ss_event_sync_begin() and ss_event_wait_begin() are in
 * core/order/watched.h. */

/* The four calls below, ss_event_sync_begin() and ss_event_wait_begin(), begin a host call that
 * proves something finished if it succeeds. All are ended by ss_sync_end(). */

/* Everything enqueued on `tl` so far; for a null timeline also on the blocking streams of its
 * device. */
struct ss_token ss_stream_sync_begin(struct ss_core *core, struct ss_timeline *tl);
/* The same for a query, which joins nothing: for a null timeline it proves only the work in front
 * of a command that the core itself put there (if ss_needs_cover() says so, order/timeline.h). */
struct ss_token ss_stream_query_begin(struct ss_core *core, struct ss_timeline *tl);
/* Everything on the device (hipDeviceSynchronize). */
struct ss_token ss_device_sync_begin(struct ss_core *core, int dev);
/* Every live stream of the device, waited for one by one as hipFree does: the caller says for which
 * it waits (ss_waiting_begin). Unlike the wait for the device it proves nothing about destroyed
 * streams. */
struct ss_token ss_streams_sync_begin(struct ss_core *core, int dev);
/* `threshold`: the call is one of HIP's synchronization points, at which memory above the release
 * threshold is released. */
void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold);

/* A call went past the shim. From now on event clocks and stream queries prove nothing, and memory
 * freed by a hipFree that did not wait is reused only after a device-wide wait. Fences, and waits
 * for streams that the core knows, still count. */
void ss_distrust(struct ss_core *core);
bool ss_distrusted(const struct ss_core *core);
/* Around a host function, on the thread that calls it. Meanwhile no allocation waits for pending
 * frees unless memory is short (pool/growth_wait.c). */
void ss_host_function_begin(void);
void ss_host_function_end(void);
/* Around a call that enqueues anything else that may need the host on tl: a wait for a value, a
 * graph with such a node, a host function that does not report itself. From the begin until the
 * work is known to have completed, no allocation waits for pending frees unless memory is short
 * (pool/growth_wait.c). `ok`: the call succeeded. tl NULL: on a stream that has no timeline. */
void ss_host_begin(struct ss_core *core);
void ss_host_end(struct ss_core *core, struct ss_timeline *tl, bool ok);

/* ---- pools -------------------------------------------------------------- */

/* The values of hipMemPoolAttr. */
enum ss_attr {
	SS_ATTR_REUSE_FOLLOW_EVENTS = 1,
	SS_ATTR_REUSE_OPPORTUNISTIC,
	SS_ATTR_REUSE_INTERNAL,
	SS_ATTR_RELEASE_THRESHOLD,
	SS_ATTR_RESERVED_CURRENT,
	SS_ATTR_RESERVED_HIGH,
	SS_ATTR_USED_CURRENT,
	SS_ATTR_USED_HIGH,
};

/* The default pool serves hipMallocAsync, the classic pool hipMalloc. Both live as long as the
 * device. NULL for a bad device, or if the driver has none. */
struct ss_pool *ss_pool_default(struct ss_core *core, int dev);
/* Why it was NULL: SS_ERR_NOMEM if the device is known, and only its pools could not be made. */
enum ss_status ss_pool_none(struct ss_core *core, int dev);
struct ss_pool *ss_pool_classic(struct ss_core *core, int dev);
/* The backing that memory of hipMalloc is wanted to have. Any thread. */
enum ss_backing ss_classic_backing(const struct ss_options *opt);
struct ss_pool *ss_pool_current(struct ss_core *core, int dev);
/* SS_ERR_INVALID: a bad device, or the pool is gone; SS_ERR_DEVICE: a pool of another device. */
enum ss_status ss_pool_set_current(struct ss_core *core, int dev, struct ss_pool *pool);
/* `max_bytes`: the most that may be in use at once; 0: no limit. */
enum ss_status ss_pool_create(struct ss_core *core, int dev, uint64_t max_bytes,
			      struct ss_pool **out);
/* Other processes may map the pool's memory from now on. Call it before the first allocation. */
void ss_pool_share(struct ss_pool *pool);
bool ss_pool_shared(const struct ss_pool *pool);
/* Live blocks stay valid, and the free of the last one releases the memory. If the pool was
 * current, the default pool becomes current. SS_ERR_INVALID for a default or classic pool. */
enum ss_status ss_pool_destroy(struct ss_core *core, struct ss_pool *pool);
/* A handle is a number that is never used twice, so a dead handle is recognized. */
void *ss_pool_handle(const struct ss_pool *pool);
/* NULL if no such pool is alive. The pool may end at any time: do no more than read its figures. */
struct ss_pool *ss_pool_from_handle(struct ss_core *core, void *handle);
/* The same with a reference: until ss_pool_unref() the record stays this pool, even if another
 * thread destroys it. */
struct ss_pool *ss_pool_ref_handle(struct ss_core *core, void *handle);
/* NULL is allowed. */
void ss_pool_unref(struct ss_pool *pool);
/* Is this a handle of ours, dead or alive? */
bool ss_pool_is_handle(const void *handle);
int ss_pool_device(const struct ss_pool *pool);

enum ss_status ss_pool_set_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t value);
enum ss_status ss_pool_get_attr(struct ss_pool *pool, enum ss_attr attr, uint64_t *value);
/* Releases idle memory until `keep` bytes are reserved. Pending memory stays. Never waits for the
 * device: if a release would wait, it happens at a later synchronization. */
enum ss_status ss_pool_trim(struct ss_core *core, struct ss_pool *pool, uint64_t keep);
/* Gives access to existing and later memory to the devices in `give`. Those in `take` get no access
 * to later memory; what is mapped already may stay accessible to them. The owner always has access.
 * Calls of several threads run one after another. On failure devices without access before have
 * none. */
enum ss_status ss_pool_set_access(struct ss_pool *pool, uint64_t give, uint64_t take);
uint64_t ss_pool_access(const struct ss_pool *pool);
/* Remembers which devices asked to read only, for ss_pool_readers(). They can write all the same,
 * as with the runtime's own pools. `others`: devices that asked for reading and writing. */
void ss_pool_set_readers(struct ss_pool *pool, uint64_t readers, uint64_t others);
uint64_t ss_pool_readers(const struct ss_pool *pool);

/* ---- allocation --------------------------------------------------------- */

/* hipMallocFromPoolAsync; size > 0. The caller holds the pool, or it is one that never ends. */
enum ss_status ss_alloc_async(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
			      size_t size, void **out);
/* hipMallocAsync: the same from the current pool of the timeline's device. */
enum ss_status ss_alloc_current(struct ss_core *core, struct ss_timeline *tl, size_t size,
				void **out);

/* The same, but the block is the end of a segment of its own (a guarded segment). The device faults
 * at an access behind the block, up to the block's alignment later. After the free it also faults
 * at an access inside the block, as soon as the memory is released: at the first synchronization
 * that finds the device idle. `tl` NULL: memory of hipMalloc, of a classic pool. `pool` NULL: the
 * current one of the timeline's device. Such a block has no IPC handle. SS_ERR_UNSUPPORTED: this
 * device cannot do it. */
enum ss_status ss_alloc_guarded(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
				size_t size, void **out);

/* The result of a look-up of a pointer. It holds while the block belongs to the caller. In a
 * program that frees a block twice another thread may free it at any time; the second free then
 * returns SS_ERR_INVALID. */
struct ss_found {
	struct ss_segment *segment;
	struct ss_pool *pool;
	int device;
	/* live, and it contains the pointer; with NULL the next two are not set */
	struct ss_block *block;
	uint64_t start; /* its first byte */
	bool classic;   /* hipMalloc handed it out */
};
/* SS_OK: `ptr` lies in a live block; SS_ERR_INVALID: in memory of ours that is not live (a double
 * free); SS_ERR_FOREIGN: it is not ours, and nothing in *out is set. Takes no lock. */
enum ss_status ss_find(struct ss_core *core, const void *ptr, struct ss_found *out);
/* hipFreeAsync of a block that ss_find() found. SS_ERR_INVALID: it is gone. SS_ERR_CLASSIC: it is
 * of hipMalloc and was not freed: call ss_free_found(). */
enum ss_status ss_free_found_async(struct ss_core *core, const struct ss_found *f,
				   struct ss_timeline *tl);
/* The same without host memory, for a block that nobody could free again: it is free once all
 * streams of its device have done what they have now. Waits for nothing. SS_ERR_INVALID: it is
 * gone. */
enum ss_status ss_free_found_unordered(struct ss_core *core, const struct ss_found *f);
/* The same by the pointer, which may also be none of ours (SS_ERR_FOREIGN). A pointer into a block
 * frees the block, as in HIP. */
enum ss_status ss_free_async(struct ss_core *core, const void *ptr, struct ss_timeline *tl);

/* Closes the fast path below while *shut is not 0. `shut` must live as long as the core. After
 * *shut has become non-zero, ss_hits_end() makes every thread read it before its next hit. */
void ss_hits_gate(struct ss_core *core, const _Atomic int *shut);
void ss_hits_end(struct ss_core *core);
typedef int ss_miss_alloc(void **out, size_t size, void *native);
typedef int ss_miss_free(void *ptr, void *native);
/* The common case of hipMallocAsync and hipFreeAsync at a fraction of the cost: the current pool of
 * the device, a created stream, nothing captured, and the stream's shelf has the memory. Returns 0
 * on success. In all other cases nothing was done and the result of `miss` is returned. `native`
 * may be any handle; `core` may be NULL, which counts as a miss. */
int ss_hit_alloc(void **out, size_t size, void *native, struct ss_core *core, ss_miss_alloc *miss);
int ss_hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss);

/* hipMalloc; size > 0. Uses only bytes of which every mark is completed. SS_ERR_WOULD_WAIT: memory
 * would have to be mapped, which would wait for streams (device_info.map_waits). */
enum ss_status ss_alloc_classic(struct ss_core *core, int dev, size_t size, void **out);
/* Does a wait for every known stream of its device prove that nothing uses the block any more? A
 * destroyed stream may still run, and streams of other devices may use it. */
bool ss_wait_proves(struct ss_core *core, const struct ss_found *f);
/* hipFree of a block that ss_find() found, also if it is of hipMallocAsync. `waited`: a token of
 * ss_streams_sync_begin() for the block's device, taken before the caller waited for the streams;
 * this call ends it. NULL: nobody waited, and the block is not reused before all streams have
 * completed their work from before this free. SS_ERR_INVALID: it is gone. */
enum ss_status ss_free_found(struct ss_core *core, const struct ss_found *f,
			     struct ss_token *waited);
/* The same by the pointer. Errors as ss_free_async(). */
enum ss_status ss_free_classic(struct ss_core *core, const void *ptr, struct ss_token *waited);

/* hipMalloc and hipFree while `single` is the one timeline of its device. It then orders all work
 * of the device, so a free waits for nothing and the block may be handed out again at once. The
 * caller must synchronize `single` before a second timeline, or anybody else who could look at the
 * memory, comes into being. */
enum ss_status ss_alloc_single(struct ss_core *core, struct ss_timeline *single, size_t size,
			       void **out);
/* The free of a block that ss_find() found, where the process ends and the driver may be gone: it
 * is counted and told, and nobody gets the memory. Makes no driver call. SS_ERR_INVALID: the block
 * is gone. */
enum ss_status ss_free_counted(const struct ss_found *f);
/* The free of a block that ss_find() found, on the stream of `single`. SS_ERR_INVALID: it is
 * gone. */
enum ss_status ss_free_stream(struct ss_core *core, const struct ss_found *f,
			      struct ss_timeline *single);
/* The common case of both at a fraction of the cost, for the null stream. Alloc returns false, and
 * free returns -1 in place of the block's device, if it is not the common case; nothing was done
 * then. Free asks `may`, with no lock held, whether the condition above still holds. */
bool ss_hit_classic_alloc(struct ss_core *core, int dev, size_t size, void **out);
int ss_hit_classic_free(struct ss_core *core, void *ptr, bool (*may)(int dev));

/* ---- looking up pointers ------------------------------------------------ */

struct ss_block_info {
	void *base;    /* first byte of the block */
	size_t size;   /* as requested */
	void *segment; /* first byte of the segment that holds it */
	size_t segment_size;
	size_t front, room; /* bytes before `base` that nobody has, and all bytes of the block */
	bool guarded;       /* ss_alloc_guarded() */
	uint64_t id;        /* unique among all blocks ever handed out */
	int device;
	enum ss_backing backing;
	struct ss_pool *pool;
	bool classic; /* hipMalloc handed it out */
	bool live;    /* false: the pointer is in a segment of ours, but in no live block */
};
/* All that can be said of a pointer (ss_find() says what a free needs). Returns true if it lies in
 * memory of ours. Takes the lock of the pool. */
bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *out);
/* Is it an address of a guarded block that has gone, where the device faults? Takes no lock of the
 * core that the caller may hold. */
bool ss_unmapped(struct ss_core *core, const void *ptr);
/* *left: bytes from `ptr` to the end of the live block that contains it; 0 also in memory of the
 * classic pool that is not handed out. Returns false if `ptr` is in neither. Takes no lock. */
bool ss_bytes_left(struct ss_core *core, const void *ptr, uint64_t *left);
/* A command that is about to be enqueued on tl's stream uses the live block that contains `ptr`
 * (NULL: memory of any device). The memory may be another device's, since a copy needs no peer
 * access. The real hipFree does not wait for that stream, but keeps the memory until the command
 * has run; from now on the core does so too. */
void ss_timeline_visits(struct ss_core *core, struct ss_timeline *tl, const void *ptr);
/* True if [ptr, ptr + size) touches a reservation or segment of ours. */
bool ss_owns_range(struct ss_core *core, const void *ptr, size_t size);

/* ---- memory that other processes map ------------------------------------ */

struct ss_ipc_place {
	void *segment;
	size_t segment_size;
	uint64_t serial; /* of the segment; never used twice */
	size_t offset;   /* of the block in the segment */
	size_t size;     /* of the block, as requested */
	int device;
};
/* Finds the place of the live block at `ptr`. SS_ERR_FOREIGN: not ours; SS_ERR_INVALID: not live,
 * or of a backing that has no IPC handles. */
enum ss_status ss_ipc_find(struct ss_core *core, const void *ptr, struct ss_ipc_place *out);
/* The block is exported: its bytes are never handed out again, even after its free. */
void ss_ipc_export(struct ss_core *core, const struct ss_ipc_place *place);
/* Was the live block at `ptr`, in the segment with that serial number, exported? */
bool ss_ipc_exported(struct ss_core *core, const void *ptr, uint64_t serial);

/* ---- memory of the device ----------------------------------------------- */

/* Bytes that the pools of `dev` could release, in addition to those that the device reports as
 * free. */
uint64_t ss_idle_bytes(struct ss_core *core, int dev);
/* The figures for hipMemGetInfo. In: the device's own. Out: idle memory counts as free, and
 * SOMASHIM_LIMIT is applied. */
void ss_mem_info(struct ss_core *core, int dev, uint64_t *free_bytes, uint64_t *total_bytes);
/* Memory of some device was taken past the pools, so the next allocation asks the device again how
 * much is left. Takes no lock. */
void ss_device_room_changed(struct ss_core *core);

/* The size of the device as programs see it: `total_bytes`, or less under SOMASHIM_LIMIT. */
uint64_t ss_limit_of(struct ss_core *core, int dev, uint64_t total_bytes);
/* Memory that the process takes of `dev` past the pools counts against SOMASHIM_LIMIT, too. False:
 * there is no room for it, and nothing was counted; idle memory of the pools may be in the way. The
 * pools of `dev` exist (ss_pool_default). */
bool ss_limit_take(struct ss_core *core, int dev, uint64_t bytes);
void ss_limit_return(struct ss_core *core, int dev, uint64_t bytes);

/* Releases idle memory of `dev` because a call of the runtime found none. With `may_wait` it waits
 * as long as an allocation would (SOMASHIM_OOM_WAIT_MS). *end is 0 for the first try and keeps the
 * end of the wait between tries. True: some memory was released, and another try may release
 * more. */
bool ss_release_idle(struct ss_core *core, int dev, bool may_wait, uint64_t *end);
/* The same for calls that do not report that memory is out: releases idle memory until `dev` has
 * `size` bytes free, or nothing is idle. */
void ss_make_room(struct ss_core *core, int dev, uint64_t size, bool may_wait);
/* Has `dev` less free than the runtime may need for itself? Then freed memory is released at
 * once. */
bool ss_device_low(struct ss_core *core, int dev);
/* A hipFree has waited for all streams of `dev`. */
void ss_freed_idle(struct ss_core *core, int dev);

/* Is every stream of `dev` idle? Records and polls fences, and never waits. The table in
 * order/order.h lists the other questions of this kind. Without `join_null` the answer is no for a
 * device whose null stream was used beside blocking streams, because a fence on the null stream
 * would join them. */
bool ss_device_record_and_ask(struct ss_core *core, int dev, bool join_null);
/* Is any stream of `dev` known to be busy? Streams are queried, and nothing is enqueued. Another
 * thread's per-thread stream cannot be asked, and after a bypass none is. */
bool ss_device_ask_busy(struct ss_core *core, int dev);
/* The devices that must be idle before `dev` is reset: those with access to its pools' memory, and
 * `dev` itself if pools of another device have memory. */
uint64_t ss_reset_waits_for(struct ss_core *core, int dev);
/* Around the real hipDeviceReset: pools, blocks and timelines of the device end. `idle`: nothing
 * runs on the devices of ss_reset_waits_for(), so memory is released. A block that another thread
 * allocates there before the end is dead with the others, or its allocation fails with
 * SS_ERR_NO_DEVICE. */
void ss_device_reset_begin(struct ss_core *core, int dev, bool idle);
void ss_device_reset_end(struct ss_core *core, int dev);
/* From now on the driver opens new mappings to one more device. This opens the present mappings of
 * all devices to it, too. False: some were not opened, so call it again. No lock held. */
bool ss_devices_reopen(struct ss_core *core);
/* hipDeviceEnablePeerAccess: the devices in `peers` get access to the classic memory of `dev`. They
 * keep it after a reset. */
enum ss_status ss_device_add_peers(struct ss_core *core, int dev, uint64_t peers);
/* Releases the memory of `dev` that is due: above a threshold, trimmed, or idle for
 * SOMASHIM_DECAY_MS. `device_idle`: the device is known to be idle, for example since the
 * application has just waited for it. Then memory whose release waits for the device is released,
 * too. */
void ss_decay_run(struct ss_core *core, int dev, bool device_idle);

/*
 * Idle memory decays: it is released when it was idle for SOMASHIM_DECAY_MS. A watcher, which is a
 * thread in the shim, drives that. Without one the synchronizations of the application do.
 */
/* Asks the watcher to call ss_decay_next() for each device in `ms`. Called by any thread, with no
 * lock held. */
typedef void ss_decay_waker(void *arg, uint64_t ms);
/* There is a watcher from now on. NULL: there is none. */
void ss_decay_watch(struct ss_core *core, ss_decay_waker *wake, void *arg);
/* The next free that comes calls `wake`, once. A free that is a hit just now may not notice. */
void ss_decay_notify(struct ss_core *core);
/* Releases what has to go of `dev`, and returns in how many ms to call this again; UINT64_MAX:
 * nothing is idle that could go. Never waits: while a stream is busy, memory whose release waits
 * for the device stays, and the stream is asked less and less often. About 1 GiB goes in one call;
 * then it returns 0 for the rest. */
uint64_t ss_decay_next(struct ss_core *core, int dev);

#endif

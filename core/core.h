/* SPDX-License-Identifier: MIT */
/*
 * What the shim, the tests and `somashim replay` may call. No HIP or HSA type
 * appears here. All functions are thread safe unless they say otherwise; none
 * calls the driver with a lock held. Sizes are bytes.
 */
#ifndef SS_CORE_H
#define SS_CORE_H

#include <stdio.h>

#include "core/driver.h"
#include "core/base/options.h"

struct ss_core;
struct ss_pool;
struct ss_timeline;

/* One core per process in the shim, many in tests. The driver and the options
 * are copied. Returns NULL when host memory is out. Destroy is for tests and
 * tools only (the shim never tears down): it gives everything back. */
struct ss_core *ss_core_create(const struct ss_driver *drv, const struct ss_options *opt);
void ss_core_destroy(struct ss_core *core);
/* Must what is mapped on the device be unmapped before the process ends? And that: all work of
 * the device is at its end, and nobody uses its memory again. */
bool ss_must_unmap(struct ss_core *core, int dev);
void ss_unmap(struct ss_core *core, int dev);
/* Where reports (out of memory, bypasses) are written; NULL: nowhere, as at
 * first. Not thread safe: call it before anything else. */
void ss_core_set_log(struct ss_core *core, FILE *log);
/* Why the log of allocations that was asked for is not written (errno); 0: it is, or was
 * not asked for. */
int ss_core_journal_error(const struct ss_core *core);

/* ---- streams: timeline.c ------------------------------------------------ */

enum ss_timeline_kind {
	SS_TL_NULL,        /* the legacy null stream of a device */
	SS_TL_BLOCKING,    /* joins the null stream */
	SS_TL_NONBLOCKING,
	SS_TL_THREAD,      /* hipStreamPerThread of one thread; blocking */
};

/* The null timeline of a device. NULL when host memory is out, or all slots are taken. */
struct ss_timeline *ss_timeline_null(struct ss_core *core, int dev);
/* hipStreamPerThread of the calling thread on `dev`; retired by the thread's
 * own ss_thread_exit(). NULL when host memory is out. */
struct ss_timeline *ss_timeline_thread(struct ss_core *core, int dev);
/* `late`: the runtime has taken its streams down, and must not be asked for them any more;
 * `drained`: the devices (a bit each) whose stream the thread has just waited for. */
void ss_thread_exit(struct ss_core *core, bool late, uint64_t drained);
/* A stream enters after its real create and starts with no history. `seen` is
 * false for a handle nobody saw created (some way into HIP bypassed us). */
struct ss_timeline *ss_timeline_add(struct ss_core *core, int dev, void *native,
				    enum ss_timeline_kind kind, bool seen);
/* NULL for an unknown handle. Never call with a null or per-thread handle. */
struct ss_timeline *ss_timeline_find(struct ss_core *core, void *native);
/* Call before the real destroy: the handle is forgotten, a last fence tells
 * when what was freed on it may be reused, and its cached bytes go back to
 * their pools. True: the caller must synchronize the stream (the real call)
 * before it destroys it, because the null stream counts on joining it. */
bool ss_timeline_retire(struct ss_core *core, struct ss_timeline *tl);
/* Native handles of the live non-blocking streams of `dev`; returns how many
 * there are (at most `max` are stored). With the null stream, these are all
 * that a per-stream wait for the device has to cover. */
size_t ss_streams_nonblocking(struct ss_core *core, int dev, void **out, size_t max);
int ss_timeline_device(const struct ss_timeline *tl);
enum ss_timeline_kind ss_timeline_kind(const struct ss_timeline *tl);
void *ss_timeline_native(const struct ss_timeline *tl);

/* Streams that are captured neither record nor answer. `on` false ends it. */
void ss_timeline_set_capturing(struct ss_core *core, struct ss_timeline *tl, bool on);
bool ss_timeline_capturing(const struct ss_timeline *tl);

/* ---- events and host synchronization ------------------------------------ */
/*
 * Each watched call is a pair: `begin` before the real call reads positions,
 * `end` after it grants them if the call succeeded. Tokens are plain values on
 * the caller's stack and must be ended exactly once.
 */
struct ss_token {
	void *a, *b;
	uint64_t n, gen;
	int32_t kind, dev;
	uint32_t cover;
};

/* A new event has no clock. An address that was known is a new event. */
void ss_event_add(struct ss_core *core, void *event);
/* Before the real destroy. */
void ss_event_forget(struct ss_core *core, void *event);
/* It was, or may at any time be, recorded by a call we cannot see (`sticky`:
 * for the rest of its life - graph nodes, other processes): no clock. */
void ss_event_taint(struct ss_core *core, void *event, bool sticky);

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl);
void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok);
/* hipStreamWaitEvent(tl, event) */
struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl);
void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok);
/* A host call that proves `event` done when it succeeds (synchronize, query). */
struct ss_token ss_event_sync_begin(struct ss_core *core, void *event);
/* ... that proves everything enqueued on `tl` so far done. For a null timeline
 * that includes the blocking streams of its device. */
struct ss_token ss_stream_sync_begin(struct ss_core *core, struct ss_timeline *tl);
/* ... the same for a query, which joins nothing: of a null timeline it proves
 * only what a command of ours on it stands behind. */
struct ss_token ss_stream_query_begin(struct ss_core *core, struct ss_timeline *tl);
/* Will the query's begin have to enqueue that command? */
bool ss_stream_uncovered(const struct ss_timeline *tl);
/* ... everything on the device (hipDeviceSynchronize). */
struct ss_token ss_device_sync_begin(struct ss_core *core, int dev);
/* ... every live stream of the device, waited for one by one (as hipFree does):
 * unlike the above it says nothing about destroyed streams. */
struct ss_token ss_streams_sync_begin(struct ss_core *core, int dev);
/* Ends any of the four. `threshold` = this call is one of HIP's synchronization
 * points, at which memory above the release threshold goes back. */
void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold);

/* The usual case of the above in one call, at a fraction of the cost: handles that are
 * known, of streams that have one of their own, and nothing captures. What is not usual
 * goes the long way. Round the real call *depth is one higher. */
struct ss_record_call {
	int (*real)(void *event, void *native), (*long_way)(void *event, void *native);
};
struct ss_wait_call {
	int (*real)(void *native, void *event, unsigned flags);
	int (*long_way)(void *native, void *event, unsigned flags);
};
struct ss_sync_call {
	int (*real)(void *handle), (*long_way)(void *handle);
	int (*failed)(int err); /* an error of real() goes through it */
};
int ss_record(struct ss_core *core, void *event, void *native, const struct ss_record_call *call,
	      int *depth);
int ss_wait(struct ss_core *core, void *native, void *event, unsigned flags,
	    const struct ss_wait_call *call, int *depth);
int ss_stream_sync(struct ss_core *core, void *native, const struct ss_sync_call *call, int *depth);
/* A synchronization (`threshold`) or a query. */
int ss_event_sync(struct ss_core *core, void *event, bool threshold,
		  const struct ss_sync_call *call, int *depth);

/* From now on event clocks and query results are not trusted (a bypass was
 * seen); completion then comes from fences and device-wide waits only. */
void ss_distrust(struct ss_core *core, const char *why);
bool ss_distrusted(const struct ss_core *core);
/* The program has functions of its own run on streams, which may allocate: from now on
 * no hipMalloc waits for work that may stand behind one, but for lack of memory. */
void ss_backpressure_never(struct ss_core *core);

/* ---- pools: pool.c ------------------------------------------------------ */

enum ss_attr { /* the values of hipMemPoolAttr */
	SS_ATTR_REUSE_FOLLOW_EVENTS = 1,
	SS_ATTR_REUSE_OPPORTUNISTIC,
	SS_ATTR_REUSE_INTERNAL,
	SS_ATTR_RELEASE_THRESHOLD,
	SS_ATTR_RESERVED_CURRENT,
	SS_ATTR_RESERVED_HIGH,
	SS_ATTR_USED_CURRENT,
	SS_ATTR_USED_HIGH,
};

/* The default pool serves hipMallocAsync, the classic pool hipMalloc. Both live
 * as long as the device. NULL for a bad device or when the driver has none. */
struct ss_pool *ss_pool_default(struct ss_core *core, int dev);
struct ss_pool *ss_pool_classic(struct ss_core *core, int dev);
struct ss_pool *ss_pool_current(struct ss_core *core, int dev);
/* SS_ERR_INVALID: bad device or a pool that is gone; SS_ERR_DEVICE: a pool of
 * another device. */
enum ss_status ss_pool_set_current(struct ss_core *core, int dev, struct ss_pool *pool);
/* max_bytes 0 = no cap of its own. */
enum ss_status ss_pool_create(struct ss_core *core, int dev, uint64_t max_bytes,
			      struct ss_pool **out);
/* Other processes may map its memory: call before anything is allocated from it. */
void ss_pool_share(struct ss_pool *pool);
bool ss_pool_shared(const struct ss_pool *pool);
/* Live blocks stay valid; the last free gives the memory back. SS_ERR_INVALID
 * for a default or classic pool. A current pool falls back to the default. */
enum ss_status ss_pool_destroy(struct ss_core *core, struct ss_pool *pool);
/* A pool handle is a number that is never used twice, so a dead one is known. */
void *ss_pool_handle(const struct ss_pool *pool);
struct ss_pool *ss_pool_from_handle(struct ss_core *core, void *handle);
/* The same where more is done than to ask for figures: until it is let go of (NULL: nothing)
 * the pool is no other, whoever destroys it meanwhile. Not a lock. */
struct ss_pool *ss_pool_hold(struct ss_core *core, void *handle);
void ss_pool_let_go(struct ss_pool *pool);
bool ss_pool_is_handle(const void *handle); /* ours, dead or alive */
int ss_pool_device(const struct ss_pool *pool);

enum ss_status ss_pool_set_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t value);
enum ss_status ss_pool_get_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t *value);
/* Keeps at least `keep` bytes, gives the rest of the idle memory back where
 * nothing is in flight; never waits for the device. */
enum ss_status ss_pool_trim(struct ss_core *core, struct ss_pool *pool, uint64_t keep);
/* Devices (a bit each) that get access, and others that lose it; the owner always has it.
 * Reaches existing and later segments. Threads may call at the same time: each waits for the
 * one before. Failure: those who had no access before have none. */
enum ss_status ss_pool_set_access(struct ss_core *core, struct ss_pool *pool, uint64_t give,
				  uint64_t take);
uint64_t ss_pool_access(const struct ss_pool *pool);
/* Which of them were to read only. Nothing is made of it: they may write as well, as in
 * the runtime; but who asks hears what was said. */
void ss_pool_set_readers(struct ss_pool *pool, uint64_t readers, uint64_t others);
uint64_t ss_pool_readers(const struct ss_pool *pool);

/* Stream-ordered allocation. size > 0. The pool is held, or one that is never destroyed. */
enum ss_status ss_alloc_async(struct ss_core *core, struct ss_pool *pool,
			      struct ss_timeline *tl, size_t size, void **out);
/* ... from the current pool of tl's device. */
enum ss_status ss_alloc_current(struct ss_core *core, struct ss_timeline *tl, size_t size,
				void **out);
/* The usual case of the above and of ss_free_async, at a fraction of the cost: in
 * the device's current pool, on a stream with a handle of its own, nothing
 * captures. 0, or whatever `miss` returns: not usual, and nothing was done. */
/* `native` is any handle, `core` may be NULL: that is not usual either. Nor is anything
 * while *shut (which see) is not 0; after it has grown, ss_hits_end() makes threads look. */
void ss_hits_gate(struct ss_core *core, const _Atomic int *shut);
void ss_hits_end(struct ss_core *core);
typedef int ss_miss_alloc(void **out, size_t size, void *native);
typedef int ss_miss_free(void *ptr, void *native);
int ss_hit_alloc(void **out, size_t size, void *native, struct ss_core *core,
		 ss_miss_alloc *miss);
int ss_hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss);
/* hipMalloc: only bytes whose every mark is completed. */
enum ss_status ss_alloc_classic(struct ss_core *core, int dev, size_t size, void **out);
/* SS_ERR_FOREIGN: not ours (or freed already and forgotten): pass it on.
 * SS_ERR_INVALID: ours, but not live (a double free). SS_ERR_CLASSIC: a block
 * of hipMalloc, not freed: call ss_free_classic. */
enum ss_status ss_free_async(struct ss_core *core, void *ptr, struct ss_timeline *tl);
/* hipFree. `waited` = the caller has just waited for all streams of the block's
 * device, with `waited` taken by ss_streams_sync_begin before that wait (ended by
 * this call); NULL when no wait took place: the block is then gated by an epoch
 * of all timelines. Interior pointers free the block that contains them, as
 * HIP does. */
enum ss_status ss_free_classic(struct ss_core *core, void *ptr, struct ss_token *waited);

/* hipMalloc and hipFree while `only` is the one timeline of its device and so
 * orders all work there: a free waits for nothing, and what was freed may be
 * handed out again at once. The caller must have `only` synchronized before a
 * second timeline, or anybody else who can look, comes into being. */
enum ss_status ss_alloc_only(struct ss_core *core, struct ss_timeline *only, size_t size,
			     void **out);
enum ss_status ss_free_only(struct ss_core *core, void *ptr, struct ss_timeline *only);
/* The usual case of both, at a fraction of the cost, where the null stream is that one.
 * False, or -1 in place of the block's device: it is not usual, and nothing was done. `now`
 * is asked, once the device is known, whether the above still holds; with a lock held, so it
 * calls nobody, and says no where it would have to. Then `may` is asked. */
bool ss_hit_only_alloc(struct ss_core *core, int dev, size_t size, void **out);
int ss_hit_only_free(struct ss_core *core, void *ptr, bool (*now)(int dev), bool (*may)(int dev));

struct ss_block_info {
	void *base;        /* first byte of the block */
	size_t size;       /* as requested */
	void *segment;     /* first byte of the segment that holds it */
	size_t segment_size;
	uint64_t id;       /* unique among all blocks ever handed out */
	int device;
	enum ss_backing backing;
	struct ss_pool *pool;
	bool classic;
	bool live;
};
/* True if `ptr` lies in memory of ours. `live` false: in a segment of ours, but
 * in no block that is handed out. */
bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *out);
/* How many bytes from ptr on belong to the live block it points into; 0 also where it points
 * into memory that hipMalloc has not handed out. False: it points into neither. Takes no lock
 * where there is a live block, or nothing of ours. */
bool ss_bytes_left(struct ss_core *core, const void *ptr, uint64_t *left);
/* A command that is about to be enqueued on tl's stream uses the live block that ptr points into,
 * or whatever it likes (NULL). That may be of another device: a copy needs no peer access, and
 * the real hipFree, which does not wait for that stream, leaves the memory until the command has
 * run. So does ours from then on. */
void ss_timeline_visits(struct ss_core *core, struct ss_timeline *tl, const void *ptr);
/* What a free asks, without a lock where `ptr` is the first byte of a live block. SS_OK:
 * it lies in a live block, on device *dev; SS_ERR_INVALID: ours, but not live;
 * SS_ERR_FOREIGN. */
enum ss_status ss_where(struct ss_core *core, const void *ptr, int *dev);
/* True if [ptr, ptr+size) touches a reservation or segment of ours. */
bool ss_owns_range(struct ss_core *core, const void *ptr, size_t size);

/* Where a block lies that is to be shared with other processes. SS_ERR_FOREIGN: not
 * ours; SS_ERR_INVALID: not live, or of a backing that has no handles. */
struct ss_ipc_place {
	void *segment;
	size_t segment_size;
	uint64_t serial;   /* of the segment; never used twice */
	size_t offset;     /* of the block in it */
	size_t size;       /* of the block, as requested */
	int device;
};
enum ss_status ss_ipc_find(struct ss_core *core, const void *ptr, struct ss_ipc_place *out);
/* It is shared: from now on its bytes are never handed out again. */
void ss_ipc_export(struct ss_core *core, const struct ss_ipc_place *place);
/* Was the live block at ptr, in the segment of that number? */
bool ss_ipc_exported(struct ss_core *core, const void *ptr, uint64_t serial);

/* Bytes the device could give this process beyond what it reports as free. */
uint64_t ss_idle_bytes(struct ss_core *core, int dev);
/* What hipMemGetInfo should say: raw numbers in, adjusted out. */
void ss_mem_info(struct ss_core *core, int dev, uint64_t *free_bytes, uint64_t *total_bytes);

/* Idle memory goes back to dev, because a call of the runtime's own found none there. If
 * it may, this waits as an allocation of ours does, until *end (0: not set yet). True: some
 * went back; asked again, there may be more. */
bool ss_give_back(struct ss_core *core, int dev, bool may_wait, uint64_t *end);
/* The same where the runtime will not say that it found none: until dev has `size` bytes free, if
 * what lies idle can help. */
void ss_give_room(struct ss_core *core, int dev, uint64_t size, bool may_wait);
/* Has dev less free than the runtime may need for itself? Then what is freed goes back. */
bool ss_scarce(struct ss_core *core, int dev);
/* A free has waited for all of dev. */
void ss_freed_idle(struct ss_core *core, int dev);

/* Has every stream of dev reached its end right now? Asks with fences, never
 * waits. Without `join_null` a device whose null stream was ever used beside
 * blocking ones is not known to be idle, since asking there joins them. */
bool ss_device_idle(struct ss_core *core, int dev, bool join_null);
/* The null stream and all that join it? *busy: not yet, but a fence will tell. */
bool ss_null_idle(struct ss_core *core, int dev, bool *busy);
/* The devices (a bit each) that are to be idle before dev loses its memory and its streams: those
 * that may touch what its pools have, and dev itself, if pools of another have anything. */
uint64_t ss_device_keeps(struct ss_core *core, int dev);
/* hipDeviceReset: pools, blocks and timelines of the device are gone; call
 * before the real reset. With `idle` nothing runs on those devices: it goes back. */
void ss_device_reset(struct ss_core *core, int dev, bool idle);
/* Peer access as hipDeviceEnablePeerAccess has it: `dev`'s classic memory becomes visible to the
 * devices in `peers`, too, and stays so: a reset takes nothing from them. */
enum ss_status ss_device_add_peers(struct ss_core *core, int dev, uint64_t peers);
/* A point where the application waits for the whole device natively, or knows
 * it idle: memory that was marked goes back now. Also drives decay. */
void ss_decay_run(struct ss_core *core, int dev, bool device_idle);

/* ---- statistics --------------------------------------------------------- */

#define SS_LADDER_ROWS 13

struct ss_pool_stats {
	int device;
	const char *kind;    /* "default", "classic", "pool 3" */
	const char *backing;
	uint64_t allocations, frees, hits, misses;
	uint64_t reuse_same_stream, reuse_event, reuse_completed, reuse_internal, reuse_implicit;
	uint64_t waits;      /* allocations that waited for what was in flight */
	uint64_t segments, grown, released_bytes, remaps, trims;
	uint64_t reserved, reserved_high, used, used_high;
	uint64_t fences, driver_calls, driver_ns;
	uint64_t out_of_memory;
	uint64_t served[SS_LADDER_ROWS]; /* how often each row of the ladder helped */
};
/* Name and cost of row i of the ladder, the steps that an allocation goes through which is no hit
 * (pool/ladder.c); NULL: there are fewer. */
const char *ss_ladder_row(unsigned i, const char **cost);
/* Calls `each` once per pool that ever served something. */
void ss_stats(struct ss_core *core, void (*each)(const struct ss_pool_stats *, void *), void *arg);
/* The table that SOMASHIM_STATS=1 prints. Safe at exit: calls no driver. */
void ss_stats_print(struct ss_core *core, FILE *out);
/* The sum over all pools, those that are destroyed too. The high marks are those of the pools
 * added up, so they are upper bounds. Safe at exit: calls no driver. */
void ss_stats_total(struct ss_core *core, struct ss_pool_stats *out);
/* Host bytes the core holds for its own bookkeeping. */
uint64_t ss_host_bytes(const struct ss_core *core);
/* Checks every invariant of heaps, queues and maps (tests). Returns NULL or the
 * sentence that is broken. Call with no other thread in the core. */
const char *ss_check(struct ss_core *core);

#endif

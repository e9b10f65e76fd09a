/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_CHECK: reports the program's actions to core/check, and the errors to the user. The
 * folders above call these functions only while ss_checking; so an unchecked program pays for one
 * test per call that is no hit. No call is a hit while the checker runs, so each call reaches these
 * functions.
 *
 * Locks: the lock of core/check, and the locks of the files of this folder, which are leaves.
 */
#ifndef SS_SHIM_CHECKER_H
#define SS_SHIM_CHECKER_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

#include "core/check/check.h"
#include "core/core.h"
#include "shim/process/service.h"

extern bool ss_checking SS_HIDDEN; /* set before the first call is served, never cleared */

/* The access of a command to memory. */
enum ss_access {
	SS_READS,
	SS_WRITES, /* writes all of it */
	SS_MAY_WRITE,
};

/* The kind of a call, by its name. */
enum ss_call_kind {
	SS_CALL_NODES = 1, /* makes or changes nodes of graphs */
	/* Reports, releases or ends memory of pools, including all freed memory */
	SS_CALL_POOLS = 2,
	SS_CALL_COPIES = 4, /* a copy or a memset for which the host may wait */
	/* Other calls for which the host may wait, as they allocate or free memory outside our
	 * pools */
	SS_CALL_WAITS = 8,
	SS_CALL_ERRORS = 32, /* returns the last error, and does not fail itself */
	SS_CALL_PEERS = 16,  /* the two devices may also wait for each other */
};

/* The compiler computes the kind of a literal. */
static inline __attribute__((always_inline)) unsigned ss_call_kind(const char *name)
{
#define BEGINS(with) (!__builtin_strncmp(name, with, sizeof(with) - 1))
#define IS(other) (!__builtin_strcmp(name, other))
	bool waits = IS("hipHostFree") || IS("hipFreeHost") || IS("hipHostUnregister") ||
		     IS("hipFreeArray") || IS("hipArrayDestroy") || IS("hipFreeMipmappedArray") ||
		     IS("hipMipmappedArrayDestroy") || IS("hipDeviceReset") ||
		     IS("hipMemRelease") || IS("hipMemUnmap") || IS("hipExecutionCtxSynchronize");
	bool copies = BEGINS("hipMemcpy") || BEGINS("hipMemset") || BEGINS("hipDrvMemcpy");
	bool peers = IS("hipMemcpyPeer") || IS("hipMemcpy3DPeer");
	bool errors = IS("hipGetLastError") || IS("hipPeekAtLastError") || IS("hipExtGetLastError");
	bool nodes = BEGINS("hipGraph") || BEGINS("hipDrvGraph");
	bool pools = BEGINS("hipMemPool") || IS("hipDeviceReset");
	bool async = __builtin_strstr(name, "Async");

	return (nodes ? SS_CALL_NODES : 0) | (pools ? SS_CALL_POOLS : 0) |
	       (copies && !async ? SS_CALL_COPIES : 0) | (waits ? SS_CALL_WAITS : 0) |
	       (peers ? SS_CALL_PEERS : 0) | (errors ? SS_CALL_ERRORS : 0);
#undef BEGINS
#undef IS
}

/* A call of the application begins, or ends with this result. `name` is static. */
void ss_check_call_begins(const char *name, unsigned kind);
void ss_check_called(hipError_t err);
/* The call fails with this error, or (hipSuccess) succeeds. One report per call is enough. */
void ss_check_failed(hipError_t err);

static inline __attribute__((always_inline)) void ss_check_call(const char *name)
{
	ss_check_call_begins(name, ss_call_kind(name));
}

/* ---- streams and events ----------------------------------------------------- */

void ss_check_stream_created(struct ss_timeline *tl);
void ss_check_stream_destroyed(struct ss_timeline *tl);
/* A stream may wait for unseen work (hold), or the host may learn which of its work has completed
 * (tell). */
void ss_check_stream_opaque(struct ss_timeline *tl, bool hold, bool tell);
/* A stream may wait for the host. */
void ss_check_stream_held(struct ss_timeline *tl);
void ss_check_recording(hipEvent_t event);
/* tl NULL: the record is unknown. */
void ss_check_recorded(hipEvent_t event, struct ss_timeline *tl, bool ok);
void ss_check_event_tainted(hipEvent_t event, bool forever);
void ss_check_event_gone(hipEvent_t event);
/* Before the real call, and after it. */
void ss_check_waits(struct ss_timeline *tl, hipEvent_t event);
void ss_check_event_reached(hipEvent_t event);
/* tl NULL: all streams. */
void ss_check_reached(struct ss_timeline *tl);
/* dev -1: all devices. */
void ss_check_device_reached(int dev);
/* All memory and all streams of a device have been destroyed. */
void ss_check_reset(void);

/* ---- memory ------------------------------------------------------------------ */

/* The number of bytes that an allocation of `size` bytes has to take. */
size_t ss_check_size(size_t size);
/* The tool guard, for a block that is large enough. Parameters as of ss_alloc_guarded(). After any
 * error the caller allocates the block as others. */
enum ss_status ss_check_guarded(struct ss_timeline *tl, struct ss_pool *pool, size_t size,
				void **ptr);
/* The call refuses a handle of this block for other processes. Reports that if the reason is the
 * guard. */
void ss_check_no_handle(const char *call, const void *ptr);
/* tl NULL: memory of hipMalloc. `room` is the number of bytes that the block takes. */
void ss_check_allocated(struct ss_timeline *tl, void *ptr, size_t size, size_t room);
/* The size that the program requested; `size` for a block that the checker does not know. */
size_t ss_check_asked(const void *ptr, size_t size);
/* The number of bytes in the block from ptr on, without padding; `left` includes padding. */
uint64_t ss_check_left(const void *ptr, uint64_t left);
/* Before the free; tl NULL: a free for which the host waits. */
void ss_check_freeing(struct ss_timeline *tl, void *ptr);
/* After the free. `ok`: the free succeeded. */
void ss_check_freed(struct ss_timeline *tl, void *ptr, bool ok);
/* The free that this thread reported last did not happen, so the block is live. False: the free was
 * of no live block, and nothing changes. */
bool ss_check_not_freed(void *ptr);
/* Before a block returns to its pool; the free on tl (NULL: for which the host has waited) is
 * correct. True: the block is held now, and returns later, in the order of the same stream. */
bool ss_check_keep(struct ss_timeline *tl, void *ptr, const struct ss_found *found);
/* Was this block freed, and is it still held? */
bool ss_check_kept(const struct ss_found *found);
/* An allocation found no memory. True: held blocks were returned, so the allocation may succeed
 * now. */
bool ss_check_release(void);
/* The program's own pool hands out a range of a block on tl, or takes it back. */
void ss_check_handing_out(struct ss_timeline *tl, void *ptr, size_t size);
void ss_check_returning(struct ss_timeline *tl, void *ptr);
/* hipHostFree got a block of ours. */
void ss_check_host_free(void *ptr);
/* The first: hipMemPoolDestroy succeeded. The second: a call got a handle that is no live
 * pool's. */
void ss_check_pool_destroyed(hipMemPool_t handle);
void ss_check_pool_used(hipMemPool_t handle);
/* Memory that the host and the device see: pinned, managed, fine-grained. `pinned`: allocated by
 * hipHostMalloc and its like. */
void ss_check_host_memory(void *ptr, size_t size, bool pinned);
/* Memory of a graph. */
void ss_check_device_memory(void *ptr, size_t size);
/* The first: the call frees the memory, or takes it from the device. The second: the call did
 * not. */
void ss_check_host_memory_gone(void *ptr);
void ss_check_host_memory_kept(void *ptr);
/* A command that is about to be enqueued on tl uses `size` bytes at ptr, or those `rows` of them
 * (NULL: all). Call it for the destination of a copy first. False: the command leaves the block. */
bool ss_check_access(struct ss_timeline *tl, enum ss_access access, const void *ptr, size_t size,
		     const struct ss_check_rows *rows);
/* Called before ss_check_access(). The first: the command copies from src to dst; `even`: every
 * byte has the same distance to its source. The second: the command sets elements of the given size
 * to a value. */
void ss_check_source(const void *dst, const void *src, bool even);
void ss_check_value_set(const void *dst, uint64_t value, unsigned element);
/* A command that waits for a value at ptr, or writes one. */
void ss_check_value(struct ss_timeline *tl, const void *ptr, size_t size);
/* A kernel, by its arguments (check/kernel_args.h). `host`: function is the address of
 * a host function, else a hipFunction_t. */
void ss_check_kernel(struct ss_timeline *tl, const void *function, bool host, void **args,
		     void **extra);
/* Code that the program loads, from memory or from a file. */
void ss_check_code(const void *image);
void ss_check_code_file(const char *path);

/* ---- graphs ------------------------------------------------------------------- */

/* An executable graph is launched. */
void ss_check_graph(struct ss_timeline *tl, hipGraphExec_t exec);
/* Reports after a call that succeeded. The first three are about graphs. */
void ss_check_graph_new(hipGraph_t graph);
void ss_check_graph_copied(hipGraph_t from, hipGraph_t to);
void ss_check_graph_gone(hipGraph_t graph);
void ss_check_child_added(hipGraphNode_t node, hipGraph_t child);
/* The first: a copy node of `graph` (NULL: of any) uses the operands that the call gave to
 * ss_check_access(). The second: the same for a copy or a memset of an executable graph, made from
 * the graph of `node`. */
void ss_check_node(hipGraph_t graph, hipGraphNode_t node);
void ss_check_exec_node(hipGraphExec_t exec, hipGraphNode_t node);
void ss_check_exec_kernel(hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *p);
void ss_check_exec_enabled(hipGraphExec_t exec, hipGraphNode_t node, bool enabled);
/* The executable graph was made from a graph, or updated to it. */
void ss_check_exec_made(hipGraphExec_t exec, hipGraph_t graph);
void ss_check_exec_gone(hipGraphExec_t exec);
/* A node was changed in a way that the checker does not follow. */
void ss_check_exec_unknown(hipGraphExec_t exec);

#endif

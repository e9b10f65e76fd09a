/* SPDX-License-Identifier: MIT */
/*
 * Releasing a pool's memory, and whether that is possible without a wait for the device.
 */
#ifndef SS_POOL_RELEASE_H
#define SS_POOL_RELEASE_H

#include "core/pool/pool_state.h"

/*
 * May idle memory of a pool be released, or move, without a wait for the device? On a backing
 * whose releases do not wait (hsa) the answer is yes, whatever `how`, and it costs nothing. On the
 * other backings the device must be found idle:
 *
 *  how              cost                                          yes if
 *  SS_IDLE_UNASKED  nothing                                       never
 *  SS_IDLE_QUERIED  a query per stream; nothing is enqueued       every stream was idle
 *  SS_IDLE_FENCED   a query per stream, and a fence for each      the same; never where blocking
 *                   that is not idle; polled a few times          streams join a null stream that
 *                                                                 was used
 *  SS_IDLE_JOINED   the same, and a fence on the null stream      every stream was idle
 *                   joins the blocking streams
 *
 * A yes proves that every free before the question has completed. The yes holds for the moment: a
 * command that another thread enqueues next may make the release wait after all. After a bypass,
 * or while a destroyed stream still runs, the answer is no. The question never waits, and no lock
 * is held. QUERIED may ask a null stream that FENCED may not touch, so a caller that asks only once
 * (a trim) asks for both. JOINED is for calls that join the null stream natively, and for calls
 * that would otherwise fail.
 */
enum ss_idle_how { SS_IDLE_UNASKED, SS_IDLE_QUERIED, SS_IDLE_FENCED, SS_IDLE_JOINED };
bool ss_may_release(const struct ss_pool *pool, enum ss_idle_how how);
/* The same question in two parts, for a caller that asks once for all pools of a device. Is the
 * device idle (as if every release waited)? And are the other devices idle whose streams a
 * release of this pool's memory waits for? On vmm an unmap waits, from 7.14 on, for each device
 * that can reach the memory, and a pool opens its mappings to all devices that are used (V21 in
 * docs/known-problems.md). */
bool ss_device_may_release(struct ss_core *core, int dev, enum ss_idle_how how);
bool ss_others_may_release(const struct ss_pool *pool);
/* Is the device found idle before `end` (ms)? Asks as SS_IDLE_JOINED does, and naps between the
 * questions. For callers that may wait. No lock held. */
bool ss_device_wait_idle(struct ss_core *core, int dev, uint64_t end);

/* Releases idle memory as ss_memory_release() does, exported segments included. `cause`: for a
 * recording. */
uint64_t ss_pool_release(struct ss_pool *pool, uint64_t target, uint64_t older_than,
			 enum ss_trace_trim_cause cause);
/* Forgets every block and segment. No lock held. */
void ss_pool_drop_memory(struct ss_pool *pool, enum ss_drop how);

/* ---- segments with exported blocks: ../ipc.c. No lock held. ------------------------ */

/* Idle bytes that exported blocks hold as long as live blocks lie beside them. */
uint64_t ss_ipc_pinned(struct ss_pool *pool);
/* Releases segments that hold nothing but idle memory and exported blocks that were freed.
 * `all`: even if the device is seen to gain nothing. May wait for the device. Returns the bytes. */
uint64_t ss_ipc_release(struct ss_pool *pool, bool all);

/* ---- when it is released: decay.c. No lock held. ------------------------------------- */

/* Some memory of dev is to be released at a synchronization: a threshold, a trim or the end of a
 * pool asks for it. */
void ss_decay_each_sync(struct ss_core *core, int dev);
/* order's callback. */
ss_synchronized ss_decay_synchronized;
/* Tells the watcher, if it asked for that, that memory has become idle. */
void ss_decay_wake(struct ss_core *core);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Giving a pool's memory back, and whether that is possible with nobody waiting for the device.
 */
#ifndef SS_POOL_RELEASE_H
#define SS_POOL_RELEASE_H

#include "core/pool/pool_state.h"

/*
 * May idle memory of a pool go back, or move, with nobody waiting for the device? On a backing that
 * gives back at no wait (hsa) the answer is yes, whatever `how`, and it costs nothing. Elsewhere
 * the device must be found idle:
 *
 *  how              what it costs                                 when it is yes
 *  SS_GIVE_UNASKED  nothing                                       never
 *  SS_GIVE_QUERIED  a query per stream; nothing is enqueued       every stream was at its end
 *  SS_GIVE_FENCED   a query per stream, and a fence for each      the same; never where blocking
 *                   that is not at its end; polled a few times    streams join a null stream that
 *                                                                 was used
 *  SS_GIVE_JOINED   the same, and a fence on the null stream      every stream was at its end
 *                   joins the blocking streams
 *
 * A yes proves that everything that was freed before the question has completed. It holds for the
 * moment: a command that another thread enqueues next may make the release wait after all. After a
 * bypass, or while a destroyed stream still runs, the answer is no. Nobody waits, and no lock is
 * held. QUERIED may ask a null stream that FENCED may not touch, so who means a single question (a
 * trim) asks for both. JOINED is for calls that join the null stream natively, and for those that
 * would otherwise fail.
 */
enum ss_give_how { SS_GIVE_UNASKED, SS_GIVE_QUERIED, SS_GIVE_FENCED, SS_GIVE_JOINED };
bool ss_may_give(const struct ss_pool *pool, enum ss_give_how how);
/* The same in two parts, for who asks once for all pools of a device: is the device idle (as if
 * giving back always waited), and are the others idle for whose streams giving memory of this pool
 * back waits, too? On vmm an unmap waits, from 7.14 on, for each device that can reach the memory,
 * and what a pool maps is opened to all that are used (V21 in docs/known-problems.md). */
bool ss_device_may_give(struct ss_core *core, int dev, enum ss_give_how how);
bool ss_others_may_give(const struct ss_pool *pool);
/* Is the device found idle before `end` (ms)? Asks as SS_GIVE_JOINED does, and naps between. For
 * callers that may wait. No lock held. */
bool ss_device_wait_idle(struct ss_core *core, int dev, uint64_t end);

/* Gives idle memory back as ss_memory_release() does, exported segments included. `cause`: for a
 * recording. */
uint64_t ss_pool_release(struct ss_pool *pool, uint64_t target, uint64_t older_than,
			 enum ss_trace_trim_cause cause);
/* Forgets every block and segment. No lock held. */
void ss_pool_drop_memory(struct ss_pool *pool, enum ss_drop how);

/* ---- segments with exported blocks: ../ipc.c. No lock held. ------------------------ */

/* Idle bytes that exported blocks hold as long as what is live beside them. */
uint64_t ss_ipc_pinned(struct ss_pool *pool);
/* Gives segments back of which only exported blocks that were freed, and idle memory, are left;
 * `all`: even where the device is seen to gain nothing. May wait for the device. Returns the
 * bytes. */
uint64_t ss_ipc_release(struct ss_pool *pool, bool all);

/* ---- when it goes: decay.c. No lock held. -------------------------------------------- */

/* Something of dev is to go at a synchronization: a threshold, a trim or the end of a pool says
 * so. */
void ss_decay_each_sync(struct ss_core *core, int dev);
/* order's callback. */
ss_synchronized ss_decay_synchronized;
/* Memory has become idle. The watcher is told, if it asked for that. */
void ss_decay_wake(struct ss_core *core);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * struct ss_core: members that every layer needs (driver, options, counters), and for each layer a
 * pointer to state that only that layer knows.
 */
#ifndef SS_BASE_STATE_H
#define SS_BASE_STATE_H

#include <stdatomic.h>
#include <stdio.h>

#include "core/base/arithmetic.h"
#include "core/base/compiler.h"
#include "core/base/deadline.h"
#include "config/options.h"
#include "core/driver.h"
#include "core/statistics.h"
#include "trace/format.h"

struct ss_map;       /* range/: addresses, segments, descriptors */
struct ss_order;     /* order/: streams, events, fences */
struct ss_devices;   /* backing/: memory taken of each device */
struct ss_fast_path; /* shelf/: the pools that the hot path serves */
struct ss_pools;     /* pool/: the pools as objects */

struct ss_core {
	struct ss_driver drv;
	struct ss_options opt;
	struct ss_watch watch;
	bool recorded;   /* a recording ran when the core was made (trace/writer.h) */
	uint64_t serial; /* number of this core in the process; never 0 */
	int devices;
	struct ss_device_info info[SS_MAX_DEVICES]; /* filled at the first use of a device */

	/* Threads remember the stream and pool that they used last, together with this number
	 * (base/thread.h). It grows when a remembered stream or pool may have ended. */
	_Atomic uint64_t recent_gen;

	_Atomic uint64_t host_bytes; /* of ss_host_alloc() */
	_Atomic uint64_t driver_calls, driver_ns;
	/* Calls that take memory, release it, and map or open it */
	_Atomic uint64_t memory_calls;
	/* Bytes of idle memory that were released because of their age, or at a synchronization
	 * because of a threshold */
	_Atomic uint64_t decayed_bytes, excess_bytes;

	struct ss_map *map;
	struct ss_order *order;
	struct ss_devices *backing;
	struct ss_fast_path *fast;
	struct ss_pools *pools;
};

/* Tells the watcher of blocks, if any, of a block that was handed out, or is about to be free. */
static inline void ss_tell_block(const struct ss_core *core, bool allocated, const void *ptr,
				 size_t size, const void *stream)
{
	if (unlikely(core->watch.block != NULL))
		core->watch.block(allocated, ptr, size, stream);
}

static inline void ss_tell_growth(const struct ss_core *core)
{
	if (core->watch.grew)
		core->watch.grew();
}

/* Zeroed host memory, counted in core->host_bytes. The caller frees it with ss_host_free(). Objects
 * of 64 bytes and more are aligned to SS_LINES, so that two streams never write to one cache line.
 * NULL: host memory is out. */
void *ss_host_alloc(struct ss_core *core, size_t size);
/* `size`: as given to ss_host_alloc(). NULL is allowed. */
void ss_host_free(struct ss_core *core, void *p, size_t size);
/* Zeroed address space; the kernel backs only pages that are touched. The caller unmaps it. NULL:
 * none is left. */
void *ss_host_map(size_t size);

/* Raises *v to n if n is larger. A thread that reads n with acquire sees everything that was
 * written before. */
static inline void ss_raise_to(_Atomic uint64_t *v, uint64_t n)
{
	uint64_t old = atomic_load_explicit(v, memory_order_relaxed);

	while (old < n && !atomic_compare_exchange_weak_explicit(v, &old, n, memory_order_release,
								 memory_order_relaxed))
		;
}

/* Milliseconds of the driver's clock, which tests make virtual. They count from a point so long
 * before the clock's own start that no time which an option gives reaches back to 0, also on a
 * machine that was just started. So a field of such times that is 0 says "never", and `now -
 * span` is a time. */
uint64_t ss_now_ms(const struct ss_core *core);
/* Sleeps for `ms` at most, and not beyond d, a deadline by that clock. False: d is over. */
bool ss_sleep(struct ss_core *core, struct ss_deadline *d, uint64_t ms);
/* Counts one driver call that began at `t0` (ss_monotonic_ns). `cause` says whether the call is one
 * for memory; `cause` and `dev` are recorded. */
void ss_driver_call_count(struct ss_core *core, uint64_t t0, enum ss_trace_wait_cause cause,
			  int dev);

/* Makes a driver call and adds it to the statistics and to a recording. No lock may be held. */
#define SS_DRIVE_FOR(core, cause, dev, call) \
	__extension__({ \
		uint64_t ss_t0 = ss_monotonic_ns(); \
		enum ss_status ss_s = (call); \
		ss_driver_call_count(core, ss_t0, cause, dev); \
		ss_s; \
	})
#define SS_DRIVE(core, call) SS_DRIVE_FOR(core, SS_TRACE_WAIT_DRIVER_OTHER, -1, call)

#endif

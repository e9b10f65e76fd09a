/* SPDX-License-Identifier: MIT */
/* Host memory and the clock, as every layer of the core uses them. Takes no lock. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/lock.h"
#include "core/base/rent.h"
#include "core/base/state.h"
#include "core/core.h"
#include "trace/writer.h"

#ifdef SS_RENT
bool ss_without(enum ss_rent rule)
{
	static int off = -1;
	const char *without;

	if (off < 0) {
		without = getenv("RENT_WITHOUT");
		off = without ? atoi(without) : 0;
	}
	return rule && (int)rule == off;
}
#endif

#define SHORT_NS 10000 /* shorter queries of the driver are not recorded */

void *ss_host_alloc(struct ss_core *core, size_t size)
{
	void *p = NULL;

	if (size < 64)
		p = calloc(1, size);
	else if (posix_memalign(&p, SS_LINES, size))
		p = NULL;
	else
		memset(p, 0, size);
	if (p)
		atomic_fetch_add_explicit(&core->host_bytes, size, memory_order_relaxed);
	return p;
}

void ss_host_free(struct ss_core *core, void *p, size_t size)
{
	if (!p)
		return;
	atomic_fetch_sub_explicit(&core->host_bytes, size, memory_order_relaxed);
	free(p);
}

void *ss_host_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void ss_hits_end(struct ss_core *core)
{
	atomic_fetch_add(&core->recent_gen, 1);
}

uint64_t ss_now_ms(const struct ss_core *core)
{
	return 2 * SS_FOR_EVER_MS + core->drv.now_ms(core->drv.ctx);
}

#define LONGEST_SLEEP_MS 1000

bool ss_sleep(struct ss_core *core, struct ss_deadline *d, uint64_t ms)
{
	uint64_t now = ss_now_ms(core);

	if (ss_deadline_over(d, now))
		return false;
	ms = ss_min(ss_min(ms, LONGEST_SLEEP_MS), d->end - now);
	core->drv.sleep_ms(core->drv.ctx, (unsigned)ss_deadline_take(d, ms));
	return true;
}

void ss_driver_call_count(struct ss_core *core, uint64_t t0, enum ss_trace_wait_cause cause,
			  int dev)
{
	uint64_t ns = ss_monotonic_ns() - t0;

	atomic_fetch_add_explicit(&core->driver_calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->driver_ns, ns, memory_order_relaxed);
	if (cause != SS_TRACE_WAIT_DRIVER_OTHER)
		atomic_fetch_add_explicit(&core->memory_calls, 1, memory_order_relaxed);
	/* Streams are polled often. */
	if (ss_trace_on() && (cause != SS_TRACE_WAIT_DRIVER_OTHER || ns >= SHORT_NS))
		ss_trace_write_wait(cause, ns, dev, NULL);
}

uint64_t ss_host_bytes(const struct ss_core *core)
{
	return sizeof(*core) + atomic_load(&core->host_bytes);
}

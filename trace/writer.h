/* SPDX-License-Identifier: MIT */
/*
 * The recording: what the preload calls when something happens to device memory. All functions
 * may be called by any thread at any time, also in a signal handler and while a thread ends.
 * They take no lock, allocate nothing on the heap and leave errno alone. They do nothing, at the
 * cost of one branch, while no recording runs.
 *
 * Sizes are bytes. `device` is the ordinal in this process, or -1. `pool` and `stream` are
 * handles or other addresses that are unique to the object; NULL is no pool, and the null
 * stream of `device`. The call stack of the caller is recorded with every event that has one.
 */
#ifndef SS_TRACE_WRITER_H
#define SS_TRACE_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"

/* Number of the recording that runs; 0 if none does. Lies in memory that the kernel clears in
 * the child of a fork. */
extern _Atomic uint64_t *ss_trace_generation;

static inline bool ss_trace_on(void)
{
	return __builtin_expect(
		atomic_load_explicit(ss_trace_generation, memory_order_relaxed) != 0, 0);
}

/* Loads the unwinder, which takes the dynamic linker's lock: call it before ss_trace_open() if
 * that is called with a lock held, which a library that is being loaded might wait for. May be
 * called several times, also at once. */
void ss_trace_prepare(void);
/* The recording is to be a ring: the file keeps the newest events in `bytes` bytes. Another process
 * moves its beginning meanwhile (cli/ring/fold.h). 0: no ring. Call it before ss_trace_open(). */
void ss_trace_set_ring(uint64_t bytes);
/* Starts the recording in a new file, whose name is the first for `pattern` that is free
 * (file_name.h). `say` is called with one line, without its newline, when that is not the first
 * name, and when the recording ends early; it may be NULL.
 * False with errno set if there is no recording. In the child of a fork the recording starts
 * again, in a file of its own, with the first event. Call it once. */
bool ss_trace_open(const char *pattern, void (*say)(const char *line));
/* Ends the recording. Other threads may be in the middle of an event. */
void ss_trace_close(void);
/* Bytes of the file so far. */
uint64_t ss_trace_bytes(void);

/* Definitions, at the start of a recording: they do nothing without one. Texts are copied. */
void ss_trace_write_info(enum ss_trace_info_key key, const char *text);
void ss_trace_write_device(int device, uint32_t pci_domain, unsigned bus, unsigned dev,
			   unsigned function, const uint8_t uuid[16], uint64_t total,
			   const char *name);
void ss_trace_write_stream(const void *stream, int device, enum ss_trace_stream_kind kind);
void ss_trace_write_pool_create(const void *pool, int device, const char *name);
void ss_trace_write_pool_destroy(const void *pool, int device);
void ss_trace_write_alloc(uint64_t when, const void *ptr, uint64_t size, uint64_t rounded,
			  int device, const void *pool, const void *stream, unsigned flags);
void ss_trace_write_free(uint64_t when, const void *ptr, int device, const void *pool,
			 const void *stream, unsigned flags, bool stack);
void ss_trace_write_reusable(uint64_t when, const void *base, uint64_t size, int device,
			     const void *pool);
void ss_trace_write_segment(uint64_t when, enum ss_trace_kind kind, const void *base, uint64_t size,
			    int device, const void *pool, unsigned flags);
void ss_trace_write_trim(enum ss_trace_trim_cause cause, uint64_t released, uint64_t kept,
			 int device, const void *pool);
void ss_trace_write_oom(enum ss_trace_kind kind, uint64_t size, uint64_t device_free,
			uint64_t reserved, uint64_t used, int device, const void *pool,
			const void *stream);
void ss_trace_write_phase(enum ss_trace_phase_step step, uint64_t id, const char *text);
void ss_trace_write_outside(unsigned flags, const void *ptr, uint64_t size, int device);
void ss_trace_write_wait(enum ss_trace_wait_cause cause, uint64_t ns, int device,
			 const void *stream);

/* Describes a device, once per device. `uuid` may be NULL. */
static inline void ss_trace_device(int device, uint32_t pci_domain, unsigned bus, unsigned dev,
				   unsigned function, const uint8_t uuid[16], uint64_t total,
				   const char *name)
{
	if (ss_trace_on())
		ss_trace_write_device(device, pci_domain, bus, dev, function, uuid, total, name);
}

/* Says what kind of stream this is. A stream that was never described is UNKNOWN. */
static inline void ss_trace_stream(const void *stream, int device, enum ss_trace_stream_kind kind)
{
	if (ss_trace_on())
		ss_trace_write_stream(stream, device, kind);
}

/* A pool that is used without this call gets a number and no name. */
static inline void ss_trace_pool_create(const void *pool, int device, const char *name)
{
	if (ss_trace_on())
		ss_trace_write_pool_create(pool, device, name);
}

static inline void ss_trace_pool_destroy(const void *pool, int device)
{
	if (ss_trace_on())
		ss_trace_write_pool_destroy(pool, device);
}

/* `when` is ns of ss_trace_clock(), since the calling thread's last event; 0 is now. With it a
 * caller makes the order in the file that of its own figures (core/base/moment.h).
 *
 * Call it after the block was taken from the pool, so that the times of its owners never
 * overlap. `rounded` is what the block takes in the pool. `flags` are SS_TRACE_F_*. */
static inline void ss_trace_alloc_at(uint64_t when, const void *ptr, uint64_t size,
				     uint64_t rounded, int device, const void *pool,
				     const void *stream, unsigned flags)
{
	if (ss_trace_on())
		ss_trace_write_alloc(when, ptr, size, rounded, device, pool, stream, flags);
}

static inline void ss_trace_alloc(const void *ptr, uint64_t size, uint64_t rounded, int device,
				  const void *pool, const void *stream, unsigned flags)
{
	ss_trace_alloc_at(0, ptr, size, rounded, device, pool, stream, flags);
}

/* Call it before the block goes back to the pool. */
static inline void ss_trace_free_at(uint64_t when, const void *ptr, int device, const void *pool,
				    const void *stream, unsigned flags)
{
	if (ss_trace_on())
		ss_trace_write_free(when, ptr, device, pool, stream, flags, true);
}

static inline void ss_trace_free(const void *ptr, int device, const void *pool, const void *stream,
				 unsigned flags)
{
	ss_trace_free_at(0, ptr, device, pool, stream, flags);
}

/* A block that is live goes with the memory of its pool, as nobody freed it. Has no stack, and
 * may be called with a lock held. */
static inline void ss_trace_drop_at(uint64_t when, const void *ptr, int device, const void *pool)
{
	if (ss_trace_on())
		ss_trace_write_free(when, ptr, device, pool, NULL, SS_TRACE_F_REUSABLE, false);
}

/* A free range, with all freed blocks in it, may be handed out to anybody from now on: every use
 * is over. Call it before that is done. Has no stack, and asks the dynamic linker nothing, so it
 * may be called with a lock held. */
static inline void ss_trace_reusable_at(uint64_t when, const void *base, uint64_t size, int device,
					const void *pool)
{
	if (ss_trace_on())
		ss_trace_write_reusable(when, base, size, device, pool);
}

static inline void ss_trace_reusable(const void *base, uint64_t size, int device, const void *pool)
{
	ss_trace_reusable_at(0, base, size, device, pool);
}

/* `kind` is SEGMENT_ALLOC, SEGMENT_FREE, MAP or UNMAP; `flags` are SS_TRACE_S_*. Call it after
 * memory was taken, and before memory is given back. */
static inline void ss_trace_segment_at(uint64_t when, enum ss_trace_kind kind, const void *base,
				       uint64_t size, int device, const void *pool, unsigned flags)
{
	if (ss_trace_on())
		ss_trace_write_segment(when, kind, base, size, device, pool, flags);
}

static inline void ss_trace_segment(enum ss_trace_kind kind, const void *base, uint64_t size,
				    int device, const void *pool, unsigned flags)
{
	ss_trace_segment_at(0, kind, base, size, device, pool, flags);
}

static inline void ss_trace_trim(enum ss_trace_trim_cause cause, uint64_t released, uint64_t kept,
				 int device, const void *pool)
{
	if (ss_trace_on())
		ss_trace_write_trim(cause, released, kept, device, pool);
}

/* `kind` is OOM or LIMIT. `device_free` is the limit for LIMIT. */
static inline void ss_trace_oom(enum ss_trace_kind kind, uint64_t size, uint64_t device_free,
				uint64_t reserved, uint64_t used, int device, const void *pool,
				const void *stream)
{
	if (ss_trace_on())
		ss_trace_write_oom(kind, size, device_free, reserved, used, device, pool, stream);
}

/* The program says what it is doing. `text` may be NULL; one longer than SS_TRACE_TEXT_MAX is
 * cut. */
static inline void ss_trace_phase(enum ss_trace_phase_step step, uint64_t id, const char *text)
{
	if (ss_trace_on())
		ss_trace_write_phase(step, id, text);
}

/* Memory outside of the pools: `flags` are enum ss_trace_outside_kind and SS_TRACE_OUTSIDE_FREE. */
static inline void ss_trace_outside(unsigned flags, const void *ptr, uint64_t size, int device)
{
	if (ss_trace_on())
		ss_trace_write_outside(flags, ptr, size, device);
}

/* The start of a wait or of a call of the driver, for ss_trace_wait(). 0 if nothing records. */
uint64_t ss_trace_clock(void);
static inline uint64_t ss_trace_wait_begin(void)
{
	return ss_trace_on() ? ss_trace_clock() : 0;
}

/* It ended now. `begin` is what ss_trace_wait_begin() gave. */
static inline void ss_trace_wait_end(uint64_t begin, enum ss_trace_wait_cause cause, int device,
				     const void *stream)
{
	if (ss_trace_on() && begin)
		ss_trace_write_wait(cause, ss_trace_clock() - begin, device, stream);
}

#endif

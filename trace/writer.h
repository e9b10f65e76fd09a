/* SPDX-License-Identifier: MIT */
/*
 * The recording: the functions that the preload calls at each event of device memory. All functions
 * may be called by any thread at any time, also in a signal handler and while a thread ends. The
 * functions take no lock, allocate nothing on the heap and leave errno alone. While no recording
 * runs, they do nothing, at the cost of one branch.
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
 * ss_trace_open() is called with a lock held for which a library that is being loaded might wait.
 * May be called several times, also by several threads at the same time. */
void ss_trace_prepare(void);
/* Makes the recording a ring: the file keeps the newest events in `bytes` bytes. Another process
 * moves the ring's beginning (cli/ring/fold.h). 0: no ring. Call it before ss_trace_open(). */
void ss_trace_set_ring(uint64_t bytes);
/* Starts the recording in a new file, under the first free name for `pattern` (file_name.h). `say`
 * is called with one line, without its newline, when the file has a later name than the first, and
 * when the recording ends early; `say` may be NULL. False with errno set if there is no recording.
 * In the child of a fork the recording starts again, in a file of its own, with the first event.
 * Call it once. */
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

/* Records the kind of a stream. A stream that was never described is UNKNOWN. */
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

/* `when` is ns of ss_trace_clock(), since the calling thread's last event; 0 is now. With `when` a
 * caller gives the file the order of its own figures (core/base/moment.h).
 *
 * Call it after the block was taken from the pool, so that the times of its owners never overlap.
 * `rounded` is the number of bytes that the block takes in the pool. `flags` are SS_TRACE_F_*. */
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

/* Call it before the block returns to the pool. */
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

/* A live block, which was not freed, is released with the memory of its pool. The event has no
 * stack, so the function may be called with a lock held. */
static inline void ss_trace_drop_at(uint64_t when, const void *ptr, int device, const void *pool)
{
	if (ss_trace_on())
		ss_trace_write_free(when, ptr, device, pool, NULL, SS_TRACE_F_REUSABLE, false);
}

/* A free range, with all freed blocks in it, may be reused by any stream from now on: every use has
 * completed. Call it before the reuse. The event has no stack, and the function does not call the
 * dynamic linker, so it may be called with a lock held. */
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
 * memory was allocated, and before memory is released. */
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

/* The program names its current phase. `text` may be NULL; a text longer than SS_TRACE_TEXT_MAX is
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

/* The start of a wait or of a call of the driver, for ss_trace_wait(). 0 if no recording runs. */
uint64_t ss_trace_clock(void);
static inline uint64_t ss_trace_wait_begin(void)
{
	return ss_trace_on() ? ss_trace_clock() : 0;
}

/* The wait or call ended now. `begin` is the result of ss_trace_wait_begin(). */
static inline void ss_trace_wait_end(uint64_t begin, enum ss_trace_wait_cause cause, int device,
				     const void *stream)
{
	if (ss_trace_on() && begin)
		ss_trace_write_wait(cause, ss_trace_clock() - begin, device, stream);
}

#endif

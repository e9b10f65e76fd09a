/* SPDX-License-Identifier: MIT */
/*
 * A device that exists only as bookkeeping: a driver for the core with a virtual clock. Streams
 * make progress only when the caller advances them, or by a clock. Every call is counted and can be
 * made to fail. Unit tests, the oracle and `somashim replay` use it. Thread safe.
 */
#ifndef SS_DRIVER_FAKE_H
#define SS_DRIVER_FAKE_H

#include "core/driver.h"

struct ss_fake_config {
	int devices;            /* 0 = 1 */
	uint64_t vram;          /* per device; 0 = 64 GiB */
	bool vmm;               /* offers VMM (chunk_bytes = 256 KiB) */
	bool idle;              /* a fence is completed as soon as it is recorded */
	bool hip_release_waits; /* value of release_waits[SS_BACKING_HIP] */
	bool vmm_release_waits; /* and release_waits[SS_BACKING_VMM]: an unmap waits */
	bool access_prefix;     /* as in struct ss_device_info */
	/* Reservations and chunks may be left: ss_fake_destroy() is silent */
	bool may_leave;
	/* With a clock (device_ns is not 0): duration of a call of the host, and duration of the
	 * command that the call enqueues; 0 for `queue` = one command. */
	uint64_t host_ns, device_ns;
	uint32_t queue; /* commands that the device takes; then the host waits */
	/* Duration of each call that allocates or releases a segment; and of each call that makes,
	 * maps, opens, unmaps or releases a chunk. */
	uint64_t segment_ns, chunk_ns;
};

/* The figures of the clock. Times are in virtual nanoseconds. */
struct ss_fake_times {
	/* Time at which the host has made its calls and the device has completed its commands */
	uint64_t end;
	uint64_t full;   /* time that the host waited because the queue was full */
	uint64_t waits;  /* number of calls in which the pools made the host wait for the device */
	uint64_t waited; /* time of these waits */
	uint64_t driver; /* time of the pools' calls of the driver, without such waits */
	uint64_t idle;   /* time that the device was idle because of both */
};

struct ss_fake_counts {
	uint64_t segment_alloc, segment_free, chunk_create, chunk_release, map, unmap, set_access,
		reserve, unreserve, fence_record, fence_query, fence_wait, fence_release, mem_info;
	/* Bytes of segments and chunks that were allocated, and that were released */
	uint64_t taken, given;
};

struct ss_fake;

/* NULL: out of memory. Any thread may use a device, but only one may destroy it. */
struct ss_fake *ss_fake_create(const struct ss_fake_config *config);
void ss_fake_destroy(struct ss_fake *fake); /* aborts if a segment or fence leaked */
struct ss_driver ss_fake_driver(struct ss_fake *fake);

/* A stream is identified by `native` and `dev`. Each enqueued command gets the next number; a fence
 * comes after all commands that were enqueued on its stream before. `drain` completes all commands
 * on the stream, and advances the streams that it waits for. */
void ss_fake_enqueue(struct ss_fake *fake, int dev, void *native);
void ss_fake_progress(struct ss_fake *fake, int dev, void *native, uint64_t commands);
void ss_fake_drain(struct ss_fake *fake, int dev, void *native);
void ss_fake_advance_ms(struct ss_fake *fake, uint64_t ms);

/* With a clock streams make progress by themselves, and drivers offer `nap`. One device executes
 * the commands of all streams one after the other, in the order in which they were enqueued. A call
 * takes host_ns, waits while the queue is full, and enqueues one command. Naps and sleeps of the
 * core advance the clock, and so do calls of the driver, and, by a microsecond each, queries with
 * the answer "not yet". The release of a segment, and the unmap of a chunk, wait for the device if
 * release_waits says so. */
void ss_fake_call(struct ss_fake *fake, int dev, void *native);
struct ss_fake_times ss_fake_times(struct ss_fake *fake);
/* A fence_wait is a command of its stream, too: progress stops before it until the fence is
 * completed. */
uint64_t ss_fake_enqueued(struct ss_fake *fake, int dev, void *native);
uint64_t ss_fake_done(struct ss_fake *fake, int dev, void *native);
/* Calls `each` after every sleep_ms of the core, without locks, so that the caller can let its
 * streams make progress. With a clock streams make progress without this callback. */
void ss_fake_on_sleep(struct ss_fake *fake, void (*each)(void *arg, unsigned ms), void *arg);
/* May a kernel touch these bytes? It may if they lie in one segment, or are mapped and
 * accessible. */
bool ss_fake_usable(struct ss_fake *fake, int dev, const void *ptr, size_t size);
/* A kernel touches these bytes. Ends the process if the kernel may not touch them. */
void ss_fake_access(struct ss_fake *fake, int dev, const void *ptr, size_t size);

/* Makes the nth call from now of the operation fail with `status`; the operation is named by
 * its field in struct ss_driver. n = 1 is the next call; 0 = every call until cleared. */
void ss_fake_fail(struct ss_fake *fake, const char *operation, unsigned n, enum ss_status status);
void ss_fake_fail_clear(struct ss_fake *fake);

/* The calls so far. */
struct ss_fake_counts ss_fake_counts(struct ss_fake *fake);
uint64_t ss_fake_reserved(struct ss_fake *fake, int dev);      /* bytes in use now */
uint64_t ss_fake_reserved_high(struct ss_fake *fake, int dev); /* most bytes at once */

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Sleep: the pools release their mapped memory of the device while the contents of live blocks are
 * kept elsewhere. Later they map memory at the same addresses again and copy the contents back. See
 * docs/decisions.md.
 */
#ifndef SS_CORE_SLEEP_H
#define SS_CORE_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/driver.h"

struct ss_core;
struct ss_asleep;

/* Keeps the contents meanwhile. `save` and `restore` are called for the same ranges in the
 * same order, each range with device memory that is mapped; `flush` ends a series of either, and
 * returns when the device has read, or has, all of it. False: it could not be done. All are called
 * by the thread that puts to sleep or wakes, with no lock held. */
struct ss_sleep_store {
	void *ctx;
	bool (*open)(void *ctx, uint64_t bytes); /* room for so much, before anything is saved */
	bool (*save)(void *ctx, int dev, uint64_t va, uint64_t size);
	bool (*restore)(void *ctx, int dev, uint64_t va, uint64_t size);
	bool (*flush)(void *ctx);
	void (*close)(void *ctx); /* after open, whatever it returned: nothing is needed any more */
};

/* Bytes. */
struct ss_slept {
	uint64_t idle;     /* not in use, which the driver took back before */
	uint64_t held;     /* that the pools had of the devices after that */
	uint64_t live;     /* of them in use and saved */
	uint64_t gone;     /* that the driver took back */
	uint64_t stays;    /* on whole segments, exported, or refused by the driver */
	uint64_t exported; /* of them: held by others, because of the call `by` */
	/* By which the devices' own free figures rose by `idle` and `gone`: others disturb them */
	uint64_t seen;
	uint32_t chunks, ranges;
	const char *by; /* "hipMemRetainAllocationHandle"; NULL: nothing is held by others */
};

/* Puts all pools to sleep. The caller has found every device idle, and lets no thread enqueue work
 * until ss_core_wake() has returned SS_OK. Allocations and frees that need no device may go on. A
 * thread that takes memory of a device, of whatever kind, or resets one, waits meanwhile, and first
 * calls watch.wake (core.h). SS_ERR_NOMEM: host memory is out; SS_ERR_FAILED: the store failed.
 * After a failure everything is as before, except that idle memory was released. *asleep: for
 * ss_core_wake(). */
enum ss_status ss_core_sleep(struct ss_core *core, const struct ss_sleep_store *store,
			     struct ss_asleep **asleep, struct ss_slept *out);
/* Others hold the memory behind [ptr, ptr + size) from now on, by the call `by` (static text):
 * other processes, or a network card, which would write where nobody looks. So its chunks stay, and
 * keep what others write meanwhile. Call it before the call `by`. If the memory sleeps it waits,
 * with no lock held, and asks to be woken. False: it is no memory that could sleep. Any thread. */
bool ss_core_stays(struct ss_core *core, const void *ptr, uint64_t size, const char *by);
/* Maps all memory again and restores the contents, or does nothing. SS_ERR_NOMEM: a device has no
 * room for all of it; another error: the driver refused, or the store failed. Then everything still
 * sleeps, and the call may be repeated. */
enum ss_status ss_core_wake(struct ss_asleep *asleep);
/* Bytes of `dev` that sleep. Any thread. */
uint64_t ss_asleep_bytes(struct ss_core *core, int dev);

#endif

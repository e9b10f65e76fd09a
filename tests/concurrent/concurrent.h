/* SPDX-License-Identifier: MIT */
/*
 * Real threads in the core, on the fake device, with a check of every byte that is handed out:
 *
 *  - shadow.c knows who owns each 256 bytes of the address space, and after a free which work must
 *    have ended, or be ordered before, when they are handed out again;
 *  - device.c is the fake device with a clock per stream: which commands of other streams are
 *    ordered before its next command;
 *  - concurrent.c makes threads, and each does random calls as a program would;
 *  - preempt.c makes a thread lose the processor at any instruction of the core.
 *
 * The oracle (tests/oracle) is stricter about order, but runs one thread at a time.
 */
#ifndef TESTS_CONCURRENT_H
#define TESTS_CONCURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "driver/fake/fake.h"

#define STREAMS 24 /* handles; a destroyed stream's handle is used again */
#define NULL_STREAM (STREAMS - 1)
#define NO_STREAM (-1)

/* Prints the seed and a sentence, and aborts. */
void wrong(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- device.c ----------------------------------------------------------- */

extern struct ss_fake *fake;

void *native_of(int stream);
struct ss_driver device_create(const struct ss_fake_config *config);
void device_destroy(void);
/* A stream begins at the handle. */
void device_stream(int stream, bool blocking);
/* Does the next command of s wait for what t was given, or will one of them do so, since one is the
 * null stream? */
bool device_joins(int s, int t);
/* Enqueues a kernel and returns its number on the stream. */
uint64_t enqueue(int stream);
/* How many commands each stream was given so far. */
void positions(uint64_t out[STREAMS]);
/* Is command `n` of stream `s` done, or ordered before what `stream` does next? */
bool is_before(int s, uint64_t n, int stream);
/* The driver's operations with the stream by its number. */
bool device_record(int stream, struct ss_fence *out);
bool device_wait(int stream, const struct ss_fence *fence);
void device_forget(struct ss_fence *fence);
void device_drain(int stream);
void device_drain_all(void);
/* Some streams do some of their commands. */
void device_work(uint64_t random);
/* How often the core has waited for the device. */
unsigned long device_waits(void);

/* ---- shadow.c ----------------------------------------------------------- */

void shadow_create(void);
void shadow_destroy(void);
/* The core handed the block out on `stream`, or to hipMalloc (NO_STREAM). Checks that nobody has
 * any of it, and that what used it before is ordered before the stream, or done. */
void shadow_take(const void *p, size_t size, uint64_t id, int stream);
/* The block is about to be freed: its last use is command `n` of `stream`, */
void shadow_free(const void *p, size_t size, uint64_t id, int stream, uint64_t n, bool exported);
/* or nobody knows, so every stream must do what it has been given, */
void shadow_free_unknown(const void *p, size_t size, uint64_t id, bool exported);
/* or everything is done. An exported block is never handed out again. */
void shadow_free_done(const void *p, size_t size, uint64_t id, bool exported);
/* The range goes back to the device: nobody may own any of it, or use it. */
void shadow_gone(const void *p, size_t size);

#endif

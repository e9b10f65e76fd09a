/* SPDX-License-Identifier: MIT */
/* Structures and functions that the parts of the fake device share. */
#ifndef SS_DRIVER_FAKE_INTERNAL_H
#define SS_DRIVER_FAKE_INTERNAL_H

#include <pthread.h>

#include "core/base/hash_or_end.h"
#include "driver/fake/fake.h"

#define SS_FAKE_CHUNK ((size_t)256 << 10)

enum ss_fake_op {
	OP_DEVICE_COUNT,
	OP_DEVICE_INFO,
	OP_MEM_INFO,
	OP_SEGMENT_ALLOC,
	OP_SEGMENT_FREE,
	OP_SEGMENT_ACCESS,
	OP_VMM_RESERVE,
	OP_VMM_UNRESERVE,
	OP_CHUNK_CREATE,
	OP_CHUNK_RELEASE,
	OP_MAP,
	OP_UNMAP,
	OP_SET_ACCESS,
	OP_FENCE_RECORD,
	OP_FENCE_QUERY,
	OP_FENCE_WAIT,
	OP_FENCE_RELEASE,
	SS_FAKE_OPS,
};

struct ss_fake_failure {
	uint32_t left; /* the call that fails, 1 = the next; UINT32_MAX = every call; 0 = none */
	enum ss_status status;
};

struct ss_fake_chunk {
	struct ss_fake_chunk *self; /* hash key */
	size_t size;
	uint64_t mapped; /* the address; 0 = not mapped */
	int dev;
	UT_hash_handle hh;
};

struct ss_fake_slot { /* one SS_FAKE_CHUNK of a reservation */
	struct ss_fake_chunk *chunk;
	bool access;
};

struct ss_fake_range { /* with slots it is a reservation, without a segment */
	uint64_t base;
	size_t size;
	struct ss_fake_slot *slots;
	size_t mapped;
	int dev;
	enum ss_backing backing;
};

struct ss_fake_stream;

struct ss_fake_command { /* in the queue of a device with a clock */
	struct ss_fake_stream *stream;
	uint64_t at;   /* its number on the stream */
	uint64_t done; /* time of its completion */
};

struct ss_fake_clock {
	uint64_t now;   /* nanoseconds */
	uint64_t ready; /* time at which the device will have completed all enqueued commands */
	uint64_t taken; /* time that the pools made the host wait since the last command */
	bool waited;    /* the pools made the host wait in this call */
	struct ss_fake_command *queue; /* a ring; the oldest is `first` */
	uint32_t first, count;
	struct ss_fake_times times;
};

struct ss_fake {
	struct ss_fake_config config;
	pthread_mutex_t mutex;
	struct ss_fake_range *ranges; /* sorted by address */
	size_t range_count, range_space;
	struct ss_fake_chunk *chunks;
	struct ss_fake_stream *streams;
	uint64_t fences;
	struct ss_fake_clock clock;
	uint64_t reserved[SS_MAX_DEVICES], reserved_high[SS_MAX_DEVICES];
	struct ss_fake_counts counts;
	struct ss_fake_failure fail[SS_FAKE_OPS];
	void (*on_sleep)(void *arg, unsigned ms);
	void *on_sleep_arg;
};

#define ss_fake_lock(fake) pthread_mutex_lock(&(fake)->mutex)
#define ss_fake_unlock(fake) pthread_mutex_unlock(&(fake)->mutex)

/* Call these with the mutex held. */
struct ss_fake_range *ss_fake_range_find(struct ss_fake *fake, const void *ptr, size_t size);
struct ss_fake_range *ss_fake_range_add(struct ss_fake *fake, size_t size);
void ss_fake_range_remove(struct ss_fake *fake, struct ss_fake_range *r);
void *ss_fake_range_ptr(const struct ss_fake_range *r);
bool ss_fake_bad_device(const struct ss_fake *fake, int dev);
/* Takes physical memory; false when the device has no room. */
bool ss_fake_take(struct ss_fake *fake, int dev, size_t size);
void ss_fake_give(struct ss_fake *fake, int dev, size_t size);

/* Ends the process after a misuse that no driver allows. */
void ss_fake_misuse(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Call with the mutex held; SS_OK, or the requested failure. */
enum ss_status ss_fake_enter(struct ss_fake *fake, enum ss_fake_op op);
/* Each fills in its operations. */
void ss_fake_segment_ops(struct ss_driver *drv);
void ss_fake_vmm_ops(struct ss_driver *drv);
void ss_fake_stream_ops(struct ss_driver *drv);
void ss_fake_streams_finish(struct ss_fake *fake);

/* Streams and the clock, with the mutex held. */
struct ss_fake_stream *ss_fake_stream_get(struct ss_fake *fake, int dev, void *native);
uint64_t ss_fake_stream_enqueue(struct ss_fake_stream *s); /* returns the command's number */
void ss_fake_stream_progress(struct ss_fake_stream *s, uint64_t target);
bool ss_fake_clock_init(struct ss_fake *fake);
void ss_fake_clock_ops(struct ss_driver *drv, const struct ss_fake *fake);
/* Enqueues a command that takes the device `ns` nanoseconds. */
void ss_fake_clock_enqueue(struct ss_fake *fake, struct ss_fake_stream *s, uint64_t ns);
void ss_fake_clock_asked(struct ss_fake *fake);               /* and the answer was "not yet" */
void ss_fake_clock_driver(struct ss_fake *fake, uint64_t ns); /* a call of the driver takes that */
void ss_fake_clock_drain(struct ss_fake *fake); /* the host waits until the device is idle */

#endif

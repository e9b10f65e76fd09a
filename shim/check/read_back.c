/* SPDX-License-Identifier: MIT */
/*
 * Copies to pinned memory, each with an event that marks its completion.
 *
 * Locks: `lock`, for the lists of slots and the streams; not held across a call into HIP.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/rocm.h"
#include "shim/check/inside.h"
#include "shim/check/read_back.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

#define SMALLEST 4096u
#define GIVE_UP_MS 5000 /* limit of a wait in which no copy completes */

/* A slot of a pending copy, or a slot that is free for reuse. */
struct slot {
	unsigned char *host; /* pinned */
	size_t room;
	hipEvent_t event;
	struct ss_finding about;
	ss_read_fn *fn;
	size_t count;
	int dev;
	struct slot *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *pending, **pending_tail = &pending, *spare;
static hipStream_t own_stream[SS_MAX_DEVICES];

/* A call on our own account that leaves the thread's last error alone. */
#define QUIET(name, ...) __extension__({ \
	int earlier_ = ss_rocm_error_earlier(); \
	hipError_t quiet_ = REAL(name, ##__VA_ARGS__); \
	quiet_ == hipSuccess ? quiet_ : ss_rocm_error_restore(earlier_, quiet_); })

/* A non-blocking stream of ours on the current device; NULL: there is none. */
static hipStream_t own(void)
{
	int dev = ss_current_device(NULL);
	hipStream_t s = NULL;

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	pthread_mutex_lock(&lock);
	s = own_stream[dev];
	pthread_mutex_unlock(&lock);
	if (!s && QUIET(hipStreamCreateWithFlags, &s, hipStreamNonBlocking) == hipSuccess) {
		pthread_mutex_lock(&lock);
		if (!own_stream[dev])
			/* A second thread at the same time leaves its stream unused */
			own_stream[dev] = s;
		pthread_mutex_unlock(&lock);
	}
	return s;
}

static hipStream_t handle_of(const struct ss_timeline *tl)
{
	switch (ss_timeline_kind(tl)) {
	case SS_TL_NULL: return NULL;
	case SS_TL_THREAD: return hipStreamPerThread;
	default: return ss_timeline_native(tl);
	}
}

bool ss_fill_bytes(struct ss_timeline *tl, void *at, unsigned char value, size_t count)
{
	hipStream_t s = tl ? handle_of(tl) : own();

	if (tl ? ss_waited(ss_core, tl) : !s)
		return false;
	return QUIET(hipMemsetAsync, at, value, count, s) == hipSuccess &&
	       (tl || QUIET(hipStreamSynchronize, s) == hipSuccess);
}

bool ss_fill_words(struct ss_timeline *tl, void *at, uint32_t word, size_t count)
{
	hipStream_t s = tl ? handle_of(tl) : own();

	if (tl ? ss_waited(ss_core, tl) : !s)
		return false;
	return QUIET(hipMemsetD32Async, (hipDeviceptr_t)at, (int)word, count, s) == hipSuccess &&
	       (tl || QUIET(hipStreamSynchronize, s) == hipSuccess);
}

bool ss_read_wait(void)
{
	struct ss_waiting waiting = ss_waiting_begin_device(ss_core, ss_current_device(NULL));
	hipError_t err = REAL(hipDeviceSynchronize);

	ss_waiting_end(ss_core, &waiting);
	return err == hipSuccess;
}

static struct slot *slot_take(size_t count)
{
	int dev = ss_current_device(NULL);
	size_t room = SMALLEST;
	struct slot **at, *s;

	if (count > SS_READ_MAX)
		return NULL;
	while (room < count)
		room *= 4;
	pthread_mutex_lock(&lock);
	for (at = &spare; *at && ((*at)->dev != dev || (*at)->room != room); at = &(*at)->next)
		;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&lock);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->dev = dev;
	s->room = room;
	if (QUIET(hipHostMalloc, (void **)&s->host, room, 0) != hipSuccess) {
		free(s);
		return NULL;
	}
	if (QUIET(hipEventCreateWithFlags, &s->event, hipEventDisableTiming) != hipSuccess) {
		(void)QUIET(hipHostFree, s->host);
		free(s);
		return NULL;
	}
	return s;
}

static void slot_give(struct slot *s)
{
	pthread_mutex_lock(&lock);
	s->next = spare;
	spare = s;
	pthread_mutex_unlock(&lock);
}

static void pend(struct slot *s)
{
	s->next = NULL;
	pthread_mutex_lock(&lock);
	*pending_tail = s;
	pending_tail = &s->next;
	pthread_mutex_unlock(&lock);
}

/* Enqueues the copy. NULL: it could not be enqueued. */
static struct slot *copy(hipStream_t stream, const void *from, size_t count,
			 const struct ss_finding *about, ss_read_fn *fn)
{
	struct slot *s = slot_take(count);

	if (!s)
		return NULL;
	s->about = *about;
	s->fn = fn;
	s->count = count;
	if (QUIET(hipMemcpyAsync, s->host, from, count, hipMemcpyDeviceToHost, stream) ==
	    hipSuccess)
		return s;
	slot_give(s);
	return NULL;
}

bool ss_read_later(struct ss_timeline *tl, const void *from, size_t count,
		   const struct ss_finding *about, ss_read_fn *fn)
{
	hipStream_t stream = handle_of(tl);
	struct ss_device_switch sw;
	struct slot *s;
	bool good;

	if (ss_waited(ss_core, tl))
		return false;
	/* The event has to belong to the stream's device. */
	if (!ss_device_switch(&sw, ss_timeline_device(tl)))
		return false;
	s = copy(stream, from, count, about, fn);
	good = s && QUIET(hipEventRecord, s->event, stream) == hipSuccess;
	ss_device_restore(&sw);
	if (good)
		pend(s); /* otherwise the copy may still write to it: the slot is lost */
	return good;
}

bool ss_read_now(const void *from, size_t count, const struct ss_finding *about, ss_read_fn *fn)
{
	hipStream_t stream = own();
	struct slot *s = stream ? copy(stream, from, count, about, fn) : NULL;

	if (!s || QUIET(hipStreamSynchronize, stream) != hipSuccess)
		return false;
	fn(s->host, s->count, &s->about);
	slot_give(s);
	return true;
}

/* Takes the oldest slot if its copy has completed. */
static struct slot *arrived(void)
{
	struct slot *s;

	pthread_mutex_lock(&lock);
	s = pending;
	if (s) {
		pending = s->next;
		if (!pending)
			pending_tail = &pending;
	}
	pthread_mutex_unlock(&lock);
	if (!s || QUIET(hipEventQuery, s->event) == hipSuccess)
		return s;
	pthread_mutex_lock(&lock);
	s->next = pending;
	pending = s;
	if (!s->next)
		pending_tail = &s->next;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static size_t count_pending(void)
{
	size_t count = 0;

	pthread_mutex_lock(&lock);
	for (const struct slot *s = pending; s; s = s->next)
		count++;
	pthread_mutex_unlock(&lock);
	return count;
}

void ss_read_look(bool wait)
{
	/* Other threads may add pending copies meanwhile. */
	size_t left = wait ? count_pending() : 0;
	struct slot *s;

	/* While a stream captures no event may be queried. */
	for (int ms = 0; !ss_capture_live(); ms++) {
		while ((left || !wait) && (s = arrived())) {
			s->fn(s->host, s->count, &s->about);
			slot_give(s);
			left -= left != 0;
			ms = 0;
		}
		if (!left || ms == GIVE_UP_MS)
			return;
		usleep(1000);
	}
}

void ss_read_compare(const unsigned char *bytes, size_t count, unsigned char value,
		     const struct ss_finding *about, uint64_t offset, enum ss_fault fault)
{
	struct ss_finding f = *about;
	size_t first = count, bad = 0;

	if (!count || (bytes[0] == value && !memcmp(bytes, bytes + 1, count - 1)))
		return; /* the usual case */
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == value)
			continue;
		first = bad++ ? first : i;
	}
	f.fault = fault;
	ss_check_changed(ss_check_state, &f, offset + first, bad);
}

void ss_read_forget(void)
{
	pthread_mutex_lock(&lock);
	pending = spare = NULL;
	pending_tail = &pending;
	memset(own_stream, 0, sizeof(own_stream));
	pthread_mutex_unlock(&lock);
}

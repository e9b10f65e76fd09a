/* SPDX-License-Identifier: MIT */
/*
 * Padding. A free enqueues a copy of the padding to pinned memory and an event; later calls look
 * whether the event has been reached. Blocks of hipMalloc, whose free waits for the device, are
 * read at once on a stream of our own.
 *
 * Locks: `lock`, for the lists of slots; not held across a call into HIP.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/rocm.h"
#include "shim/check/inside.h"
#include "shim/check/padding.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

#define VALUE 0xcb
#define PADDING_MAX 4096u

/* A copy that is on its way, and then waits to be used again. */
struct slot {
	unsigned char *host; /* pinned, PADDING_MAX bytes */
	hipEvent_t event;
	struct ss_finding about;
	size_t bytes;
	int dev;
	struct slot *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *pending, **pending_tail = &pending, *spare;
static hipStream_t own_stream[SS_MAX_DEVICES];
static atomic_bool thread_fills; /* padding was filled on a per-thread stream */

size_t ss_padding_bytes(void)
{
	if (!(ss_options.check & SS_CHECK_BOUNDS) || ss_capture_live() || ss_exiting())
		return 0;
	if (ss_options.check_padding < 2) /* one byte is always there (ss_check_size) */
		return ss_options.check_padding ? 2 : 0;
	return ss_options.check_padding < PADDING_MAX ? (size_t)ss_options.check_padding :
							PADDING_MAX;
}

/* A non-blocking stream of ours on the current device; *good: there is one. */
static hipStream_t own(bool *good)
{
	int dev = ss_current_device(NULL);
	hipStream_t s = NULL;

	*good = false;
	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	pthread_mutex_lock(&lock);
	s = own_stream[dev];
	pthread_mutex_unlock(&lock);
	if (!s && REAL(hipStreamCreateWithFlags, &s, hipStreamNonBlocking) == hipSuccess) {
		pthread_mutex_lock(&lock);
		if (!own_stream[dev])
			own_stream[dev] = s; /* of two threads the second leaves one unused */
		pthread_mutex_unlock(&lock);
	}
	*good = s != NULL;
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

void ss_padding_fill(struct ss_timeline *tl, void *ptr, size_t size, size_t padding)
{
	hipStream_t s;
	bool good = true;

	s = tl ? handle_of(tl) : own(&good);
	if (!good)
		return;
	if (tl && ss_timeline_kind(tl) == SS_TL_THREAD)
		atomic_store(&thread_fills, true);
	(void)REAL(hipMemsetAsync, (char *)ptr + size, VALUE, padding, s);
	if (!tl)
		(void)REAL(hipStreamSynchronize, s);
}

/* Reports the bytes that have changed. */
static void compare(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	size_t first = count, bad = 0;

	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == VALUE)
			continue;
		first = bad++ ? first : i;
	}
	if (bad)
		ss_check_changed(ss_check_state, about, about->size + first, bad);
}

/* Is it the same block still? If not, another one may have its addresses. */
static bool is_live(const struct ss_finding *about)
{
	struct ss_finding now;

	(void)ss_check_block(ss_check_state, (void *)(uintptr_t)about->base, &now);
	return now.block == about->block;
}

static struct slot *slot_take(void)
{
	int dev = ss_current_device(NULL);
	struct slot **at, *s;

	pthread_mutex_lock(&lock);
	for (at = &spare; *at && (*at)->dev != dev; at = &(*at)->next)
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
	if (REAL(hipHostMalloc, (void **)&s->host, PADDING_MAX, 0) != hipSuccess ||
	    REAL(hipEventCreateWithFlags, &s->event, hipEventDisableTiming) != hipSuccess) {
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

/* Copies the padding on the stream. `now`: and waits for the copy. */
static void read_on(hipStream_t stream, const struct ss_finding *about, size_t padding, bool now)
{
	const void *from = (const char *)(uintptr_t)about->base + about->size;
	struct slot *s = slot_take();

	if (!s)
		return;
	s->about = *about;
	s->about.fault = SS_FAULT_OVERWRITTEN;
	s->bytes = padding;
	if (REAL(hipMemcpyAsync, s->host, from, padding, hipMemcpyDeviceToHost, stream) !=
	    hipSuccess) {
		slot_give(s);
	} else if (now) {
		if (REAL(hipStreamSynchronize, stream) == hipSuccess && is_live(about))
			compare(s->host, s->bytes, &s->about);
		slot_give(s);
	} else if (REAL(hipEventRecord, s->event, stream) == hipSuccess) {
		pend(s);
	} /* else the copy may still be written: the slot is lost */
}

void ss_padding_read(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	bool good = true;
	hipStream_t stream;

	if (ss_capture_live() || ss_exiting())
		return;
	/* It must be certain that the padding has been filled: on the stream of the free itself, or
	 * on one of the device that the host waits for. */
	if (tl ? !ss_check_same_stream(ss_check_state, tl, &about->alloc.stream) :
		 !about->classic && about->alloc.stream.dev != ss_current_device(NULL))
		return;
	stream = tl ? handle_of(tl) : own(&good);
	if (good && (tl || REAL(hipDeviceSynchronize) == hipSuccess))
		read_on(stream, about, padding, !tl);
}

bool ss_padding_all_idle(void)
{
	/* No other thread can ask a per-thread stream, and after a bypass nothing is known. */
	if (atomic_load(&thread_fills) || ss_distrusted(ss_core))
		return false;
	for (int ms = 0; ms < 1000; ms++) {
		bool busy = false;

		for (int dev = 0; dev < ss_rocm_devices; dev++)
			busy |= ss_device_ask_busy(ss_core, dev);
		if (!busy)
			return true;
		usleep(1000);
	}
	return false;
}

void ss_padding_read_live(const struct ss_finding *about, size_t padding)
{
	bool good;
	hipStream_t stream = own(&good);

	if (good && !ss_capture_live())
		read_on(stream, about, padding, true);
}

/* Takes the oldest slot if its copy has arrived. */
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
	if (!s || REAL(hipEventQuery, s->event) == hipSuccess)
		return s;
	pthread_mutex_lock(&lock);
	s->next = pending;
	pending = s;
	if (!s->next)
		pending_tail = &s->next;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static bool any_pending(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = pending != NULL;
	pthread_mutex_unlock(&lock);
	return any;
}

void ss_padding_look(bool wait)
{
	struct slot *s;

	/* Beside a capture no event may be asked. */
	for (int ms = 0; !ss_capture_live(); ms++) {
		while ((s = arrived())) {
			compare(s->host, s->bytes, &s->about);
			slot_give(s);
		}
		if (!wait || ms == 1000 || !any_pending())
			return;
		usleep(1000);
	}
}

void ss_padding_forget(void)
{
	pthread_mutex_lock(&lock);
	pending = spare = NULL;
	pending_tail = &pending;
	memset(own_stream, 0, sizeof(own_stream));
	pthread_mutex_unlock(&lock);
}

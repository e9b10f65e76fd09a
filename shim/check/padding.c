/* SPDX-License-Identifier: MIT */
/*
 * Padding. It is read in the order of the stream that frees, if that certainly comes after the
 * fill: on the same stream, by events, or because the fill has completed. Blocks that hipFree frees
 * are read while the device is idle. No lock.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "driver/rocm/rocm.h"
#include "shim/check/inside.h"
#include "shim/check/padding.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

#define VALUE 0xcb

static atomic_bool thread_fills; /* padding was filled on a per-thread stream */

static bool is_on(void)
{
	return (ss_options.check & SS_CHECK_BOUNDS) && !ss_capture_live() && !ss_exiting();
}

size_t ss_padding_front(size_t front)
{
	/* It may have been set aside to align the block. */
	return !is_on()                       ? 0 :
	       front < ss_options.check_front ? front :
						(size_t)ss_options.check_front;
}

size_t ss_padding_bytes(void)
{
	if (!is_on())
		return 0;
	if (ss_options.check_padding < 2) /* one byte is always there (ss_check_size) */
		return ss_options.check_padding ? 2 : 0;
	return (size_t)ss_options.check_padding;
}

bool ss_padding_fill(struct ss_timeline *tl, void *ptr, size_t size, size_t front, size_t padding)
{
	if (tl && ss_timeline_kind(tl) == SS_TL_THREAD)
		atomic_store(&thread_fills, true);
	return (!front || ss_fill_bytes(tl, (char *)ptr - front, VALUE, front)) &&
	       (!padding || ss_fill_bytes(tl, (char *)ptr + size, VALUE, padding));
}

static void compare(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	ss_read_compare(bytes, count, VALUE, about, about->size, SS_FAULT_OVERWRITTEN);
}

static void compare_front(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	ss_read_compare(bytes, count, VALUE, about, -(uint64_t)count, SS_FAULT_OVERWRITTEN);
}

/* Is it the same block still? If not, another one may have its addresses. */
static bool is_live(const struct ss_finding *about)
{
	struct ss_finding now;

	(void)ss_check_block(ss_check_state, (void *)(uintptr_t)about->base, &now);
	return now.block == about->block;
}

static void compare_live(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	if (is_live(about))
		compare(bytes, count, about);
}

static void compare_live_front(const unsigned char *bytes, size_t count,
			       const struct ss_finding *about)
{
	if (is_live(about))
		compare_front(bytes, count, about);
}

/* Has the padding certainly been filled before what tl's stream does next? */
static bool is_filled(struct ss_timeline *tl, const struct ss_finding *about)
{
	const struct ss_mark mark = {about->fill_slot, about->fill_n};

	return ss_check_same_stream(ss_check_state, tl, &about->alloc.stream) ||
	       ss_timeline_after(ss_core, tl, &mark);
}

static bool read_later(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	const char *base = (const char *)(uintptr_t)about->base;

	return (!about->front ||
		ss_read_later(tl, base - about->front, about->front, about, compare_front)) &&
	       (!padding || ss_read_later(tl, base + about->size, padding, about, compare));
}

/* While nothing is in flight that may write there. */
static bool read_now(const struct ss_finding *about, size_t padding)
{
	const char *base = (const char *)(uintptr_t)about->base;

	return (!about->front ||
		ss_read_now(base - about->front, about->front, about, compare_live_front)) &&
	       (!padding || ss_read_now(base + about->size, padding, about, compare_live));
}

static bool wait_for_device(void)
{
	struct ss_waiting waiting = ss_waiting_begin_device(ss_core, ss_current_device(NULL));
	hipError_t err = REAL(hipDeviceSynchronize);

	ss_waiting_end(ss_core, &waiting);
	return err == hipSuccess;
}

static bool read_in_free(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	if (ss_capture_live() || ss_exiting())
		return false;
	if (tl)
		return is_filled(tl, about) && read_later(tl, about, padding);
	return (about->classic || about->alloc.stream.dev == ss_current_device(NULL)) &&
	       wait_for_device() && read_now(about, padding);
}

void ss_padding_read(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	if (!read_in_free(tl, about, padding))
		ss_check_skip_bytes();
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
	if (ss_capture_live() || !read_now(about, padding))
		ss_check_skip_bytes();
}

/* SPDX-License-Identifier: MIT */
/*
 * Padding. The padding is read in the order of the stream that frees, if the read certainly comes
 * after the fill: on the same stream, by events, or because the fill has completed. Blocks that
 * hipFree frees are read while the device is idle.
 *
 * Locks: `lock`, a leaf.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/hash.h"

#include "driver/rocm/rocm.h"
#include "shim/check/inside.h"
#include "shim/check/padding.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/process/current_device.h"
#include "shim/process/log.h"
#include "shim/process/real.h"

#define VALUE 0xcb

static atomic_bool thread_fills; /* padding was filled on a per-thread stream */

static bool is_on(void)
{
	return (ss_options.check & SS_CHECK_BOUNDS) && !ss_capture_live() && !ss_exiting();
}

size_t ss_padding_front(size_t front)
{
	/* The bytes may have been set aside to align the block. */
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

/* ---- fills that the runtime has lost ---------------------------------------------- */

/* A runtime may lose stores to new memory. So the first fills of each piece of memory are read
 * back, in the order of the stream, before the program gets the block. */
#define PIECE_SHIFT 21
#define FILLS_PROVED 32u
#define LOST_MAX 1024u

struct piece {
	uintptr_t at;
	unsigned fills;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static uint64_t lost[LOST_MAX], losses; /* numbers of blocks */

static bool is_to_prove(const void *ptr)
{
	uintptr_t at = (uintptr_t)ptr >> PIECE_SHIFT;
	struct piece *p = NULL;
	bool is;

	pthread_mutex_lock(&lock);
	HASH_FIND(hh, pieces, &at, sizeof(at), p);
	if (!p && (p = calloc(1, sizeof(*p)))) {
		p->at = at;
		HASH_ADD(hh, pieces, at, sizeof(p->at), p);
		if (!SS_HASH_HAS(p)) {
			free(p);
			p = NULL;
		}
	}
	is = p && p->fills < FILLS_PROVED;
	if (is)
		p->fills++;
	pthread_mutex_unlock(&lock);
	return is;
}

static void prove(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!count || (bytes[0] == VALUE && !memcmp(bytes, bytes + 1, count - 1)))
		return;
	pthread_mutex_lock(&lock);
	lost[losses++ % LOST_MAX] = about->block;
	pthread_mutex_unlock(&lock);
	if (!atomic_flag_test_and_set(&said))
		ss_shim_log(
			"check: the runtime has lost a memset of %zu bytes beside block %" PRIu64
			" at %#" PRIx64 ": what is beside such blocks is not compared",
			count, about->block, about->base);
}

static bool is_lost(const struct ss_finding *about)
{
	bool is = false;

	pthread_mutex_lock(&lock);
	for (uint64_t i = 0; i < losses && i < LOST_MAX && !is; i++)
		is = lost[i] == about->block;
	pthread_mutex_unlock(&lock);
	return is;
}

static void prove_bytes(struct ss_timeline *tl, const void *from, size_t count,
			const struct ss_finding *about)
{
	if (count)
		(void)(tl ? ss_read_later(tl, from, count, about, prove) :
			    ss_read_now(from, count, about, prove));
}

void ss_padding_prove(struct ss_timeline *tl, void *ptr, size_t front, size_t padding)
{
	struct ss_finding about;

	if (!is_to_prove(ptr) || ss_capture_live())
		return;
	(void)ss_check_block(ss_check_state, ptr, &about);
	prove_bytes(tl, (char *)ptr - front, front, &about);
	prove_bytes(tl, (char *)ptr + about.size, padding, &about);
}

/* ---- what is there in the end ------------------------------------------------------- */

static void compare(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	if (is_lost(about)) {
		ss_check_skip_bytes();
		return;
	}
	ss_read_compare(bytes, count, VALUE, about, about->size, SS_FAULT_OVERWRITTEN);
}

static void compare_front(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	if (!is_lost(about))
		ss_read_compare(bytes, count, VALUE, about, -(uint64_t)count, SS_FAULT_OVERWRITTEN);
}

/* Is the same block still live? If not, another block may have its addresses. */
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

/* Is the fill of the padding certainly ordered before the next command of tl's stream? */
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

/* Called while no pending work may write there. */
static bool read_now(const struct ss_finding *about, size_t padding)
{
	const char *base = (const char *)(uintptr_t)about->base;

	return (!about->front ||
		ss_read_now(base - about->front, about->front, about, compare_live_front)) &&
	       (!padding || ss_read_now(base + about->size, padding, about, compare_live));
}

static bool read_in_free(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	if (ss_capture_live() || ss_exiting())
		return false;
	if (tl)
		return is_filled(tl, about) && read_later(tl, about, padding);
	return (about->classic || about->alloc.stream.dev == ss_current_device(NULL)) &&
	       ss_read_wait() && (ss_read_look(false), read_now(about, padding));
}

void ss_padding_read(struct ss_timeline *tl, const struct ss_finding *about, size_t padding)
{
	if (!read_in_free(tl, about, padding))
		ss_check_skip_bytes();
}

bool ss_padding_all_idle(void)
{
	/* No other thread can query a per-thread stream, and after a bypass nothing is known. */
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

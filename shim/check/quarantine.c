/* SPDX-License-Identifier: MIT */
/*
 * Held blocks: blocks that were freed and have not returned to their pools. For the core they are
 * live, so their bytes are not reused. The fill, the copy that reads it and the free in the core
 * are in this order on the stream that freed the block, so any change in between was written after
 * the free. Blocks of hipFree, for which the host has waited, are filled and read on a stream of
 * ours, for which the host waits, too. Blocks that other processes may use are not held.
 *
 * Locks: `lock`; not held across a call into HIP or the core.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "shim/check/checker.h"
#include "shim/check/inside.h"
#include "shim/check/quarantine.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/process/current_device.h"

#define VALUE 0xdb
#define COUNT_MAX 16384u /* blocks that are held of each kind */

struct held {
	struct ss_finding about;
	struct ss_found found;
	struct ss_timeline *tl; /* stream of the free; NULL: hipFree */
	UT_hash_handle hh;      /* by found.start */
	struct held *next;
};

struct queue {
	struct held *first, **end;
	uint64_t bytes;
	uint32_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Blocks that hipFreeAsync freed, and blocks that hipFree freed. */
static struct queue queues[2] = {{.end = &queues[0].first}, {.end = &queues[1].first}};
static struct held *by_start;
static struct held *leaving; /* blocks that have left their queue and are still being read */

/* ---- queues; the lock is held ----------------------------------------------------- */

/* False: host memory is out. */
static bool push(struct held *h)
{
	struct queue *q = &queues[!h->tl];

	HASH_ADD(hh, by_start, found.start, sizeof(h->found.start), h);
	if (!SS_HASH_HAS(h))
		return false;
	h->next = NULL;
	*q->end = h;
	q->end = &h->next;
	q->bytes += h->about.size;
	q->count++;
	return true;
}

static struct held *take(struct queue *q, struct held **at)
{
	struct held *h = *at;

	*at = h->next;
	if (!h->next)
		q->end = at;
	q->bytes -= h->about.size;
	q->count--;
	HASH_DEL(by_start, h);
	h->next = leaving;
	leaving = h;
	return h;
}

/* ---- one block ---------------------------------------------------------------------- */

static void compare(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	ss_read_compare(bytes, count, VALUE, about, 0, SS_FAULT_WRITE_AFTER_FREE);
}

static bool may_hold(const struct ss_timeline *tl, const void *ptr, const struct ss_found *found)
{
	struct ss_block_info info;
	struct ss_ipc_place place;

	if (!(ss_options.check & SS_CHECK_POISON) || ss_capture_live() || ss_exiting())
		return false;
	/* A guarded block is unmapped at once. */
	if (!tl && (ss_options.check & SS_CHECK_GUARD) && ss_lookup(ss_core, ptr, &info) &&
	    info.guarded)
		return false;
	/* The fill of a block of hipFree must come after each access by the program. */
	if (!tl && !ss_wait_proves(ss_core, found))
		return false;
	/* Only its own thread can read on a per-thread stream. */
	if (tl && ss_timeline_kind(tl) == SS_TL_THREAD)
		return false;
	return !ss_pool_shared(found->pool) && (ss_ipc_find(ss_core, ptr, &place) != SS_OK ||
						!ss_ipc_exported(ss_core, ptr, place.serial));
}

/* Fills on the stream of the free, or for hipFree on a stream of ours on the block's device. The
 * handle of a null stream means the null stream of the current device, which need not be the
 * block's. */
static bool fill(const struct held *h)
{
	void *at = (void *)(uintptr_t)h->about.base;
	struct ss_device_switch sw;
	bool good;

	if (!ss_device_switch(&sw, h->tl ? ss_timeline_device(h->tl) : h->found.device))
		return false;
	good = ss_fill_bytes(h->tl, at, VALUE, h->about.size);
	ss_device_restore(&sw);
	return good;
}

static bool read_back(const struct held *h, bool may_wait)
{
	const void *at = (const void *)(uintptr_t)h->about.base;
	struct ss_device_switch sw;
	bool good;

	if (ss_capture_live())
		return false;
	if (h->tl)
		return ss_read_later(h->tl, at, h->about.size, &h->about, compare);
	if (!may_wait || !ss_device_switch(&sw, h->found.device))
		return false;
	good = ss_read_now(at, h->about.size, &h->about, compare);
	ss_device_restore(&sw);
	return good;
}

/* Reads the block, which is no longer in a queue, and returns it to its pool. */
static void leave(struct held *h, bool may_wait)
{
	struct held **at;

	if (!read_back(h, may_wait))
		ss_check_skip_bytes();
	/* The program has freed it, and will not try again. */
	if (!h->tl)
		(void)ss_free_found(ss_core, &h->found, NULL);
	else if (ss_free_found_async(ss_core, &h->found, h->tl) == SS_ERR_NOMEM)
		(void)ss_free_found_unordered(ss_core, &h->found);
	pthread_mutex_lock(&lock);
	for (at = &leaving; *at != h; at = &(*at)->next)
		;
	*at = h->next;
	pthread_mutex_unlock(&lock);
	free(h);
}

/* ---- all of them --------------------------------------------------------------------- */

/* Returns the oldest blocks until the rest is within the budget. */
static void shrink(struct queue *q, bool may_wait)
{
	struct held *h;

	for (;;) {
		pthread_mutex_lock(&lock);
		h = q->first && (q->bytes > ss_options.check_quarantine || q->count > COUNT_MAX) ?
			    take(q, &q->first) :
			    NULL;
		pthread_mutex_unlock(&lock);
		if (!h)
			return;
		leave(h, may_wait);
	}
}

bool ss_check_keep(struct ss_timeline *tl, void *ptr, const struct ss_found *found)
{
	struct held *h;
	bool kept;

	if (!may_hold(tl, ptr, found))
		return false;
	h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	h->tl = tl;
	h->found = *found;
	if (!ss_check_freed_block(ss_check_state, ptr, &h->about) || !h->about.size ||
	    h->about.size > ss_options.check_quarantine || h->about.size > SS_READ_MAX ||
	    !fill(h)) {
		ss_check_skip_bytes();
		free(h);
		return false;
	}
	pthread_mutex_lock(&lock);
	kept = push(h);
	pthread_mutex_unlock(&lock);
	if (!kept) {
		ss_check_skip_bytes();
		free(h);
		return false;
	}
	/* hipFree may wait, other calls may not. */
	shrink(&queues[!tl], !tl);
	return true;
}

bool ss_check_kept(const struct ss_found *found)
{
	struct held *h = NULL;

	if (!(ss_options.check & SS_CHECK_POISON))
		return false;
	pthread_mutex_lock(&lock);
	HASH_FIND(hh, by_start, &found->start, sizeof(found->start), h);
	pthread_mutex_unlock(&lock);
	return h != NULL;
}

bool ss_quarantine_empty(bool may_wait)
{
	struct held *h;
	bool any = false;

	for (int i = 0; i < 2; i++) {
		do {
			pthread_mutex_lock(&lock);
			h = queues[i].first ? take(&queues[i], &queues[i].first) : NULL;
			pthread_mutex_unlock(&lock);
			if (h)
				leave(h, may_wait);
			any |= h != NULL;
		} while (h);
	}
	return any;
}

bool ss_check_release(void)
{
	return ss_quarantine_empty(false);
}

void ss_quarantine_stream_ends(struct ss_timeline *tl)
{
	struct held *h, **at;
	bool busy;

	do {
		pthread_mutex_lock(&lock);
		for (at = &queues[0].first; *at && (*at)->tl != tl; at = &(*at)->next)
			;
		h = *at ? take(&queues[0], at) : NULL;
		pthread_mutex_unlock(&lock);
		if (h)
			leave(h, false);
	} while (h);
	do { /* another thread may be using the stream for one of its blocks */
		pthread_mutex_lock(&lock);
		for (h = leaving; h && h->tl != tl; h = h->next)
			;
		busy = h != NULL;
		pthread_mutex_unlock(&lock);
		if (busy)
			usleep(100);
	} while (busy);
}

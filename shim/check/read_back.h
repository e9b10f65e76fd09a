/* SPDX-License-Identifier: MIT */
/*
 * Bytes of the device are filled in the order of a stream, and copied back to the host to be
 * compared. A later call looks at the copy, when it has completed.
 *
 * Any thread. The last error of the calling thread stays as it was. No lock is held while a
 * function is called with the bytes.
 */
#ifndef SS_SHIM_READ_BACK_H
#define SS_SHIM_READ_BACK_H

#include "core/check/check.h"
#include "core/core.h"

/* The receiver of a copy: gets `count` bytes, which `about` describes. */
typedef void ss_read_fn(const unsigned char *bytes, size_t count, const struct ss_finding *about);

/* Fills on tl's stream. For NULL: fills on a stream of ours on the current device, and waits.
 * False: the runtime refused. */
bool ss_fill_bytes(struct ss_timeline *tl, void *at, unsigned char value, size_t count);
/* The same with words. */
bool ss_fill_words(struct ss_timeline *tl, void *at, uint32_t word, size_t count);
/* Waits for the current device. */
bool ss_read_wait(void);
/* Copies on tl's stream, at most SS_READ_MAX bytes. `fn` is called by a later ss_read_look().
 * False: the runtime refused, or memory is out. */
bool ss_read_later(struct ss_timeline *tl, const void *from, size_t count,
		   const struct ss_finding *about, ss_read_fn *fn);
/* Copies on a stream of ours of the current device, waits, and calls `fn`. */
bool ss_read_now(const void *from, size_t count, const struct ss_finding *about, ss_read_fn *fn);
#define SS_READ_MAX ((size_t)1 << 30)

/* Looks at completed copies. `wait`: also waits for pending copies, as long as copies complete now
 * and then. */
void ss_read_look(bool wait);
/* Reports the bytes that differ from `value`, as `fault` of the block. */
void ss_read_compare(const unsigned char *bytes, size_t count, unsigned char value,
		     const struct ss_finding *about, uint64_t offset, enum ss_fault fault);
/* A device was reset, which has freed pinned memory, events and streams of ours: none of them is
 * used again. */
void ss_read_forget(void);

/* Looks at completed copies, without a wait. */
static inline void ss_read_arrived(void)
{
	if (ss_options.check &
	    (SS_CHECK_BOUNDS | SS_CHECK_POISON | SS_CHECK_INIT | SS_CHECK_UNUSED))
		ss_read_look(false);
}

#endif

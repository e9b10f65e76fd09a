/* SPDX-License-Identifier: MIT */
/*
 * The tool `bounds`: padding bytes after each block that no command may write. The padding is
 * filled in the order of the stream that allocates, and read back in the order of the stream that
 * frees, or at exit.
 */
#ifndef SS_SHIM_CHECK_PADDING_H
#define SS_SHIM_CHECK_PADDING_H

#include "core/check/check.h"
#include "core/core.h"

/* Number of watched bytes before a block, of the `front` bytes that the core has set aside; 0 as
 * below. */
size_t ss_padding_front(size_t front);
/* Number of padding bytes after each block; 0: the tool is off, or nothing may be enqueued now. */
size_t ss_padding_bytes(void);
/* After an allocation on tl (NULL: by hipMalloc): fills the given numbers of bytes before the block
 * and after it. False: the block is not watched. */
bool ss_padding_fill(struct ss_timeline *tl, void *ptr, size_t size, size_t front, size_t padding);
/* Called after ss_padding_fill(): reads some of the fills back, as long as no other command can
 * have written there. A block whose fill was lost is not compared. */
void ss_padding_prove(struct ss_timeline *tl, void *ptr, size_t front, size_t padding);
/* Before the free on tl (NULL: a free that waits for the device) of the block that `about`
 * describes: reads about->front bytes before the block and `padding` bytes after it. */
void ss_padding_read(struct ss_timeline *tl, const struct ss_finding *about, size_t padding);
/* Has all work on all devices certainly completed? Tries for a second. */
bool ss_padding_all_idle(void);
/* Reads the padding of a live block, while all devices are idle. */
void ss_padding_read_live(const struct ss_finding *about, size_t padding);

#endif

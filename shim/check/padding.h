/* SPDX-License-Identifier: MIT */
/*
 * The tool `bounds`: bytes behind each block that nobody may write. They are filled in the order of
 * the stream that allocates, and read back in the order of the stream that frees, or at exit.
 */
#ifndef SS_SHIM_CHECK_PADDING_H
#define SS_SHIM_CHECK_PADDING_H

#include "core/check/check.h"
#include "core/core.h"

/* Bytes in front of a block of which the core has set `front` aside that are watched; 0 as
 * below. */
size_t ss_padding_front(size_t front);
/* Bytes behind each block; 0: the tool is off, or nothing may be enqueued now. */
size_t ss_padding_bytes(void);
/* After an allocation on tl (NULL: by hipMalloc): fills so many bytes in front of it and behind it.
 * False: it is not watched. */
bool ss_padding_fill(struct ss_timeline *tl, void *ptr, size_t size, size_t front, size_t padding);
/* Then: reads some of the fills back, as long as nobody else can have written there. Of a block
 * whose fill has not arrived nothing is compared. */
void ss_padding_prove(struct ss_timeline *tl, void *ptr, size_t front, size_t padding);
/* Before the free on tl (NULL: one that waits for the device) of the block that `about` describes:
 * reads about->front bytes and `padding` behind it. */
void ss_padding_read(struct ss_timeline *tl, const struct ss_finding *about, size_t padding);
/* Has all work on all devices certainly ended? Asks for a second. */
bool ss_padding_all_idle(void);
/* The same of a live block, while all is idle. */
void ss_padding_read_live(const struct ss_finding *about, size_t padding);

#endif

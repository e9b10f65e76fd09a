/* SPDX-License-Identifier: MIT */
/* The tools `init` and `unused`: bytes that are copied to the host, or freed, and were never
 * written. Any thread. */
#ifndef SS_SHIM_CHECK_INIT_H
#define SS_SHIM_CHECK_INIT_H

#include "core/core.h"

/* After an allocation on tl (NULL: by hipMalloc). */
void ss_init_fill(struct ss_timeline *tl, void *ptr);
/* A kernel, or a graph, is launched. */
void ss_init_launched(void);
/* Before a copy on tl to memory that is not ours. */
void ss_init_copied(struct ss_timeline *tl, const void *from, size_t bytes, const void *to);
/* Before the free on tl (NULL: one that waits). */
void ss_init_freeing(struct ss_timeline *tl, const void *ptr);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Keeps a ring within its size: replaces the oldest events by their result, that is, the blocks and
 * the memory that existed at one moment (the ring's beginning). So all figures from that moment on
 * are right. The program goes on meanwhile.
 */
#ifndef SS_RING_FOLD_H
#define SS_RING_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_ring_result {
	SS_RING_IDLE, /* there is nothing to do yet */
	SS_RING_FOLDED,
	SS_RING_FAILED, /* one line is in `err` */
};

/* Looks whether the ring of this file is three quarters full, or has blocks that ended more than
 * `keep_ns` ago (0: no matter how old), and if so moves its beginning. */
enum ss_ring_result ss_ring_fold(const char *path, uint64_t keep_ns, char *err, size_t err_size);
/* Starts a process that folds the rings with names for `pattern` (trace/file_name.h), as long as
 * the caller or a process that writes such a ring runs. There is one such process at a time. False
 * with errno set. */
bool ss_ring_keep(const char *pattern, uint64_t keep_ns);
/* Tells that process that the program has ended, and waits until it does nothing more to the rings
 * of processes that have ended. */
void ss_ring_keep_end(void);

#endif

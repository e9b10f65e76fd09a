/* SPDX-License-Identifier: MIT */
/* Copies a ring, as it is at this moment, to a recording of its own. The program goes on. */
#ifndef SS_RING_DUMP_H
#define SS_RING_DUMP_H

#include <stdbool.h>
#include <stddef.h>

/* Writes to `fd`, which is called `to` in messages. Waits for others that have the ring locked, for
 * `wait_ms` at most. False with one line in `err`. */
bool ss_ring_dump(const char *path, int fd, const char *to, unsigned wait_ms, char *err,
		  size_t err_size);

#endif

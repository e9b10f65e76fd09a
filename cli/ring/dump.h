/* SPDX-License-Identifier: MIT */
/* Copies a ring, as it is at this moment, to a recording of its own. The program goes on. */
#ifndef SS_RING_DUMP_H
#define SS_RING_DUMP_H

#include <stdbool.h>
#include <stddef.h>

/* `to` must not exist. False with one line in `err`, and then there is no file `to`. */
bool ss_ring_dump(const char *path, const char *to, char *err, size_t err_size);

#endif

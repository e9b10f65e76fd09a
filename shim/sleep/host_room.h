/* SPDX-License-Identifier: MIT */
/* How much host memory this process may still take before the kernel ends processes for it. */
#ifndef SS_SHIM_SLEEP_HOST_ROOM_H
#define SS_SHIM_SLEEP_HOST_ROOM_H

#include <stdint.h>

/* Bytes that may be taken with some left for others: of the machine, and within the limits of the
 * process's cgroup and those above it (v1 and v2). *why: the text for "there is less than is
 * needed", static. Files that cannot be read limit nothing. `root` stands before /proc and /sys;
 * "" for the kernel's. Takes no lock and no memory. */
uint64_t ss_host_room(const char *root, const char **why);

#endif

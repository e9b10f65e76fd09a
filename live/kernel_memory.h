/* SPDX-License-Identifier: MIT */
/*
 * The memory of each device that a process has, as the kernel counts it: for its files of /dev/dri
 * (drm-memory-vram in fdinfo) and for compute (KFD's sysfs), the larger of both. Needs libc only.
 * Any thread may call these functions.
 */
#ifndef SS_LIVE_KERNEL_MEMORY_H
#define SS_LIVE_KERNEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_KERNEL_DEVICES 64
#define SS_KERNEL_NAMES 128 /* characters of ss_memory_libraries() */

struct ss_kernel_device {
	char pci[16];  /* "0000:c1:00.0" */
	uint64_t vram; /* bytes */
};

/* Fills in the devices for which the kernel has figures, and returns their number. `root` is put
 * before /proc and /sys ("" is this machine), `pid` is a process, or 0 for this one. A device
 * without figures is left out; without host memory all are. The call takes little of the stack. */
size_t ss_kernel_memory(const char *root, uint32_t pid,
			struct ss_kernel_device out[SS_KERNEL_DEVICES]);
/* Reads the beginning of a file of /proc or /sys, and ends the text with 0. False: the file is
 * empty, or cannot be read. */
bool ss_kernel_file(const char *path, char *out, size_t size);
/* The `root` of this process: SOMASIM_KERNEL_ROOT, for tests, or "". */
const char *ss_kernel_root(void);

/* The name of a library that takes device memory of its own, by the path of its file ("RCCL" for
 * .../librccl.so.1); NULL: the library is unknown. Static strings. */
const char *ss_memory_library(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The HSA runtimes of 7.1 to 7.13 map the device's file over the addresses of a chunk and leave
 * that mapping, without access, after the unmap. That mapping is the last reference to the memory,
 * so the device gets the memory back only when the addresses are freed (rocm-systems#4363). An
 * anonymous mapping over these addresses releases the memory, and the addresses stay reserved.
 *
 * No table of releases is needed: the addresses themselves show whether a file is mapped there. The
 * release of the memory is verified, too: the self-test and core/backing/retention.c look at the
 * device's free figure.
 *
 * Locks: none. Two threads that look at the same time find the same.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "config/limits.h"
#include "driver/rocm/left_mapping.h"

/* After this many unmaps of a device without a left mapping the looks end, because a look reads the
 * process's list of mappings. */
#define LOOKS 4
#define ALWAYS 255 /* a file was found: every unmap of the device leaves one */

static _Atomic unsigned char looks[SS_MAX_DEVICES];

/* Is a file mapped anywhere in [from, to)? */
static bool has_file(uintptr_t from, uintptr_t to)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long first, end, inode;
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx-%lx %*s %*s %*s %lu", &first, &end, &inode) == 3 &&
			first < to && from < end && inode;
	if (f)
		fclose(f);
	return found;
}

void ss_rocm_left_mapping_cover(int dev, void *va, size_t size)
{
	unsigned char seen = atomic_load(&looks[dev]);
	uintptr_t from = (uintptr_t)va;

	if (seen == LOOKS)
		return;
	if (seen != ALWAYS) {
		if (!has_file(from, from + size)) {
			atomic_compare_exchange_strong(&looks[dev], &seen, seen + 1);
			return;
		}
		atomic_store(&looks[dev], ALWAYS);
	}
	(void)mmap(va, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		   0);
}

/* SPDX-License-Identifier: MIT */
/* The calls that the runtime makes to its own exports. */
#include <stdatomic.h>
#include <stdint.h>

#include "hip/reentry.h"

struct reentry reentry;

static _Atomic uint64_t told_free;

void reenter_mem_get_info(void)
{
	size_t avail = 0, total;

	reentry.mem_get_info(&avail, &total);
	atomic_store(&told_free, avail);
}

/* ---- test control, found by dlsym ---- */

__attribute__((visibility("default"))) uint64_t somasim_told_free(void);

uint64_t somasim_told_free(void)
{
	return atomic_load(&told_free);
}

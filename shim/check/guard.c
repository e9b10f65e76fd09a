/* SPDX-License-Identifier: MIT */
/* The tool `guard`: blocks that end at the end of their mapping, which core/backing/guard.c makes.
 * No lock. */
#include <stdatomic.h>

#include "shim/check/checker.h"
#include "shim/process/log.h"

enum ss_status ss_check_guarded(struct ss_timeline *tl, struct ss_pool *pool, size_t size,
				void **ptr)
{
	static atomic_bool said;
	enum ss_status status;

	/* Mapping memory may end a capture. */
	if (!(ss_options.check & SS_CHECK_GUARD) || size < ss_options.check_guard ||
	    ss_capture_live() || ss_exiting())
		return SS_ERR_UNSUPPORTED;
	status = ss_alloc_guarded(ss_core, pool, tl, size, ptr);
	if (status == SS_ERR_UNSUPPORTED && !atomic_exchange(&said, true))
		ss_shim_log("SOMASHIM_CHECK: no block is guarded: this device or runtime has no "
			    "virtual memory");
	return status;
}

void ss_check_no_handle(const char *call, const void *ptr)
{
	static atomic_bool said;
	struct ss_block_info info;

	if (ss_lookup(ss_core, ptr, &info) && info.guarded && !atomic_exchange(&said, true))
		ss_shim_log("SOMASHIM_CHECK: %s refuses a block of %zu bytes, because a guarded "
			    "block has no handle for other processes: let --guard "
			    "(SOMASHIM_CHECK_GUARD) be larger than what they share",
			    call, ss_check_asked(ptr, info.size));
}

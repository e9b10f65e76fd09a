/* SPDX-License-Identifier: MIT */
/* Memory that the host and the device both see, if the program allocated it by calls that are
 * seen. */
#ifndef SS_SHIM_CHECK_HOST_MEMORY_H
#define SS_SHIM_CHECK_HOST_MEMORY_H

#include <stdbool.h>

#include "core/check/check.h"

bool ss_check_is_host_memory(const void *ptr);
/* Is this memory of graphs, which only the device sees? */
bool ss_check_is_device_memory(const void *ptr);
/* Does memory of hipHostMalloc and its like begin here? */
bool ss_check_is_pinned(const void *ptr);
/* The first: the call at `site` frees the memory that begins at the address. False: there is none.
 * The second: the call did not free it. */
void ss_check_host_memory_back(const void *ptr);
bool ss_check_host_memory_end(void *ptr, const struct ss_check_site *site);
/* Did freed memory begin at ptr? Only the latest freed ranges are remembered. */
bool ss_check_host_memory_was(const void *ptr, struct ss_check_site *site);
/* Did the program ever have such memory? If not, no kernel can talk to the host. */
bool ss_check_any_host_memory(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Memory that the host and the device both see, as far as the program got it by calls that are
 * seen. */
#ifndef SS_SHIM_CHECK_HOST_MEMORY_H
#define SS_SHIM_CHECK_HOST_MEMORY_H

#include <stdbool.h>

bool ss_check_is_host_memory(const void *ptr);
/* Memory of graphs, which only the device sees. */
bool ss_check_is_device_memory(const void *ptr);
/* Does memory of hipHostMalloc and its like begin here? */
bool ss_check_is_pinned(const void *ptr);
/* Was there ever any? If not, no kernel can talk to the host. */
bool ss_check_any_host_memory(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The functions behind the exported hsa_* calls: i_ and the name, one per row of
 * hsa_entries.h. */
#ifndef SIM_HSA_ENTRY_POINTS_H
#define SIM_HSA_ENTRY_POINTS_H

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

/* Types that are newer than Debian 12's header, with the layouts of ROCr 6.x. */
typedef struct {
	uint64_t handle;
} hsa_vmem_handle_t;
typedef struct {
	int permissions;
	hsa_agent_t agent_handle;
} hsa_access_desc_t;

#define E(name, params, args) hsa_status_t i_##name params;
#include "hsa/hsa_entries.h"
#undef E

#endif

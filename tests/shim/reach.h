/* SPDX-License-Identifier: MIT */
/* Which devices may access memory, as the runtime sees it. */
#ifndef TEST_SHIM_REACH_H
#define TEST_SHIM_REACH_H

#include <hsa/hsa_ext_amd.h>

#include "test.h"

/* Devices that the runtime lets at p. */
static inline uint32_t reach(void *p)
{
	hsa_status_t (*look)(const void *, hsa_amd_pointer_info_t *, void *(*)(size_t), uint32_t *,
			     hsa_agent_t **) = sim_must("hsa_amd_pointer_info");
	hsa_amd_pointer_info_t info = {.size = sizeof(info)};
	hsa_agent_t *list = NULL;
	uint32_t n = 0;

	CHECK(look(p, &info, malloc, &n, &list) == HSA_STATUS_SUCCESS);
	free(list);
	return n;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * UCX exports device memory by a call of its own. Where its modules are loaded, pools are
 * not on virtual memory, even if the user asks for it. Where they are loaded later, such
 * exports are refused before the kernel sees them (SOMASIM_QUIRKS=ipc-vmm ends the process
 * otherwise).
 *
 *   exporter early|late MODULE
 */
#include <hsa/hsa_ext_amd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

int main(int argc, char **argv)
{
	hsa_status_t (*export)(void *, size_t, hsa_amd_ipc_memory_t *);
	hsa_amd_ipc_memory_t handle;
	bool early;
	char *p;

	CHECK(argc == 3 && preloaded());
	early = !strcmp(argv[1], "early");
	*(void **)&export = dlsym(RTLD_DEFAULT, "hsa_amd_ipc_memory_create");
	CHECK(export);
	if (early)
		CHECK(dlopen(argv[2], RTLD_NOW));
	OK(hipMallocAsync((void **)&p, 8 * MIB, NULL));
	OK(hipMemsetAsync(p, 7, 8 * MIB, NULL));
	OK(hipStreamSynchronize(NULL));
	CHECK((sim_count("hipMemCreate") == 0) == early);
	if (!early) {
		CHECK(dlopen(argv[2], RTLD_NOW));
		CHECK(export(p, 8 * MIB, &handle) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
		CHECK(export(p + MIB, MIB, &handle) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
		CHECK(export(p - 4 * MIB, 5 * MIB, &handle) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
		CHECK(sim_count("hsa_amd_ipc_memory_create") == 0);
	} else {
		CHECK(export(p, 8 * MIB, &handle) == HSA_STATUS_SUCCESS);
	}
	OK(hipFreeAsync(p, NULL));
	return 0;
}

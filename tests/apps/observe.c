/* SPDX-License-Identifier: MIT */
/*
 * A library that scripts/demo.sh and scripts/gpu.sh preload into a program. At exit it asks the
 * software device, or the device on CUDA's driver, how often it was called and how far it was
 * behind, and writes the answers to $OBSERVE_OUT. With any other runtime it writes nothing. The
 * program need not know of it.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The calls that take and release memory, on any backing. */
static const char *const memory_calls[] = {
	"hipMalloc",
	"hipFree",
	"hipMallocAsync",
	"hipFreeAsync",
	"hipMallocFromPoolAsync",
	"hipExtMallocWithFlags",
	"hipMemPoolTrimTo",
	"hipMemCreate",
	"hipMemRelease",
	"hipMemMap",
	"hipMemUnmap",
	"hipMemSetAccess",
	"hipMemAddressReserve",
	"hipMemAddressFree",
	"hsa_amd_memory_pool_allocate",
	"hsa_amd_memory_pool_free",
};

__attribute__((destructor)) static void report(void)
{
	uint64_t (*total)(void);
	uint64_t (*count)(const char *name);
	uint64_t (*behind)(void);
	const char *path = getenv("OBSERVE_OUT");
	uint64_t memory = 0;

	*(void **)&total = dlsym(RTLD_DEFAULT, "somasim_total_calls");
	*(void **)&count = dlsym(RTLD_DEFAULT, "somasim_call_count");
	*(void **)&behind = dlsym(RTLD_DEFAULT, "somasim_mean_behind");
	FILE *file = path && total && count ? fopen(path, "w") : NULL;
	if (!file)
		return;
	for (size_t i = 0; i < sizeof(memory_calls) / sizeof(memory_calls[0]); i++)
		memory += count(memory_calls[i]);
	fprintf(file, "runtime_calls=%" PRIu64 " memory_calls=%" PRIu64, total(), memory);
	if (behind) /* the device on CUDA's driver does not know */
		fprintf(file, " behind=%" PRIu64, behind());
	fprintf(file, "\n");
	fclose(file);
}

/* SPDX-License-Identifier: MIT */
/*
 * Preloaded by scripts/demo.sh and scripts/gpu.sh beside the program: asks the software device, or
 * the one on CUDA's driver, at exit how often it was called and how far it was behind, and writes
 * that to $OBSERVE_OUT. On any other runtime it writes nothing. The program knows of neither.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What allocating and giving back comes down to, on any backing. */
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
	if (behind) /* the one on CUDA's driver does not know */
		fprintf(file, " behind=%" PRIu64, behind());
	fprintf(file, "\n");
	fclose(file);
}

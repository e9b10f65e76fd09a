/* SPDX-License-Identifier: MIT */
/* A process without HIP, also one that looks for HIP by dlsym(). */
#include <dlfcn.h>
#include <stddef.h>

static const char *const names[] = {
	"hipFree", "hipGetLastError", "hipStreamCreate", "hipStreamSynchronize",
	"hipDeviceSynchronize", "hipMemPoolTrimTo", "hipPointerGetAttributes",
	"hsa_amd_ipc_memory_create",
};

int main(void)
{
	char room[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*fn)(void *, void *, void *) =
			(int (*)(void *, void *, void *))dlsym(RTLD_DEFAULT, names[i]);

		if (!fn)
			return 1;
		if (fn(room, room, room) == 0)
			return 2;
	}
	return 0;
}

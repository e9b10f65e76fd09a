/* SPDX-License-Identifier: MIT */
/*
 * A process without HIP. By dlsym() it finds no function of HIP, as without us. Calls that the
 * loader binds by name reach us, and fail.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {
	"hipFree",
	"hipGetLastError",
	"hipStreamCreate",
	"hipStreamSynchronize",
	"hipDeviceSynchronize",
	"hipMemPoolTrimTo",
	"hipPointerGetAttributes",
	"hsa_amd_ipc_memory_create",
};

int main(void)
{
	void *us = dlopen("libsomashim.so", RTLD_LAZY | RTLD_NOLOAD);
	char room[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*fn)(void *, void *, void *);
		const char *error;

		if (dlsym(RTLD_NEXT, names[i]) || dlvsym(RTLD_DEFAULT, names[i], "hip_4.2") ||
		    dlvsym(RTLD_NEXT, names[i], "hip_4.2"))
			return 1;
		(void)dlerror();
		if (dlsym(RTLD_DEFAULT, names[i]) || !(error = dlerror()) ||
		    !strstr(error, "undefined symbol") || !strstr(error, names[i]))
			return 2;
		fn = (int (*)(void *, void *, void *))dlsym(us, names[i]);
		if (!fn || dlerror())
			return 3;
		if (fn(room, room, room) == 0)
			return 4;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The child of `somashim doctor`: loads a HIP runtime and makes the first call into it. */
#include <dlfcn.h>
#include <stdio.h>

#include "cli/doctor_probe.h"

#define NO_DEVICE 100 /* hipErrorNoDevice */

static void print_error(const char *call, int err) {
	const char *(*get_name)(int);

	*(void **)&get_name = dlsym(RTLD_DEFAULT, "hipGetErrorName");
	fprintf(stderr, "somashim: %s failed: %s (%d)\n", call, get_name ? get_name(err) : "error",
		err);
}

int ss_probe_child(void) {
	/* Any runtime will do; the newest is tried first. */
	static const char *const names[] = {
		"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
	};
	int (*get_count)(int *) = NULL;
	int (*hip_free)(void *) = NULL;
	int count = 0, err;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !hip_free; i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);

		if (!lib) {
			continue;
		}
		*(void **)&get_count = dlsym(lib, "hipGetDeviceCount");
		/* The preload's hipFree, which runs the self-test. */
		*(void **)&hip_free = dlsym(RTLD_DEFAULT, "hipFree");
	}
	if (!hip_free || !get_count) {
		fprintf(stderr, "somashim: no libamdhip64 was found\n");
		return SS_EXIT_NO_RUNTIME;
	}
	err = get_count(&count);
	if (err && err != NO_DEVICE) {
		print_error("hipGetDeviceCount", err);
		return 1;
	}
	if (err || count == 0) {
		fprintf(stderr, "somashim: no device (error %d)\n", err);
		return SS_EXIT_NO_DEVICE;
	}
	err = hip_free(NULL);
	if (err) {
		print_error("hipFree", err);
	}
	return err ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/* The child of `somashim doctor`: loads a HIP runtime and makes the first call into it. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor_probe.h"
#include "cli/doctor_runtime.h"

#define NO_DEVICE 100 /* hipErrorNoDevice */

static void print_error(const char *call, int err)
{
	const char *(*get_name)(int);

	*(void **)&get_name = dlsym(RTLD_DEFAULT, "hipGetErrorName");
	fprintf(stderr, "somashim: %s failed: %s (%d)\n", call, get_name ? get_name(err) : "error",
		err);
}

/* Loads the first of these runtimes that can be loaded, and names it and the others. */
static void *load(const struct ss_runtime_file *file, size_t count)
{
	struct link_map *map;
	void *lib = NULL;
	size_t i;

	for (i = 0; i < count && !lib; i++) {
		lib = dlopen(file[i].path, RTLD_NOW | RTLD_GLOBAL);
		/* Names without a path are guesses. A file that cannot be loaded is worth a
		 * message. */
		if (!lib && strchr(file[i].path, '/'))
			fprintf(stderr, "somashim: cannot load: %s\n", dlerror());
	}
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0)
		return lib;
	fprintf(stderr, SS_PROBE_TAKEN "%s (from %s)\n", map->l_name, file[i - 1].from);
	for (; i < count; i++) {
		if (strchr(file[i].path, '/') && !ss_runtime_same(map->l_name, file[i].path)) {
			fprintf(stderr,
				"somashim: not taken: %s (from %s, later in the search; --runtime "
				"PATH "
				"takes it)\n",
				file[i].path, file[i].from);
		}
	}
	return lib;
}

int ss_probe_child(const char *runtime)
{
	struct ss_runtime_file *file = calloc(SS_RUNTIMES_MAX, sizeof(*file));
	void *lib = file ? load(file, ss_runtimes_find("", runtime, file)) : NULL;
	int (*get_count)(int *) = NULL;
	int (*hip_free)(void *) = NULL;
	int count = 0, err;

	free(file);
	if (lib) {
		*(void **)&get_count = dlsym(lib, "hipGetDeviceCount");
		/* The preload's hipFree, which runs the self-test. */
		*(void **)&hip_free = dlsym(RTLD_DEFAULT, "hipFree");
	}
	if (!hip_free || !get_count) {
		if (runtime) {
			fprintf(stderr,
				"somashim: no libamdhip64 that can be used was found by --runtime "
				"%s\n",
				runtime);
		} else {
			fprintf(stderr, "somashim: no libamdhip64 was found: not in "
					"LD_LIBRARY_PATH, ROCM_PATH, the "
					"loader's directories, /opt/rocm*/lib, "
					"/opt/rocm/core-*/lib or a Python wheel "
					"(--runtime PATH names one)\n");
		}
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
	if (err)
		print_error("hipFree", err);
	return err ? 1 : 0;
}

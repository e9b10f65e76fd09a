/* SPDX-License-Identifier: MIT */
/* HIP comes in with an RTLD_LOCAL plugin, where RTLD_NEXT does not find it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*run)(void), rc;
	uint64_t (*count)(const char *);
	void *plugin, *hip;

	if (argc < 2)
		return 1;
	/* Nothing is loaded yet, so nothing is found. */
	if (dlsym(RTLD_DEFAULT, "hipMalloc"))
		return 2;
	plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	run = (int (*)(void))dlsym(plugin, "plugin_run");
	rc = run ? run() : 9;
	if (rc) {
		fprintf(stderr, "plugin_run: %d\n", rc);
		return 4;
	}
	/* The shim was in the way: the runtime saw no hipMallocAsync. */
	hip = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_NOLOAD);
	count = hip ? (uint64_t(*)(const char *))dlsym(hip, "somasim_call_count") : NULL;
	if (!count) {
		fprintf(stderr, "needs the software device\n");
		return 77;
	}
	return count("hipMallocAsync") || count("hipMalloc") || !count("hipMemsetAsync");
}

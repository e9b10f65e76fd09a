/* SPDX-License-Identifier: MIT */
/* late HOW [LIBRARY]: blocks that are freed, or not, while the process ends. A library that the
 * program links, and one that it opens, free theirs in destructors
 * (tests/shim/static_frees_lib.c). */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int static_frees_allocate(int twice);

static int opened(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*allocate)(int) = NULL;
	void *fn = library ? dlsym(library, "static_frees_allocate") : NULL;

	memcpy(&allocate, &fn, sizeof(fn));
	return allocate ? allocate(0) : 3;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void *p;

	if (argc > 2)
		return static_frees_allocate(0) ? 3 : opened(argv[2]);
	if (!strcmp(how, "once") || !strcmp(how, "twice"))
		return static_frees_allocate(!strcmp(how, "twice"));
	if (hipMalloc(&p, 4096) != hipSuccess)
		return 3;
	if (!strcmp(how, "quick"))
		quick_exit(0);
	if (!strcmp(how, "now"))
		_exit(0);
	if (!strcmp(how, "reset") && hipDeviceReset() != hipSuccess)
		return 3;
	return 0;
}

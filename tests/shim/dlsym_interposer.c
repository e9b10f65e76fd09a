/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded before or behind somashim: another library that defines dlsym(), and finds the
 * next one as such libraries do, by the symbol version of glibc.
 */
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *dlsym(void *restrict handle, const char *restrict name);
EXPORT unsigned interposer_calls(void);

static unsigned calls;

void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*next)(void *, const char *);

	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", NODE);
	calls++;
	return next(handle, name);
}

unsigned interposer_calls(void)
{
	return calls;
}

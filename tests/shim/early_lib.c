/* SPDX-License-Identifier: MIT */
/*
 * A library that calls dlsym() before anything else runs: in the resolver of an indirect function,
 * which the loader calls before it has relocated a preloaded library, and in a constructor. It also
 * says whom RTLD_NEXT and RTLD_DEFAULT mean where it asks. Built twice, with WHO "a" and "b".
 */
#include <dlfcn.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define MINE(name) GLUE(name, WHO)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

typedef const char *who_fn(void);

EXPORT const char *who(void);
EXPORT int MINE(early_)(void); /* 1: the resolver found getpid() by dlsym() */
EXPORT int MINE(constructed_)(void);
EXPORT const char *MINE(next_)(void);    /* who() of RTLD_NEXT, or NULL */
EXPORT const char *MINE(default_)(void); /* who() of RTLD_DEFAULT */

const char *who(void)
{
	return TEXT(WHO);
}

static int found(void)
{
	return 1;
}

static int missed(void)
{
	return 0;
}

static __typeof__(&found) MINE(resolve_)(void)
{
	return dlsym(RTLD_DEFAULT, "getpid") && !dlsym(RTLD_DEFAULT, "hipNoSuchFunction") ? found :
											    missed;
}

int MINE(early_)(void) __attribute__((ifunc(TEXT(MINE(resolve_)))));

static int constructed;

__attribute__((constructor)) static void construct(void)
{
	constructed = dlsym(RTLD_NEXT, "getpid") && dlvsym(RTLD_DEFAULT, "getpid", NODE) &&
		      !dlvsym(RTLD_DEFAULT, "getpid", "NO_SUCH_NODE");
}

int MINE(constructed_)(void)
{
	return constructed;
}

const char *MINE(next_)(void)
{
	who_fn *fn = (who_fn *)dlsym(RTLD_NEXT, "who");

	return fn ? fn() : NULL;
}

const char *MINE(default_)(void)
{
	who_fn *fn = (who_fn *)dlsym(RTLD_DEFAULT, "who");

	return fn ? fn() : NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Detects without a call whether the loader has added an object.
 *
 * A library that is loaded after the runtime has started and is never unloaded serves as a mark:
 * later objects follow the mark in the loader's list, so no object was added while the mark is the
 * last entry. The mark is our own auditor, because its file lies beside ours and it does nothing
 * when it is loaded in this way.
 *
 * Objects of dlmopen() are in another list. Since glibc 2.35 _r_debug.r_version is 1 as long
 * as there is no such list; with an older glibc the mark is not used.
 *
 * Locks: none.
 */
#include <dlfcn.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/process/loader.h"

static struct link_map *_Atomic mark;
struct link_map *_Atomic ss_loader_last;

static bool sees_namespaces(void)
{
	int minor = 0;

#if defined(__GLIBC__)
	sscanf(gnu_get_libc_version(), "2.%d", &minor);
#endif
	return minor >= 35 && _r_debug.r_version == 1;
}

void ss_loader_start(void)
{
	static atomic_bool once;
	struct link_map *map = NULL;
	const char *slash;
	char *path;
	Dl_info info;
	void *lib;

	if (atomic_exchange(&once, true) || !sees_namespaces() || !dladdr(&ss_loader_last, &info) ||
	    !(slash = strrchr(info.dli_fname, '/')))
		return;
	if (asprintf(&path, "%.*s/libsomashim-audit.so", (int)(slash - info.dli_fname),
		     info.dli_fname) < 0)
		return;
	lib = access(path, R_OK) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	free(path);
	if (lib && !dlinfo(lib, RTLD_DI_LINKMAP, &map))
		atomic_store(&mark, map);
}

struct link_map *ss_loader_mark(void)
{
	return atomic_load(&mark);
}

void ss_loader_seen(struct link_map *before)
{
	atomic_store_explicit(&ss_loader_last, before, memory_order_release);
}

/* SPDX-License-Identifier: MIT */
/* Finds the HIP and HSA runtimes that the process has loaded. Any thread. */
#ifndef SS_DRIVER_RESOLVE_H
#define SS_DRIVER_RESOLVE_H

#include <stdbool.h>

struct ss_runtime {
	char path[512];
	/* Of hipRuntimeGetVersion: 60443484 is 6.4; 0: not asked, or no answer */
	int version;
	int major, minor;
};

/* True once another loaded object exports hipMalloc. Makes no call into that object, takes no lock
 * of ours, and may be called again at any time. */
bool ss_runtime_find(void);
/* Did the last search find nothing because host memory was out? */
bool ss_runtime_no_memory(void);
/* Asks the runtime for its version, which starts it. Call it after ss_runtime_find() and before any
 * read of major and minor. Any thread, any number of times. */
void ss_runtime_ask_version(void);
/* Zeros before ss_runtime_find() has returned true. */
const struct ss_runtime *ss_runtime(void);

struct ss_real_fn {
	const char *name;
	void *fn;
};
/* Overrides what ss_runtime_symbol() finds, for a runtime whose exported functions lead back
 * to us. Call it once, before the first look-up of these names; `list` must stay valid. */
void ss_runtime_set(const struct ss_real_fn *list, unsigned count);
/* The real function of that name, that is, the next definition after ours, or NULL. It may be
 * another preload's. */
void *ss_runtime_symbol(const char *name);
/* Is the runtime of such a name, HIP or HSA, in the global scope, so that every reference finds it?
 * Asks the loader, which may keep an error for dlerror(). */
bool ss_runtime_global(const char *name);
/* Does a loaded runtime have this name under this symbol version? Looks at the exports only. */
bool ss_runtime_versioned(const char *name, const char *version);
/* As ss_runtime_symbol(), for the HSA runtime. Works in a process without HIP, too. */
void *ss_hsa_symbol(const char *name);
/* The same in librocprofiler-register, if it is loaded. */
void *ss_register_symbol(const char *name);
static inline bool ss_runtime_at_least(const struct ss_runtime *rt, int major, int minor)
{
	return rt->major > major || (rt->major == major && rt->minor >= minor);
}

#endif

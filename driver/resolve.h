/* SPDX-License-Identifier: MIT */
/* Finds the HIP and HSA runtimes that the process already uses. */
#ifndef SS_DRIVER_RESOLVE_H
#define SS_DRIVER_RESOLVE_H

#include <stdbool.h>

struct ss_runtime {
	char path[512];
	int version;     /* as hipRuntimeGetVersion says: 60443484 is 6.4; 0: not asked */
	int major, minor;
};

/* True once a loaded object (not this one) exports hipMalloc. Makes no call into it, takes
 * no lock of ours and may be tried again at any time. */
bool ss_runtime_find(void);
/* Asks the runtime for its version, which starts it. After ss_runtime_find(), before
 * anybody reads major and minor; any thread, any number of times. */
void ss_runtime_ask_version(void);
const struct ss_runtime *ss_runtime(void);
/* The real functions, where those that the library exports lead back to us. Once,
 * before the first call that could need them; the list stays. */
struct ss_real_fn {
	const char *name;
	void *fn;
};
void ss_runtime_set(const struct ss_real_fn *list, unsigned count);
/* The real function, or NULL. */
void *ss_runtime_symbol(const char *name);
/* The same in the HSA runtime, also in a process without HIP. */
void *ss_hsa_symbol(const char *name);
/* The same in librocprofiler-register, where there is one behind us. */
void *ss_register_symbol(const char *name);
static inline bool ss_runtime_at_least(const struct ss_runtime *rt, int major, int minor)
{
	return rt->major > major || (rt->major == major && rt->minor >= minor);
}

#endif

/* SPDX-License-Identifier: MIT */
/* The functions of the real HIP runtime, and how the shim calls them. */
#ifndef SS_SHIM_REAL_H
#define SS_SHIM_REAL_H

#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include "driver/rocm/guard.h"
#include "shim/entries.h"

/* One pointer per intercepted symbol and per helper; NULL if this release lacks it. */
struct ss_real {
#define E(kind, extra, name, node, since, params, args) hipError_t (*name) params;
	SS_ENTRIES(E)
#undef E
#define H(ret, name, params) ret (*name) params;
	SS_HELPERS(H)
#undef H
};

extern struct ss_real ss_real __attribute__((visibility("hidden")));

/* Finds the real functions. Makes no call into the runtime, so it does not start the runtime. Any
 * thread, any number of times. False: no runtime is loaded yet. */
bool ss_real_resolve(void);
bool ss_real_resolved(void);
/* The result of a call to a function that the runtime does not have. */
hipError_t ss_real_missing(void);

/* A real call on our own account. Calls that the runtime makes to our exports meanwhile are
 * passed on, because the thread's depth is above 0. */
#define REAL(name, ...) __extension__({ \
	hipError_t ss_err_; \
	ss_enter(); \
	ss_err_ = ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing(); \
	ss_leave(); \
	ss_err_; })

#endif

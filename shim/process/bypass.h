/* SPDX-License-Identifier: MIT */
/* Ways past the shim: see bypass.c. */
#ifndef SS_SHIM_BYPASS_H
#define SS_SHIM_BYPASS_H

#include <stdbool.h>

/* Looks at the loaded objects for a way past the shim, if there are new ones since the
 * last look. Returns how many were loaded, ever. */
unsigned long long ss_bypass_check(void);
/* Is there HIP in this process at all? Nothing is started for the answer. */
bool ss_hip_loaded(void);
/* The same, and it was loaded behind us: so it was initialized before, and its destructors
 * run after what our constructor gives to atexit(). */
bool ss_hip_loaded_after_us(void);
/* A call went past: said once. What is known by events and queries is no longer trusted. */
void ss_bypass_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* table.c: the runtime's exports lead to us, whoever is bound to them. */
bool ss_api_table_taken(void);

#endif

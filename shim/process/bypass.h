/* SPDX-License-Identifier: MIT */
/* Ways past the shim, as far as the list of loaded objects shows them. */
#ifndef SS_SHIM_BYPASS_H
#define SS_SHIM_BYPASS_H

#include <stdbool.h>

/* Looks at the loaded objects for a way past the shim, if any was added since the last look,
 * and reports the first. Returns how many objects were ever loaded. */
unsigned long long ss_bypass_check(void);
/* A call went past the shim. The first report is logged, and ends the core's trust in events
 * and queries (ss_distrust). */
void ss_bypass_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The runtime's own table leads to us, so references to the runtime are no way past us. */
void ss_bypass_table_taken(void);

/* Is there HIP in this process? Starts nothing. Walks over all loaded objects, which takes time. */
bool ss_hip_loaded(void);
/* Does the HIP runtime stand behind us in the loader's list? Then it was initialized before
 * us, and its destructors run after the functions that our constructor gives to atexit(). */
bool ss_hip_loaded_after_us(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Bypasses (ways past the shim), as far as the list of loaded objects shows them. */
#ifndef SS_SHIM_BYPASS_H
#define SS_SHIM_BYPASS_H

#include <stdbool.h>

/* Looks for a bypass in the loaded objects, if an object was added since the last look, and reports
 * the first bypass. Returns how many objects were ever loaded. */
unsigned long long ss_bypass_check(void);
/* Reports a bypass: a call that did not reach the shim. The first report is logged, and ends the
 * core's trust in events and queries (ss_distrust). */
void ss_bypass_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The runtime's own table leads to us, so references to the runtime are no bypass. */
void ss_bypass_table_taken(void);

/* Is there HIP in this process? Starts nothing. Walks over all loaded objects, which takes time. */
bool ss_hip_loaded(void);
/* Is the HIP runtime after us in the loader's list? Then the runtime was initialized before us, and
 * its destructors run after the functions that our constructor gives to atexit(). */
bool ss_hip_loaded_after_us(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Which thread touches which memory: the core is compiled as for ThreadSanitizer, and
 * what the compiler then calls is here. */
#ifndef SS_TESTS_TOUCH_H
#define SS_TESTS_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

/* From here on, or no more, what the calling thread touches is noted as `who`'s: 0 or 1. */
void touch_begin(int who);
void touch_end(void);
void touch_reset(void);

/* Two cache lines, which processors fetch together, that both touched and one wrote. */
struct touched {
	uintptr_t line;
	uint32_t reads[2], writes[2];
};
/* Calls `each` for all of them; returns the accesses that can have waited for the other. */
uint64_t touch_shared(void (*each)(const struct touched *t));

#endif

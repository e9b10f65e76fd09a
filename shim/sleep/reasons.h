/* SPDX-License-Identifier: MIT */
/* Why the process cannot sleep. */
#ifndef SS_SHIM_SLEEP_REASONS_H
#define SS_SHIM_SLEEP_REASONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True: there is a reason why no attempt can succeed, in a few words. */
bool ss_sleep_refused(char *why, size_t size);
/* Why pools that hold so many bytes released nothing, in a few words. Static. */
const char *ss_sleep_nothing(uint64_t held);

#endif

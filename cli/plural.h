/* SPDX-License-Identifier: MIT */
#ifndef SS_CLI_PLURAL_H
#define SS_CLI_PLURAL_H

#include <stdint.h>

/* The word that goes with a number: "1 block" and "2 blocks". */
static inline const char *ss_plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

#endif

/* SPDX-License-Identifier: MIT */
/* uthash, as all files of the command include it: when host memory is out, the command says so and
 * ends, as for any other error. The preload has hash.h. */
#ifndef SS_BASE_HASH_OR_END_H
#define SS_BASE_HASH_OR_END_H

#include <stdio.h>
#include <stdlib.h>

#define uthash_fatal(message) \
	do { \
		fprintf(stderr, "somashim: out of memory\n"); \
		exit(2); \
	} while (0)
#include <uthash.h>

#endif

/* SPDX-License-Identifier: MIT */
/*
 * uthash, as all of the library has it. Out of the box it ends the program when host memory
 * is short; here HASH_ADD does nothing then, which SS_HASH_HAS tells.
 */
#ifndef SS_CORE_HASH_H
#define SS_CORE_HASH_H

#include <stdint.h>
#include <string.h>

/* Every key here is a pointer or a handle: eight bytes, one multiplication. The
 * middle bits choose the bucket, since uthash takes the low ones. */
#define HASH_FUNCTION(key, length, hash) do { \
	uint64_t key_; \
	memcpy(&key_, (key), sizeof(key_)); \
	(hash) = (unsigned)(key_ * 0x9e3779b97f4a7c15ull >> 32); \
} while (0)
#define HASH_KEYCMP(a, b, length) memcmp((a), (b), sizeof(uint64_t))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Of what was given to HASH_ADD: is it in the table? */
#define SS_HASH_HAS(e) ((e)->hh.tbl != NULL)

#endif

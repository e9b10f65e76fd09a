/* SPDX-License-Identifier: MIT */
/*
 * uthash, as all files of the shim must include it. By default uthash ends the program when host
 * memory is out. Here HASH_ADD adds nothing in that case, and SS_HASH_HAS tells whether it did.
 */
#ifndef SS_SHIM_HASH_H
#define SS_SHIM_HASH_H

#include <stdint.h>
#include <string.h>

/* Every key is a pointer or a handle of eight bytes, so one multiplication will do. The shift moves
 * the middle bits down, because uthash chooses the bucket by the low bits. */
#define HASH_FUNCTION(key, length, hash) do { \
	uint64_t key_; \
	memcpy(&key_, (key), sizeof(key_)); \
	(hash) = (unsigned)(key_ * 0x9e3779b97f4a7c15ull >> 32); \
} while (0)
#define HASH_KEYCMP(a, b, length) memcmp((a), (b), sizeof(uint64_t))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Was the element, which was given to HASH_ADD, really added? */
#define SS_HASH_HAS(e) ((e)->hh.tbl != NULL)

#endif

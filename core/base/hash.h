/* SPDX-License-Identifier: MIT */
/*
 * uthash, as all files of the preload must include it. By default uthash ends the program when host
 * memory is out. Here HASH_ADD adds nothing in that case, and SS_HASH_HAS tells whether it did.
 */
#ifndef SS_BASE_HASH_H
#define SS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SS_HASH_FACTOR 0x9e3779b97f4a7c15ull

/* Most keys are a pointer or a handle of eight bytes, so one multiplication will do. The shift
 * moves the middle bits down, because uthash chooses the bucket by the low bits. */
static inline __attribute__((always_inline)) unsigned ss_hash(const void *key, size_t length)
{
	const char *at = key;
	uint64_t hash = 0, word;

	for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = ((hash ^ hash >> 32) ^ word) * SS_HASH_FACTOR;
	}
	for (word = 0; length; length--)
		word = word << 8 | (unsigned char)*at++;
	return (unsigned)((word ? (hash ^ hash >> 32 ^ word) * SS_HASH_FACTOR : hash) >> 32);
}

#define HASH_FUNCTION(key, length, hash) ((hash) = ss_hash((key), (length)))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Was the element, which was given to HASH_ADD, really added? */
#define SS_HASH_HAS(e) ((e)->hh.tbl != NULL)

#endif

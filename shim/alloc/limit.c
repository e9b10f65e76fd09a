/* SPDX-License-Identifier: MIT */
/*
 * Device memory that the process takes outside our pools, under SOMASHIM_LIMIT. The table holds the
 * number of bytes of each pointer or handle, so that a free can take the bytes from the count.
 *
 * Locks: `lock`, for the table. A leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "shim/alloc/limit.h"
#include "shim/process/current_device.h"

struct taken {
	const void *key;
	int dev;
	uint64_t bytes;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct taken *table;

int ss_limit_device(int dev)
{
	if (dev < 0)
		dev = ss_current_device(NULL);
	return dev >= 0 && ss_pool_default(ss_core, dev) ? dev : -1;
}

bool ss_limit_begin(int dev, uint64_t bytes)
{
	return !bytes || dev < 0 || ss_limit_take(ss_core, dev, bytes);
}

hipError_t ss_limit_end(hipError_t err, int dev, uint64_t bytes)
{
	if (err != hipSuccess && bytes && dev >= 0)
		ss_limit_return(ss_core, dev, bytes);
	return err;
}

/* Takes the element of the key out of the table. NULL: there is none. Lock held. */
static struct taken *take_out(const void *key)
{
	struct taken *t;

	HASH_FIND_PTR(table, &key, t);
	if (t)
		HASH_DEL(table, t);
	return t;
}

void ss_limit_keep(const void *key, int dev, uint64_t bytes)
{
	struct taken *t = dev >= 0 ? calloc(1, sizeof(*t)) : NULL, *old = NULL;
	bool kept = false;

	if (t) {
		*t = (struct taken){.key = key, .dev = dev, .bytes = bytes};
		pthread_mutex_lock(&lock);
		old = take_out(key); /* freed by a call that we did not see */
		HASH_ADD_PTR(table, key, t);
		kept = SS_HASH_HAS(t);
		pthread_mutex_unlock(&lock);
	}
	/* Out of host memory the allocation cannot count, because its free would find no entry. */
	if (!kept) {
		free(t);
		ss_limit_end(hipErrorOutOfMemory, dev, bytes);
	}
	if (old)
		ss_limit_return(ss_core, old->dev, old->bytes);
	free(old);
}

void ss_limit_drop(const void *key)
{
	struct taken *t;

	if (likely(!ss_limited()))
		return;
	pthread_mutex_lock(&lock);
	t = take_out(key);
	pthread_mutex_unlock(&lock);
	if (t)
		ss_limit_return(ss_core, t->dev, t->bytes);
	free(t);
}

void ss_limit_reset(int dev)
{
	struct taken *t, *next;

	pthread_mutex_lock(&lock);
	HASH_ITER(hh, table, t, next)
		if (t->dev == dev) {
			HASH_DEL(table, t);
			free(t);
		}
	pthread_mutex_unlock(&lock);
}

/* ---- how large an array is ------------------------------------------------------ */

static uint64_t bytes_of(uint64_t element, size_t width, size_t height, size_t depth,
			 unsigned levels)
{
	uint64_t sum = 0, level;

	if (levels > 64)
		return 0;
	for (unsigned i = 0; i < (levels ? levels : 1); i++) {
		size_t w = width >> i, h = height >> i, d = depth >> i;

		if (__builtin_mul_overflow(element, w ? w : 1, &level) ||
		    __builtin_mul_overflow(level, h ? h : 1, &level) ||
		    __builtin_mul_overflow(level, d ? d : 1, &level) || level > UINT64_MAX / 128)
			return 0;
		sum += level;
	}
	return sum;
}

uint64_t ss_limit_array(const hipChannelFormatDesc *desc, size_t width, size_t height, size_t depth,
			unsigned levels)
{
	int bits = desc ? desc->x + desc->y + desc->z + desc->w : 0;

	return bits > 0 && bits <= 4 * 64 ?
		       bytes_of((uint64_t)bits / 8, width, height, depth, levels) :
		       0;
}

uint64_t ss_limit_driver_array(unsigned format, unsigned channels, size_t width, size_t height,
			       size_t depth, unsigned levels)
{
	uint64_t each;

	switch (format) {
	case HIP_AD_FORMAT_UNSIGNED_INT8:
	case HIP_AD_FORMAT_SIGNED_INT8: each = 1; break;
	case HIP_AD_FORMAT_UNSIGNED_INT16:
	case HIP_AD_FORMAT_SIGNED_INT16:
	case HIP_AD_FORMAT_HALF: each = 2; break;
	default: each = 4;
	}
	return channels <= 4 ? bytes_of(each * channels, width, height, depth, levels) : 0;
}

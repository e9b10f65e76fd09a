/* SPDX-License-Identifier: MIT */
/*
 * Counts memory outside of our pools.
 *
 * Locks: `lock`, for the table. A leaf.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "shim/process/outside.h"
#include "shim/process/current_device.h"
#include "shim/process/service.h"
#include "trace/writer.h"

struct outside {
	const void *key;
	int dev;
	enum ss_trace_outside_kind kind;
	uint64_t bytes;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct outside *table;
static _Atomic uint64_t sums[SS_MAX_DEVICES][SS_TRACE_OUTSIDE_KINDS];
static _Atomic uint64_t known; /* elements of the table */

static void forget(const struct outside *o)
{
	atomic_fetch_sub(&sums[o->dev][o->kind], o->bytes);
	atomic_fetch_sub(&known, 1);
	ss_trace_outside(o->kind | SS_TRACE_OUTSIDE_FREE, o->key, o->bytes, o->dev);
}

/* Takes the element of the key out of the table. NULL: there is none. Lock held. */
static struct outside *take_out(const void *key)
{
	struct outside *o;

	HASH_FIND_PTR(table, &key, o);
	if (o)
		HASH_DEL(table, o);
	return o;
}

static bool put(enum ss_trace_outside_kind kind, const void *key, int dev, uint64_t bytes)
{
	struct outside *o = calloc(1, sizeof(*o)), *old;
	bool kept;

	if (!o)
		return false; /* out of host memory it does not count */
	*o = (struct outside){.key = key, .dev = dev, .kind = kind, .bytes = bytes};
	pthread_mutex_lock(&lock);
	old = take_out(key); /* freed by a call that we did not see */
	HASH_ADD_PTR(table, key, o);
	kept = SS_HASH_HAS(o);
	pthread_mutex_unlock(&lock);
	if (old)
		forget(old);
	free(old);
	if (!kept) {
		free(o);
		return false;
	}
	atomic_fetch_add(&sums[dev][kind], bytes);
	atomic_fetch_add(&known, 1);
	return true;
}

void ss_outside_keep(enum ss_trace_outside_kind kind, const void *key, int dev, uint64_t bytes)
{
	if (dev < 0)
		dev = ss_current_device(NULL);
	if (!bytes || !key || dev < 0 || dev >= SS_MAX_DEVICES || !put(kind, key, dev, bytes))
		return;
	ss_trace_outside(kind, key, bytes, dev);
}

struct ss_outside_free ss_outside_free_begin(const void *key)
{
	struct ss_outside_free f = {.key = key};
	struct outside *o;

	if (!key || !atomic_load(&known))
		return f;
	pthread_mutex_lock(&lock);
	o = take_out(key);
	pthread_mutex_unlock(&lock);
	if (o) {
		f = (struct ss_outside_free){key, o->kind, o->dev, o->bytes};
		forget(o);
	}
	free(o);
	return f;
}

hipError_t ss_outside_free_end(const struct ss_outside_free *f, hipError_t err)
{
	if (err != hipSuccess && f->bytes)
		ss_outside_keep(f->kind, f->key, f->dev, f->bytes);
	return err;
}

uint64_t ss_outside_bytes(int dev, enum ss_trace_outside_kind kind)
{
	return dev >= 0 && dev < SS_MAX_DEVICES ? atomic_load(&sums[dev][kind]) : 0;
}

void ss_outside_reset(int dev)
{
	struct outside *o, *next, *gone = NULL;

	pthread_mutex_lock(&lock);
	HASH_ITER(hh, table, o, next) {
		if (o->dev == dev && o->kind != SS_TRACE_OUTSIDE_HOST) {
			HASH_DEL(table, o);
			o->hh.next = gone; /* the element is in no table */
			gone = o;
		}
	}
	pthread_mutex_unlock(&lock);
	for (; gone; gone = next) {
		next = gone->hh.next;
		forget(gone);
		free(gone);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Numbers of pools and streams: one table from handle and device to number, without a lock.
 * Entries are never removed.
 */
#include <string.h>

#include "trace/record.h"

#define PROBES 64u /* slots that are looked at before the table counts as full */
#define POOL_MAX 0xffffu
#define STREAM_MAX 0xffffffu

enum name_type { POOL = 1, STREAM = 2 };

/* Addresses have at most 57 bits, and devices are few. */
static uint64_t key_of(enum name_type type, const void *handle, int device)
{
	return ((uint64_t)(uintptr_t)handle * 2 + (type == POOL)) ^
	       (uint64_t)(uint8_t)(device + 1) << 56 ^ 1ull << 63;
}

/* The entry of the key. *is_new: the entry is new, and the caller sets its number. */
static struct ss_trace_name *find(struct ss_trace_live *live, uint64_t key, bool *is_new)
{
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40);

	*is_new = false;
	for (uint32_t n = 0; n < PROBES; n++, i++) {
		struct ss_trace_name *name = &live->names[i % SS_TRACE_NAMES];
		uint64_t there = atomic_load_explicit(&name->key, memory_order_relaxed);

		if (there == 0 && atomic_compare_exchange_strong(&name->key, &there, key)) {
			*is_new = true;
			return name;
		}
		if (there == key)
			return name;
	}
	return NULL;
}

/* A free number, or 0. */
static uint32_t take(_Atomic uint32_t *last, uint32_t max)
{
	uint32_t id = atomic_load_explicit(last, memory_order_relaxed);

	do {
		if (id >= max)
			return 0;
	} while (!atomic_compare_exchange_weak(last, &id, id + 1));
	return id + 1;
}

static void write_stream(struct ss_trace_context *c, uint32_t id, const void *stream, int device,
			 enum ss_trace_stream_kind kind)
{
	struct ss_trace_stream *r = ss_trace_begin(c, sizeof(*r));

	if (r) {
		r->id = id;
		r->device = (uint8_t)device;
		r->kind = (uint8_t)kind;
		r->handle = (uint64_t)(uintptr_t)stream;
		ss_trace_commit(c, r, SS_TRACE_STREAM, sizeof(*r), 0);
	}
}

static void write_pool(struct ss_trace_context *c, enum ss_trace_kind kind, uint32_t id,
		       const void *pool, int device, const char *name)
{
	struct ss_trace_pool *r = ss_trace_begin(c, sizeof(*r));

	if (r) {
		r->handle = (uint64_t)(uintptr_t)pool;
		r->device = (uint8_t)device;
		strncpy(r->name, name ? name : "", sizeof(r->name) - 1);
		ss_trace_commit(c, r, kind, sizeof(*r), id);
	}
}

uint32_t ss_trace_stream_id(struct ss_trace_context *c, const void *stream, int device)
{
	bool is_new;
	struct ss_trace_name *name = find(c->live, key_of(STREAM, stream, device), &is_new);

	if (!name)
		return 0;
	if (is_new) {
		uint32_t id = take(&c->live->streams, STREAM_MAX);
		atomic_store(&name->id, id);
		write_stream(c, id, stream, device,
			     stream ? SS_TRACE_STREAM_UNKNOWN : SS_TRACE_STREAM_NULL);
	}
	return atomic_load_explicit(&name->id, memory_order_relaxed);
}

uint32_t ss_trace_pool_id(struct ss_trace_context *c, const void *pool, int device)
{
	bool is_new;

	if (!pool)
		return 0;
	struct ss_trace_name *name = find(c->live, key_of(POOL, pool, device), &is_new);
	if (!name)
		return 0;
	if (is_new) {
		uint32_t id = take(&c->live->pools, POOL_MAX);
		atomic_store(&name->id, id);
		write_pool(c, SS_TRACE_POOL, id, pool, device, NULL);
	}
	return atomic_load_explicit(&name->id, memory_order_relaxed);
}

void ss_trace_define_stream(struct ss_trace_context *c, const void *stream, int device,
			    enum ss_trace_stream_kind kind)
{
	bool is_new;
	struct ss_trace_name *name = find(c->live, key_of(STREAM, stream, device), &is_new);

	if (name) {
		if (is_new)
			atomic_store(&name->id, take(&c->live->streams, STREAM_MAX));
		write_stream(c, atomic_load(&name->id), stream, device, kind);
	}
}

void ss_trace_define_pool(struct ss_trace_context *c, const void *pool, int device,
			  const char *name_text)
{
	bool is_new;
	struct ss_trace_name *name = find(c->live, key_of(POOL, pool, device), &is_new);
	uint32_t id = name ? take(&c->live->pools, POOL_MAX) : 0;

	if (id) {
		atomic_store(&name->id, id);
		write_pool(c, SS_TRACE_POOL_CREATE, id, pool, device, name_text);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * What a pointer is, so that nobody sees that blocks share a segment.
 *
 * Locks: sync_lock (blocks whose memory operations must be synchronous), numbers_lock
 * (the numbers that blocks were shown under); lookups are made under both. Otherwise leaves.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "shim/shim.h"

/* ---- SYNC_MEMOPS -------------------------------------------------------- */

/* The runtime keeps the flag per allocation of its own, which here is the whole
 * segment: there it must be set too, for the copies that it makes, while the rest
 * of the segment only gets slower. Ids are never used twice, so a freed block
 * needs no clearing; it is forgotten when twice as many are known as after the last time. */
static pthread_mutex_t sync_lock = PTHREAD_MUTEX_INITIALIZER;
static struct synced {
	uint64_t id;
	void *ptr;
	UT_hash_handle hh;
} *synced;
static unsigned synced_kept;
static _Atomic size_t sync_count;

bool ss_sync_memops(uint64_t id)
{
	struct synced *s;

	if (likely(!atomic_load_explicit(&sync_count, memory_order_relaxed)))
		return false;
	pthread_mutex_lock(&sync_lock);
	HASH_FIND(hh, synced, &id, sizeof(id), s);
	pthread_mutex_unlock(&sync_lock);
	return s != NULL;
}

static bool is_gone(void *ptr, uint64_t id)
{
	struct ss_block_info info;

	return !ss_lookup(ss_core, ptr, &info) || !info.live || info.id != id;
}

static void synced_sweep(void)
{
	struct synced *s, *next;

	HASH_ITER(hh, synced, s, next)
		if (is_gone(s->ptr, s->id)) {
			HASH_DEL(synced, s);
			free(s);
		}
	synced_kept = HASH_COUNT(synced);
}

static bool sync_memops_set(const struct ss_block_info *b, bool on)
{
	struct synced *s;
	bool ok = true;

	pthread_mutex_lock(&sync_lock);
	HASH_FIND(hh, synced, &b->id, sizeof(b->id), s);
	if (!on && s) {
		HASH_DEL(synced, s);
		free(s);
	} else if (on && !s) {
		if (HASH_COUNT(synced) >= 2 * synced_kept + 64)
			synced_sweep();
		s = malloc(sizeof(*s));
		ok = s != NULL;
		if (ok) {
			s->id = b->id;
			s->ptr = b->base;
			HASH_ADD(hh, synced, id, sizeof(s->id), s);
		}
	}
	atomic_store(&sync_count, HASH_COUNT(synced));
	pthread_mutex_unlock(&sync_lock);
	return ok;
}

/* ---- BUFFER_ID ---------------------------------------------------------- */

/* The attribute has 32 bits, too few for an id of ours: a block that is asked
 * about gets a number. Numbers are never used twice; those of freed blocks are
 * forgotten whenever twice as many are known as after the last time. */
static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct number {
	uint64_t id;
	void *ptr;
	unsigned value;
	UT_hash_handle hh;
} *numbers;
static unsigned numbers_kept;

/* Apart from the runtime's own, which count up from 1. */
unsigned ss_buffer_number(void)
{
	static atomic_uint last;

	return (atomic_fetch_add(&last, 1) + 1) | 1u << 31;
}

static void numbers_sweep(void)
{
	struct number *n, *next;

	HASH_ITER(hh, numbers, n, next)
		if (is_gone(n->ptr, n->id)) {
			HASH_DEL(numbers, n);
			free(n);
		}
	numbers_kept = HASH_COUNT(numbers);
}

/* 0: no host memory. */
static unsigned number_of(const struct ss_block_info *b)
{
	struct number *n;
	unsigned value = 0;

	pthread_mutex_lock(&numbers_lock);
	HASH_FIND(hh, numbers, &b->id, sizeof(b->id), n);
	if (!n) {
		if (HASH_COUNT(numbers) >= 2 * numbers_kept + 64)
			numbers_sweep();
		n = malloc(sizeof(*n));
		if (n) {
			n->id = b->id;
			n->ptr = b->base;
			n->value = ss_buffer_number();
			HASH_ADD(hh, numbers, id, sizeof(n->id), n);
		}
	}
	if (n)
		value = n->value;
	pthread_mutex_unlock(&numbers_lock);
	return value;
}

/* ---- one attribute ------------------------------------------------------ */

/* Since 6.0: Unregistered 0, Host 1, Device 2; before: Host 0, Device 1. */
static int type_device(void)
{
	return ss_runtime()->major < 6 ? 1 : 2;
}

/* Widths are those that the runtime writes, whatever the documentation says:
 * callers have variables of just that size (RANGE_SIZE into an unsigned int).
 * True: answered. */
static bool attribute(void *data, int attr, const struct ss_block_info *b, void *ptr)
{
	union { int i; unsigned u; bool b; void *p; uint64_t q; } v = {0};
	size_t size;

	switch (attr) {
	case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
		v.i = type_device();
		size = sizeof(v.i);
		break;
	case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
		v.p = ptr;
		size = sizeof(v.p);
		break;
	case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		v.b = ss_sync_memops(b->id);
		size = sizeof(v.b);
		break;
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
		v.u = number_of(b);
		if (!v.u)
			return false;
		size = sizeof(v.u);
		break;
	case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
		size = sizeof(v.b);
		break;
	case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		v.i = b->device;
		size = sizeof(v.i);
		break;
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		v.p = b->base;
		size = sizeof(v.p);
		break;
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
		/* 32 bits in the runtime; more where they do not hold it. */
		v.q = b->size;
		size = b->size >> 32 ? sizeof(v.q) : sizeof(v.u);
		break;
	case HIP_POINTER_ATTRIBUTE_MAPPED:
		v.b = true;
		size = sizeof(v.b);
		break;
	case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		size = sizeof(v.u);
		break;
	case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		if (b->classic)
			return false;
		v.p = ss_pool_handle(b->pool);
		size = sizeof(v.p);
		break;
	default:
		return false;
	}
	memcpy(data, &v, size);
	return true;
}

static bool lookup(const void *ptr, struct ss_block_info *info)
{
	return ptr && ss_lookup(ss_core, ptr, info);
}

/* A freed block is to a program what an address is that was never allocated. */
static char nobody;

hipError_t do_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *ptr)
{
	/* The same 32 bytes in every version; `type` was memoryType. */
	struct attributes {
		int type, device;
		void *device_pointer, *host_pointer;
		int managed;
		unsigned flags;
	} a = {0};
	struct ss_block_info info;
	hipError_t err;

	_Static_assert(sizeof(a) == sizeof(*out), "hipPointerAttribute_t");
	if (!out || !lookup(ptr, &info))
		return ss_said(REAL(hipPointerGetAttributes, out, ptr));
	if (!info.live) {
		err = REAL(hipPointerGetAttributes, out, &nobody);
		memcpy(&a, out, sizeof(a));
		if (err == hipSuccess && a.host_pointer == &nobody) {
			a.host_pointer = (void *)(uintptr_t)ptr;
			memcpy(out, &a, sizeof(a));
		}
		return ss_said(err);
	}
	a.type = type_device();
	a.device = info.device;
	a.device_pointer = (void *)(uintptr_t)ptr;
	memcpy(out, &a, sizeof(a));
	return ss_said(hipSuccess);
}

/* Of memory of another process: what would show that it lies in something larger. */
static bool imported(void *data, int attr, void *ptr)
{
	struct ss_block_info info = {0};
	unsigned number;

	if (!ptr || !ss_import_find(ptr, &info, &number))
		return false;
	switch (attr) {
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
		memcpy(data, &number, sizeof(number));
		return true;
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
		return attribute(data, attr, &info, ptr);
	default:
		return false;
	}
}

hipError_t do_hipPointerGetAttribute(void *data, hipPointer_attribute attr, hipDeviceptr_t ptr)
{
	struct ss_block_info info;

	if (!data || !lookup(ptr, &info)) {
		if (data && imported(data, (int)attr, ptr))
			return ss_said(hipSuccess);
		return ss_said(REAL(hipPointerGetAttribute, data, attr, ptr));
	}
	if (!info.live)
		return ss_said(REAL(hipPointerGetAttribute, data, attr, &nobody));
	if (attribute(data, (int)attr, &info, ptr))
		return ss_said(hipSuccess);
	return ss_said(REAL(hipPointerGetAttribute, data, attr, ptr));
}

/* Always success, in every version; a NULL in `data` crashes the real one. */
hipError_t do_hipDrvPointerGetAttributes(unsigned int count, hipPointer_attribute *attrs,
					 void **data, hipDeviceptr_t ptr)
{
	struct ss_block_info info;

	if (!count || !attrs || !data)
		return ss_said(REAL(hipDrvPointerGetAttributes, count, attrs, data, ptr));
	if (!lookup(ptr, &info)) {
		hipError_t err = REAL(hipDrvPointerGetAttributes, count, attrs, data, ptr);

		for (unsigned i = 0; i < count; i++)
			if (data[i])
				(void)imported(data[i], (int)attrs[i], ptr);
		return ss_said(err);
	}
	for (unsigned i = 0; i < count; i++) {
		if (!data[i])
			continue;
		if (!info.live || !attribute(data[i], (int)attrs[i], &info, ptr))
			(void)REAL(hipDrvPointerGetAttributes, 1, &attrs[i], &data[i],
				   info.live ? ptr : &nobody);
	}
	return ss_said(hipSuccess);
}

hipError_t do_hipPointerSetAttribute(const void *value, hipPointer_attribute attr,
				     hipDeviceptr_t ptr)
{
	struct ss_block_info info;
	bool on;

	if (!value || !lookup(ptr, &info))
		return ss_said(REAL(hipPointerSetAttribute, value, attr, ptr));
	if (!info.live || attr != HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return ss_said(REAL(hipPointerSetAttribute, value, attr, &nobody));
	on = *(const bool *)value;
	if (!sync_memops_set(&info, on))
		return ss_fail(hipErrorOutOfMemory);
	if (on || !atomic_load(&sync_count))
		return ss_said(REAL(hipPointerSetAttribute, value, attr, ptr));
	return ss_said(hipSuccess);
}

/* ---- ranges ------------------------------------------------------------- */

hipError_t do_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr)
{
	struct ss_block_info info;
	unsigned number;

	if (!lookup(ptr, &info)) {
		if (!ss_import_find(ptr, &info, &number))
			return ss_said(REAL(hipMemGetAddressRange, base, size, ptr));
		info.live = true;
	}
	if (!base || !size)
		return ss_fail(hipErrorInvalidValue);
	if (!info.live)
		return ss_fail(hipErrorNotFound);
	*base = info.base;
	*size = info.size;
	return ss_said(hipSuccess);
}

hipError_t do_hipMemPtrGetInfo(void *ptr, size_t *size)
{
	struct ss_block_info info;
	unsigned number;

	if (!lookup(ptr, &info)) {
		if (!size || !ss_import_find(ptr, &info, &number))
			return ss_said(REAL(hipMemPtrGetInfo, ptr, size));
		info.live = true;
	}
	if (!info.live || !size)
		return ss_fail(hipErrorInvalidValue);
	*size = info.size;
	return ss_said(hipSuccess);
}

/* SPDX-License-Identifier: MIT */
/* Answers queries about a pointer, so that a program does not see that blocks share a segment. No
 * lock. */
#include <string.h>

#include "driver/rocm/resolve.h"
#include "shim/alloc/block_attributes.h"
#include "shim/alloc/last_error.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/share/mappings.h"

/* ---- one attribute ------------------------------------------------------ */

/* Since 6.0 Unregistered is 0, Host 1, Device 2; before, Host was 0 and Device 1. */
static int type_device(void)
{
	return ss_runtime()->major < 6 ? 1 : 2;
}

static bool put(void *data, const void *value, size_t size)
{
	memcpy(data, value, size);
	return true;
}

#define PUT(type, value) put(data, &(type){value}, sizeof(type))

/* Answers one attribute of a block. Writes as many bytes as the runtime does, even against the
 * documentation, because callers have variables of exactly that size (RANGE_SIZE goes into an
 * unsigned int). False: the runtime has to answer. */
static bool attribute(void *data, int attr, const struct ss_block_info *b, void *ptr)
{
	unsigned id;

	switch (attr) {
	case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: return PUT(int, type_device());
	case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER: return PUT(void *, ptr);
	case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS: return PUT(bool, ss_sync_memops(b->id));
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID: /* 32 bits: too few for the block's id */
		id = ss_buffer_id(b);
		return id && PUT(unsigned, id);
	case HIP_POINTER_ATTRIBUTE_IS_MANAGED: return PUT(bool, false);
	case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return PUT(int, b->device);
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR: return PUT(void *, b->base);
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
		/* 32 bits as in the runtime, 64 if the size does not fit in 32. */
		return b->size >> 32 ? PUT(uint64_t, b->size) : PUT(unsigned, (unsigned)b->size);
	case HIP_POINTER_ATTRIBUTE_MAPPED: return PUT(bool, true);
	case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS: return PUT(unsigned, 0);
	case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return !b->classic && PUT(void *, ss_pool_handle(b->pool));
	default: return false;
	}
}

static bool lookup(const void *ptr, struct ss_block_info *info)
{
	if (!ptr || !ss_lookup(ss_core, ptr, info))
		return false;
	if (unlikely(ss_checking) && info->live)
		info->size = ss_check_asked(ptr, info->size);
	return true;
}

/* To a program a freed block is an address that was never allocated. The query is passed on with
 * the address of this variable instead, which the runtime does not know either. */
static char unallocated;

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
		return ss_result(REAL(hipPointerGetAttributes, out, ptr));
	if (!info.live) {
		err = REAL(hipPointerGetAttributes, out, &unallocated);
		memcpy(&a, out, sizeof(a));
		if (err == hipSuccess && a.host_pointer == &unallocated) {
			a.host_pointer = (void *)(uintptr_t)ptr;
			memcpy(out, &a, sizeof(a));
		}
		return ss_result(err);
	}
	a.type = type_device();
	a.device = info.device;
	a.device_pointer = (void *)(uintptr_t)ptr;
	memcpy(out, &a, sizeof(a));
	return ss_result(hipSuccess);
}

/* For memory of another process: answers the attributes that would show that the memory lies in a
 * larger allocation. False: the runtime has to answer. */
static bool imported(void *data, int attr, void *ptr)
{
	struct ss_block_info info = {0};
	unsigned buffer_id;

	if (!ptr || !ss_import_find(ptr, &info, &buffer_id))
		return false;
	switch (attr) {
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
		memcpy(data, &buffer_id, sizeof(buffer_id));
		return true;
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE: return attribute(data, attr, &info, ptr);
	default: return false;
	}
}

hipError_t do_hipPointerGetAttribute(void *data, hipPointer_attribute attr, hipDeviceptr_t ptr)
{
	struct ss_block_info info;

	if (!data || !lookup(ptr, &info)) {
		if (data && imported(data, (int)attr, ptr))
			return ss_result(hipSuccess);
		return ss_result(REAL(hipPointerGetAttribute, data, attr, ptr));
	}
	if (!info.live)
		return ss_result(REAL(hipPointerGetAttribute, data, attr, &unallocated));
	if (attribute(data, (int)attr, &info, ptr))
		return ss_result(hipSuccess);
	return ss_result(REAL(hipPointerGetAttribute, data, attr, ptr));
}

/* Every release returns success. The real call crashes for a NULL in `data`. */
hipError_t do_hipDrvPointerGetAttributes(unsigned int count, hipPointer_attribute *attrs,
					 void **data, hipDeviceptr_t ptr)
{
	struct ss_block_info info;

	if (!count || !attrs || !data)
		return ss_result(REAL(hipDrvPointerGetAttributes, count, attrs, data, ptr));
	if (!lookup(ptr, &info)) {
		hipError_t err = REAL(hipDrvPointerGetAttributes, count, attrs, data, ptr);

		for (unsigned i = 0; i < count; i++)
			if (data[i])
				(void)imported(data[i], (int)attrs[i], ptr);
		return ss_result(err);
	}
	for (unsigned i = 0; i < count; i++) {
		if (!data[i])
			continue;
		if (!info.live || !attribute(data[i], (int)attrs[i], &info, ptr))
			(void)REAL(hipDrvPointerGetAttributes, 1, &attrs[i], &data[i],
				   info.live ? ptr : &unallocated);
	}
	return ss_result(hipSuccess);
}

hipError_t do_hipPointerSetAttribute(const void *value, hipPointer_attribute attr,
				     hipDeviceptr_t ptr)
{
	struct ss_block_info info;
	bool on;

	if (!value || !lookup(ptr, &info))
		return ss_result(REAL(hipPointerSetAttribute, value, attr, ptr));
	if (!info.live || attr != HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return ss_result(REAL(hipPointerSetAttribute, value, attr, &unallocated));
	on = *(const bool *)value;
	if (!ss_sync_memops_set(&info, on))
		return ss_fail(hipErrorOutOfMemory);
	/* The runtime keeps the flag per allocation of its own, here the whole segment. The flag
	 * must be set in the runtime, too, for the runtime's copies; other blocks of the segment
	 * only get slower. */
	if (on || !ss_sync_memops_any())
		return ss_result(REAL(hipPointerSetAttribute, value, attr, ptr));
	return ss_result(hipSuccess);
}

/* ---- ranges ------------------------------------------------------------- */

/* Either output may be NULL, as since 7.13. Earlier releases write to the output all the same, so
 * they get a variable. */
hipError_t do_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr)
{
	hipDeviceptr_t unused_base;
	struct ss_block_info info;
	size_t unused_size;
	unsigned buffer_id;

	base = base ? base : &unused_base;
	size = size ? size : &unused_size;
	if (!lookup(ptr, &info)) {
		if (!ss_import_find(ptr, &info, &buffer_id))
			return ss_result(REAL(hipMemGetAddressRange, base, size, ptr));
		info.live = true;
	}
	if (!info.live)
		return ss_fail(hipErrorNotFound);
	*base = info.base;
	*size = info.size;
	return ss_result(hipSuccess);
}

hipError_t do_hipMemPtrGetInfo(void *ptr, size_t *size)
{
	struct ss_block_info info;
	unsigned buffer_id;

	if (!lookup(ptr, &info)) {
		if (!size || !ss_import_find(ptr, &info, &buffer_id))
			return ss_result(REAL(hipMemPtrGetInfo, ptr, size));
		info.live = true;
	}
	if (!info.live || !size)
		return ss_fail(hipErrorInvalidValue);
	*size = info.size;
	return ss_result(hipSuccess);
}

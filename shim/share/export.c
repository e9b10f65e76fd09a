/* SPDX-License-Identifier: MIT */
/*
 * Handles of our blocks for other processes (hipIpcGetMemHandle). A handle names a block and not
 * the block's segment. import.c opens handles; pool_pointer.c does the same for pools.
 *
 * Locks: handles_lock (the segments' real handles). Leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/observers.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/share/export.h"
#include "shim/share/mappings.h"

_Static_assert(sizeof(hipIpcMemHandle_t) == SS_HANDLE_BYTES, "hipIpcMemHandle_t");

/* There is one handle per segment. Since 6.4 each handle that the runtime makes costs a dma-buf
 * descriptor, and an importer must recognize two blocks of the same segment. */
struct real_handle {
	void *segment;
	uint64_t serial;
	hipIpcMemHandle_t handle;
	UT_hash_handle hh;
};

static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;
static struct real_handle *handles;

static bool cached(const struct ss_ipc_place *place, hipIpcMemHandle_t *out)
{
	struct real_handle *r;

	HASH_FIND_PTR(handles, &place->segment, r);
	if (!r || r->serial != place->serial)
		return false;
	*out = r->handle;
	return true;
}

static hipError_t segment_handle(const struct ss_ipc_place *place, hipIpcMemHandle_t *out)
{
	struct real_handle *r;
	hipError_t err;
	bool found;

	pthread_mutex_lock(&handles_lock);
	found = cached(place, out);
	pthread_mutex_unlock(&handles_lock);
	if (found)
		return hipSuccess;
	/* The runtime leaves unused bytes of the handle unwritten. */
	memset(out, 0, sizeof(*out));
	err = REAL(hipIpcGetMemHandle, out, place->segment);
	if (err != hipSuccess)
		return err;
	pthread_mutex_lock(&handles_lock);
	/* Two threads that asked at the same time must use the same handle. */
	if (!cached(place, out)) {
		HASH_FIND_PTR(handles, &place->segment, r);
		if (!r && (r = calloc(1, sizeof(*r)))) {
			r->segment = place->segment;
			HASH_ADD_PTR(handles, segment, r);
			if (!SS_HASH_HAS(r)) {
				free(r);
				r = NULL;
			}
		}
		if (r) {
			r->serial = place->serial;
			r->handle = *out;
		} else { /* the segment could not be found again by its handle */
			err = hipErrorOutOfMemory;
		}
	}
	pthread_mutex_unlock(&handles_lock);
	return err;
}

hipError_t ss_export_handle(const struct ss_ipc_place *place, struct ss_handle *h)
{
	hipIpcMemHandle_t real;
	struct ss_device_switch s;
	hipError_t err;

	if (!ss_device_switch(&s, place->device))
		return hipErrorInvalidDevice;
	err = segment_handle(place, &real);
	ss_device_restore(&s);
	memset(h, 0, sizeof(*h));
	memcpy(h->real, &real, sizeof(h->real));
	h->segment_size = place->segment_size;
	h->offset = place->offset;
	h->size = place->size;
	h->serial = ss_handle_serial(place->serial);
	return err;
}

void *ss_export_segment(const struct ss_handle *h, uint64_t *serial)
{
	struct real_handle *r, *next;
	void *segment = NULL;

	pthread_mutex_lock(&handles_lock);
	HASH_ITER(hh, handles, r, next)
		if (ss_handle_serial(r->serial) == h->serial &&
		    !memcmp(&r->handle, h->real, sizeof(h->real))) {
			segment = r->segment;
			*serial = r->serial;
		}
	pthread_mutex_unlock(&handles_lock);
	return segment;
}

hipError_t do_hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
	struct ss_ipc_place place;
	struct ss_handle h;
	enum ss_status s;
	hipError_t err;

	ss_observer_add(-1, SS_OBSERVER_IPC);
	if (!ptr || !handle)
		return ss_result(REAL(hipIpcGetMemHandle, handle, ptr));
	s = ss_ipc_find(ss_core, ptr, &place);
	if (s == SS_ERR_FOREIGN && !ss_import_inside(ptr))
		return ss_result(REAL(hipIpcGetMemHandle, handle, ptr));
	if (s != SS_OK && unlikely(ss_checking))
		ss_check_no_handle("hipIpcGetMemHandle", ptr);
	if (s != SS_OK)
		return ss_fail(hipErrorInvalidValue);
	err = ss_export_handle(&place, &h);
	if (err != hipSuccess)
		return ss_result(err);
	if (!ss_handle_pack(&h, handle)) {
		if (place.offset)
			return ss_fail(hipErrorInvalidValue);
		/* The layout of the handle is unknown. The handle of the base is right in any
		 * layout. */
		memcpy(handle, h.real, sizeof(*handle));
	}
	ss_ipc_export(ss_core, &place);
	return ss_result(hipSuccess);
}

/* The descriptor always means a whole allocation of the runtime, from its first byte on (7.2.4),
 * and importers take that allocation for the block. So only a block that starts its segment has a
 * descriptor. */
hipError_t do_hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t ptr, size_t size,
					     SS_RANGE_TYPE type, unsigned long long flags)
{
	struct ss_ipc_place place;
	enum ss_status s = ss_ipc_find(ss_core, ptr, &place);
	hipError_t err;

	ss_observer_add(-1, SS_OBSERVER_IPC);
	if (s != SS_OK && unlikely(ss_checking))
		ss_check_no_handle("hipMemGetHandleForAddressRange", ptr);
	if ((s != SS_OK || place.offset) && (s != SS_ERR_FOREIGN || ss_import_inside(ptr)))
		return ss_fail(hipErrorNotSupported);
	if (s == SS_OK && size > place.size - (size_t)((char *)ptr - (char *)place.segment))
		return ss_fail(hipErrorInvalidValue);
	err = REAL(hipMemGetHandleForAddressRange, handle, ptr, size, type, flags);
	if (err == hipSuccess && s == SS_OK)
		ss_ipc_export(ss_core, &place);
	return ss_result(err);
}

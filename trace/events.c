/* SPDX-License-Identifier: MIT */
/* Writes one record for each event of device memory. See writer.h. */
#include <errno.h>
#include <string.h>

#include "trace/process_info.h"
#include "trace/record.h"
#include "trace/stack.h"
#include "trace/writer.h"

/* Fills the fields that all events have. With `stack` the caller's stack is recorded, too. */
static void *event_begin(struct ss_trace_context *c, uint32_t size, const void *pool,
			 const void *stream, bool has_stream, int device, unsigned flags,
			 bool stack, uint32_t *pool_id)
{
	/* Definitions come first: one record is written at a time. */
	uint32_t stack_id = stack ? ss_trace_stack_id(c) : 0;
	uint32_t stream_id = has_stream ? ss_trace_stream_id(c, stream, device) : 0;

	*pool_id = ss_trace_pool_id(c, pool, device);
	struct ss_trace_event *e = ss_trace_begin(c, size);
	if (e) {
		e->stream_flags = SS_TRACE_PACK(stream_id, flags);
		e->stack_device = SS_TRACE_PACK(stack_id,
						device < 0 ? SS_TRACE_NO_DEVICE : (uint32_t)device);
	}
	return e;
}

static uint64_t pack_size(uint64_t size, uint64_t rounded)
{
	uint64_t least = (size + 255) & ~255ull;
	uint64_t more = rounded > least ? (rounded - least) / 256 : 0;

	return SS_TRACE_SIZE(size) | (more < 0xffff ? more : 0xffff) << 48;
}

void ss_trace_write_alloc(uint64_t when, const void *ptr, uint64_t size, uint64_t rounded,
			  int device, const void *pool, const void *stream, unsigned flags)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, when)) {
		struct ss_trace_alloc *r = event_begin(&c, sizeof(*r), pool, stream, true, device,
						       flags, true, &pool_id);
		if (r) {
			r->ptr = (uint64_t)(uintptr_t)ptr;
			r->size = pack_size(size, rounded);
			ss_trace_commit(&c, r, SS_TRACE_ALLOC, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_free(uint64_t when, const void *ptr, int device, const void *pool,
			 const void *stream, unsigned flags, bool stack)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, when)) {
		struct ss_trace_free *r = event_begin(&c, sizeof(*r), pool, stream, stack, device,
						      flags, stack, &pool_id);
		if (r) {
			r->ptr = (uint64_t)(uintptr_t)ptr;
			ss_trace_commit(&c, r, SS_TRACE_FREE, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_reusable(uint64_t when, const void *base, uint64_t size, int device,
			     const void *pool)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, when)) {
		uint32_t pool_id = ss_trace_pool_id(&c, pool, device);
		struct ss_trace_reusable *r = ss_trace_begin(&c, sizeof(*r));
		if (r) {
			r->base = (uint64_t)(uintptr_t)base;
			r->size = size;
			ss_trace_commit(&c, r, SS_TRACE_REUSABLE, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_segment(uint64_t when, enum ss_trace_kind kind, const void *base, uint64_t size,
			    int device, const void *pool, unsigned flags)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, when)) {
		struct ss_trace_segment *r = event_begin(&c, sizeof(*r), pool, NULL, false, device,
							 flags, true, &pool_id);
		if (r) {
			r->base = (uint64_t)(uintptr_t)base;
			r->size = size;
			ss_trace_commit(&c, r, kind, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_trim(enum ss_trace_trim_cause cause, uint64_t released, uint64_t kept,
			 int device, const void *pool)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_trim *r = event_begin(&c, sizeof(*r), pool, NULL, false, device,
						      cause, true, &pool_id);
		if (r) {
			r->released = released;
			r->kept = kept;
			ss_trace_commit(&c, r, SS_TRACE_TRIM, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_oom(enum ss_trace_kind kind, uint64_t size, uint64_t device_free,
			uint64_t reserved, uint64_t used, int device, const void *pool,
			const void *stream)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_oom *r = event_begin(&c, sizeof(*r), pool, stream, true, device, 0,
						     true, &pool_id);
		if (r) {
			r->size = size;
			r->device_free = device_free;
			r->reserved = reserved;
			r->used = used;
			ss_trace_commit(&c, r, kind, sizeof(*r), pool_id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_wait(enum ss_trace_wait_cause cause, uint64_t ns, int device,
			 const void *stream)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_wait *r = event_begin(&c, sizeof(*r), NULL, stream, device >= 0,
						      device, cause, true, &pool_id);
		if (r) {
			r->ns = ns;
			ss_trace_commit(&c, r, SS_TRACE_WAIT, sizeof(*r), 0);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_phase(enum ss_trace_phase_step step, uint64_t id, const char *text)
{
	size_t length = text ? strnlen(text, SS_TRACE_TEXT_MAX) : 0;
	uint32_t size = (uint32_t)(sizeof(struct ss_trace_phase) + (length + 7) / 8 * 8);
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_phase *r = event_begin(&c, size, NULL, NULL, false, -1, step, false,
						       &pool_id);
		if (r) {
			r->id = id;
			r->length = (uint32_t)length;
			memcpy(r->text, text ? text : "", length);
			ss_trace_commit(&c, r, SS_TRACE_PHASE, size, 0);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_outside(unsigned flags, const void *ptr, uint64_t size, int device)
{
	struct ss_trace_context c;
	uint32_t pool_id;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_outside *r = event_begin(&c, sizeof(*r), NULL, NULL, false, device,
							 flags, true, &pool_id);
		if (r) {
			r->ptr = (uint64_t)(uintptr_t)ptr;
			r->size = size;
			ss_trace_commit(&c, r, SS_TRACE_OUTSIDE, sizeof(*r), 0);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_info(enum ss_trace_info_key key, const char *text)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		ss_trace_info_text(&c, key, text, strlen(text));
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_device(int device, uint32_t pci_domain, unsigned bus, unsigned dev,
			   unsigned function, const uint8_t uuid[16], uint64_t total,
			   const char *name)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		struct ss_trace_device *r = ss_trace_begin(&c, sizeof(*r));
		if (r) {
			r->total = total;
			r->pci_domain = pci_domain;
			r->pci_bus = (uint8_t)bus;
			r->pci_device = (uint8_t)dev;
			r->pci_function = (uint8_t)function;
			r->device = (uint8_t)device;
			if (uuid)
				memcpy(r->uuid, uuid, sizeof(r->uuid));
			strncpy(r->name, name ? name : "", sizeof(r->name) - 1);
			ss_trace_commit(&c, r, SS_TRACE_DEVICE, sizeof(*r), 0);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_stream(const void *stream, int device, enum ss_trace_stream_kind kind)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		ss_trace_define_stream(&c, stream, device, kind);
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_pool_create(const void *pool, int device, const char *name)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		ss_trace_define_pool(&c, pool, device, name);
		ss_trace_leave(&c);
	}
	errno = err;
}

void ss_trace_write_pool_destroy(const void *pool, int device)
{
	struct ss_trace_context c;
	int err = errno;

	if (ss_trace_enter(&c, 0)) {
		uint32_t id = ss_trace_pool_id(&c, pool, device);
		struct ss_trace_pool *r = ss_trace_begin(&c, sizeof(*r));
		if (r) {
			r->handle = (uint64_t)(uintptr_t)pool;
			r->device = (uint8_t)device;
			ss_trace_commit(&c, r, SS_TRACE_POOL_DESTROY, sizeof(*r), id);
		}
		ss_trace_leave(&c);
	}
	errno = err;
}

/* SPDX-License-Identifier: MIT */
/*
 * hipMemset and its kin, checked against blocks. The runtime does hipMemset asynchronously at the
 * start of one of its own allocations and makes the host wait at any other address
 * (hip_memory.cpp), which includes nearly every block of a segment. So for a block, ours or
 * imported, the shim makes the asynchronous call instead, on the same stream. No lock.
 */
#include <stdint.h>

#include "shim/alloc/block_attributes.h"
#include "shim/alloc/last_error.h"
#include "shim/bounds/check.h"
#include "shim/bounds/row_fill.h"
#include "shim/handlers.h"
#include "shim/process/real.h"

#define ROWS(p, w, h) ((struct ss_check_rows){.width = (w), .pitch = (p), .rows = (h), .slices = 1})

enum verdict { REAL_CALL, ASYNC_CALL, BAD_RANGE };

static enum verdict judge(const void *dst, size_t bytes)
{
	struct ss_block_info info;
	unsigned buffer_id;
	size_t at;

	/* While a stream captures, the runtime decides whether a call that waits is legal (906). */
	if (!dst || !bytes || ss_capture_live())
		return REAL_CALL;
	if (ss_lookup(ss_core, dst, &info)) {
		if (!info.live)
			return BAD_RANGE;
		if (ss_sync_memops(info.id))
			return REAL_CALL;
	} else if (!ss_import_find(dst, &info, &buffer_id)) {
		return ss_exceeds(dst, bytes) ? BAD_RANGE : REAL_CALL;
	}
	at = (size_t)((const char *)dst - (const char *)info.base);
	/* dst may lie in the bytes that a block has beyond its requested size. */
	if (at > info.size || bytes > info.size - at)
		return BAD_RANGE;
	return ASYNC_CALL;
}

/* Memsets in rows that the runtime cannot do go to row_fill.c. */
#define RETURN_ROW_FILL(sync, stream, ...) do { \
	const struct ss_row_fill r_ = {__VA_ARGS__}; \
	if (unlikely(ss_checking)) \
		ss_check_value_set(r_.dst, (unsigned)r_.value, (unsigned)r_.element); \
	if (ss_row_fill_needed(&r_, sync)) \
		return ss_row_fill(&r_, stream); \
} while (0)

#define RETURN_ROWS(bytes, rows, dst, stream, call) do { \
	const struct ss_check_rows rows_ = rows; \
	if (ss_rows_exceed_on(stream, SS_WRITES, dst, bytes, &rows_)) \
		return ss_fail(hipErrorInvalidValue); \
	ss_stream_used(stream); \
	return ss_result(call); \
} while (0)

hipError_t do_hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
			       hipStream_t stream)
{
	RETURN_ROW_FILL(false, stream, dst, pitch, height, 1, 1, value, width, height);
	RETURN_ROWS(ss_rows_bytes(pitch, width, height), ROWS(pitch, width, height), dst, stream,
		    REAL(hipMemset2DAsync, dst, pitch, value, width, height, stream));
}

hipError_t do_hipMemset2DAsync_spt(void *dst, size_t pitch, int value, size_t width, size_t height,
				   hipStream_t stream)
{
	RETURN_ROW_FILL(false, ss_spt_stream(stream), dst, pitch, height, 1, 1, value, width,
			height);
	RETURN_ROWS(ss_rows_bytes(pitch, width, height), ROWS(pitch, width, height), dst,
		    ss_spt_stream(stream),
		    REAL(hipMemset2DAsync_spt, dst, pitch, value, width, height, stream));
}

#define RETURN_MEMSET(bytes, rows, dst, sync, async, stream, ...) do { \
	const struct ss_check_rows rows_ = rows; \
	enum verdict v_ = judge(dst, bytes); \
	ss_stream_used(stream); \
	if (unlikely(ss_checking) && !ss_check_access(ss_stream_or_null(stream), SS_WRITES, dst, bytes, &rows_)) \
		v_ = BAD_RANGE; \
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)) && dst) \
		ss_stream_touch(stream, dst); \
	if (v_ == BAD_RANGE) \
		return ss_fail(hipErrorInvalidValue); \
	if (v_ == ASYNC_CALL && ss_real.async) \
		return ss_result(REAL(async, __VA_ARGS__, stream)); \
	struct ss_waiting waits_ = ss_stream_copies(stream); \
	hipError_t err_ = REAL(sync, __VA_ARGS__); \
	ss_waiting_end(ss_core, &waits_); \
	return ss_result(err_); \
} while (0)

#define VALUE_SET(element) do { \
	if (unlikely(ss_checking)) \
		ss_check_value_set(dst, (uint64_t)value, element); \
} while (0)

hipError_t do_hipMemset(void *dst, int value, size_t size)
{
	VALUE_SET(1);
	RETURN_MEMSET(size, ROWS(0, size, 1), dst, hipMemset, hipMemsetAsync, NULL, dst, value,
		      size);
}

hipError_t do_hipMemset_spt(void *dst, int value, size_t size)
{
	VALUE_SET(1);
	RETURN_MEMSET(size, ROWS(0, size, 1), dst, hipMemset_spt, hipMemsetAsync, SS_PER_THREAD,
		      dst, value, size);
}

hipError_t do_hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count)
{
	VALUE_SET(1);
	RETURN_MEMSET(count, ROWS(0, count, 1), dst, hipMemsetD8, hipMemsetD8Async, NULL, dst,
		      value, count);
}

hipError_t do_hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count)
{
	VALUE_SET(2);
	RETURN_MEMSET(ss_times(count, 2), ROWS(0, ss_times(count, 2), 1), dst, hipMemsetD16,
		      hipMemsetD16Async, NULL, dst, value, count);
}

hipError_t do_hipMemsetD32(hipDeviceptr_t dst, int value, size_t count)
{
	VALUE_SET(4);
	RETURN_MEMSET(ss_times(count, 4), ROWS(0, ss_times(count, 4), 1), dst, hipMemsetD32,
		      hipMemsetD32Async, NULL, dst, value, count);
}

hipError_t do_hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	RETURN_ROW_FILL(true, NULL, dst, pitch, height, 1, 1, value, width, height);
	RETURN_MEMSET(ss_rows_bytes(pitch, width, height), ROWS(pitch, width, height), dst,
		      hipMemset2D, hipMemset2DAsync, NULL, dst, pitch, value, width, height);
}

hipError_t do_hipMemset2D_spt(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	RETURN_ROW_FILL(true, SS_PER_THREAD, dst, pitch, height, 1, 1, value, width, height);
	RETURN_MEMSET(ss_rows_bytes(pitch, width, height), ROWS(pitch, width, height), dst,
		      hipMemset2D_spt, hipMemset2DAsync, SS_PER_THREAD, dst, pitch, value, width,
		      height);
}

/* The same for the box of hipMemset3D. */
#define RETURN_BOX_FILL(sync, stream) \
	RETURN_ROW_FILL(sync, stream, dst.ptr, dst.pitch, dst.ysize ? dst.ysize : box.height, \
			box.depth, 1, value, box.width, box.height)
#define BOX_BYTES ss_box_bytes(&dst, &(struct hipPos){0, 0, 0}, &box)
#define BOX_ROWS ss_box_rows(&dst, &(struct hipPos){0, 0, 0}, &box)

hipError_t do_hipMemset3DAsync(hipPitchedPtr dst, int value, hipExtent box, hipStream_t stream)
{
	RETURN_BOX_FILL(false, stream);
	RETURN_ROWS(BOX_BYTES, BOX_ROWS, dst.ptr, stream,
		    REAL(hipMemset3DAsync, dst, value, box, stream));
}

hipError_t do_hipMemset3DAsync_spt(hipPitchedPtr dst, int value, hipExtent box, hipStream_t stream)
{
	RETURN_BOX_FILL(false, ss_spt_stream(stream));
	RETURN_ROWS(BOX_BYTES, BOX_ROWS, dst.ptr, ss_spt_stream(stream),
		    REAL(hipMemset3DAsync_spt, dst, value, box, stream));
}

hipError_t do_hipMemset3D(hipPitchedPtr dst, int value, hipExtent box)
{
	RETURN_BOX_FILL(true, NULL);
	RETURN_MEMSET(BOX_BYTES, BOX_ROWS, dst.ptr, hipMemset3D, hipMemset3DAsync, NULL, dst, value,
		      box);
}

hipError_t do_hipMemset3D_spt(hipPitchedPtr dst, int value, hipExtent box)
{
	RETURN_BOX_FILL(true, SS_PER_THREAD);
	RETURN_MEMSET(BOX_BYTES, BOX_ROWS, dst.ptr, hipMemset3D_spt, hipMemset3DAsync,
		      SS_PER_THREAD, dst, value, box);
}

/* hipMemsetD2D8, D16 and D32 take the width in bytes, against HIP's documentation, and set at least
 * one element in each row (7.2.4, fillBuffer2D in rocblit.cpp). */
static size_t at_least(size_t width, size_t element)
{
	return width && width < element ? element : width;
}

#define MEMSET_D2D(name, async, type, element) \
	hipError_t do_##name(hipDeviceptr_t dst, size_t pitch, type value, size_t width, \
			     size_t height) \
	{ \
		RETURN_ROW_FILL(true, NULL, dst, pitch, height, 1, element, (int)value, \
				at_least(width, element) / element, height); \
		RETURN_MEMSET(ss_rows_bytes(pitch, at_least(width, element), height), \
			      ROWS(pitch, at_least(width, element), height), dst, name, async, NULL, \
			      dst, pitch, value, width, height); \
	} \
	hipError_t do_##async(hipDeviceptr_t dst, size_t pitch, type value, size_t width, \
			     size_t height, hipStream_t stream) \
	{ \
		RETURN_ROW_FILL(false, stream, dst, pitch, height, 1, element, (int)value, \
				at_least(width, element) / element, height); \
		RETURN_ROWS(ss_rows_bytes(pitch, at_least(width, element), height), \
			ROWS(pitch, at_least(width, element), height), dst, stream, \
			REAL(async, dst, pitch, value, width, height, stream)); \
	}
MEMSET_D2D(hipMemsetD2D8, hipMemsetD2D8Async, unsigned char, 1)
MEMSET_D2D(hipMemsetD2D16, hipMemsetD2D16Async, unsigned short, 2)
MEMSET_D2D(hipMemsetD2D32, hipMemsetD2D32Async, unsigned int, 4)

/* SPDX-License-Identifier: MIT */
/*
 * What is written in rows, and hipMemset of a block: bounds first. The runtime knows those of
 * segments, so the block's are checked in its place.
 *
 * The runtime does hipMemset asynchronously at the start of an
 * allocation of its own and makes the host wait anywhere else (hip_memory.cpp),
 * that is for nearly every block of a segment. So the asynchronous call is made
 * in its place, on the same stream. So too for a block of another process.
 */
#include <stdint.h>

#include "shim/shim.h"

enum verdict { REAL_CALL, ASYNC_CALL, BAD_RANGE };

static enum verdict judge(const void *dst, size_t bytes)
{
	struct ss_block_info info;
	unsigned number;
	size_t at;

	/* Beside a capture the runtime has its own say (906). */
	if (!dst || !bytes || ss_capture_live())
		return REAL_CALL;
	if (ss_lookup(ss_core, dst, &info)) {
		if (!info.live)
			return BAD_RANGE;
		if (ss_sync_memops(info.id))
			return REAL_CALL;
	} else if (!ss_import_find(dst, &info, &number)) {
		return ss_exceeds(dst, bytes) ? BAD_RANGE : REAL_CALL;
	}
	at = (size_t)((const char *)dst - (const char *)info.base);
	/* A block is longer than what was asked for: dst may lie behind that. */
	if (at > info.size || bytes > info.size - at)
		return BAD_RANGE;
	return ASYNC_CALL;
}

static size_t times(size_t a, size_t b)
{
	size_t n;

	return __builtin_mul_overflow(a, b, &n) ? SIZE_MAX : n;
}

size_t ss_rows_bytes(size_t pitch, size_t width, size_t rows)
{
	size_t n;

	if (!width || !rows)
		return 0;
	return __builtin_add_overflow(times(pitch, rows - 1), width, &n) ? SIZE_MAX : n;
}

/* What the runtime refuses anywhere but at the start of raw memory. */
#define RAW_ROWS(sync, stream, ...) do { \
	const struct ss_row_fill r_ = {__VA_ARGS__}; \
	if (ss_row_fill_needed(r_.dst, sync)) \
		return ss_row_fill(&r_, stream); \
} while (0)

#define IN_ROWS(bytes, dst, stream, call) do { \
	if (ss_exceeds_on(stream, dst, bytes)) \
		return ss_fail(hipErrorInvalidValue); \
	ss_stream_used(stream); \
	return ss_result(call); \
} while (0)

hipError_t do_hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
			       hipStream_t stream)
{
	RAW_ROWS(false, stream, dst, pitch, height, 1, 1, value, width, height);
	IN_ROWS(ss_rows_bytes(pitch, width, height), dst, stream,
		REAL(hipMemset2DAsync, dst, pitch, value, width, height, stream));
}

hipError_t do_hipMemset2DAsync_spt(void *dst, size_t pitch, int value, size_t width,
				   size_t height, hipStream_t stream)
{
	RAW_ROWS(false, ss_spt_stream(stream), dst, pitch, height, 1, 1, value, width, height);
	IN_ROWS(ss_rows_bytes(pitch, width, height), dst, ss_spt_stream(stream),
		REAL(hipMemset2DAsync_spt, dst, pitch, value, width, height, stream));
}

#define COPY_2D(stream, name, ...) do { \
	if (ss_exceeds_on(stream, src, ss_rows_bytes(spitch, width, height))) \
		return ss_fail(hipErrorInvalidValue); \
	IN_ROWS(ss_rows_bytes(dpitch, width, height), dst, stream, REAL(name, __VA_ARGS__)); \
} while (0)

hipError_t do_hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, hipMemcpyKind kind)
{
	COPY_2D(NULL, hipMemcpy2D, dst, dpitch, src, spitch, width, height, kind);
}

hipError_t do_hipMemcpy2D_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, hipMemcpyKind kind)
{
	COPY_2D(SS_PER_THREAD, hipMemcpy2D_spt, dst, dpitch, src, spitch, width, height, kind);
}

hipError_t do_hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			       size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)
{
	COPY_2D(stream, hipMemcpy2DAsync, dst, dpitch, src, spitch, width, height, kind, stream);
}

hipError_t do_hipMemcpy2DAsync_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height, hipMemcpyKind kind,
				   hipStream_t stream)
{
	COPY_2D(ss_spt_stream(stream), hipMemcpy2DAsync_spt, dst, dpitch, src, spitch, width, height,
		kind, stream);
}

#define MEMSET(bytes, dst, sync, async, stream, ...) do { \
	enum verdict v_ = judge(dst, bytes); \
	ss_stream_used(stream); \
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)) && dst) \
		ss_stream_touch(stream, dst); \
	if (v_ == BAD_RANGE) \
		return ss_fail(hipErrorInvalidValue); \
	if (v_ == ASYNC_CALL && ss_real.async) \
		return ss_result(REAL(async, __VA_ARGS__, stream)); \
	return ss_result(REAL(sync, __VA_ARGS__)); \
} while (0)

hipError_t do_hipMemset(void *dst, int value, size_t size)
{
	MEMSET(size, dst, hipMemset, hipMemsetAsync, NULL, dst, value, size);
}

hipError_t do_hipMemset_spt(void *dst, int value, size_t size)
{
	MEMSET(size, dst, hipMemset_spt, hipMemsetAsync, SS_PER_THREAD, dst, value, size);
}

hipError_t do_hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count)
{
	MEMSET(count, dst, hipMemsetD8, hipMemsetD8Async, NULL, dst, value, count);
}

hipError_t do_hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count)
{
	MEMSET(times(count, 2), dst, hipMemsetD16, hipMemsetD16Async, NULL, dst, value, count);
}

hipError_t do_hipMemsetD32(hipDeviceptr_t dst, int value, size_t count)
{
	MEMSET(times(count, 4), dst, hipMemsetD32, hipMemsetD32Async, NULL, dst, value, count);
}

hipError_t do_hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	RAW_ROWS(true, NULL, dst, pitch, height, 1, 1, value, width, height);
	MEMSET(ss_rows_bytes(pitch, width, height), dst, hipMemset2D, hipMemset2DAsync, NULL, dst,
	       pitch, value, width, height);
}

hipError_t do_hipMemset2D_spt(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	RAW_ROWS(true, SS_PER_THREAD, dst, pitch, height, 1, 1, value, width, height);
	MEMSET(ss_rows_bytes(pitch, width, height), dst, hipMemset2D_spt, hipMemset2DAsync,
	       SS_PER_THREAD, dst, pitch, value, width, height);
}

static size_t volume(const hipPitchedPtr *p, const hipExtent *e)
{
	size_t rows;

	if (!e->depth)
		return 0;
	if (__builtin_add_overflow(times(p->ysize, e->depth - 1), e->height, &rows))
		return SIZE_MAX;
	return ss_rows_bytes(p->pitch, e->width, rows);
}

size_t ss_box_bytes(const hipPitchedPtr *p, const struct hipPos *at, const hipExtent *box)
{
	size_t row, rows;

	if (!box->width || !box->height || !box->depth)
		return 0;
	if (__builtin_add_overflow(at->z, box->depth - 1, &rows) ||
	    __builtin_add_overflow(times(p->ysize, rows), at->y, &rows) ||
	    __builtin_add_overflow(rows, box->height, &rows) ||
	    __builtin_add_overflow(at->x, box->width, &row))
		return SIZE_MAX;
	return ss_rows_bytes(p->pitch, row, rows);
}

bool ss_range_exceeds(hipStream_t stream, const void *ptr, size_t size)
{
	ss_stream_used(stream);
	return ss_exceeds_on(stream, ptr, size);
}

size_t ss_array_element(hipArray_const_t array)
{
	hipChannelFormatDesc d;

	return REAL(hipGetChannelDesc, &d, array) == hipSuccess ? (size_t)(d.x + d.y + d.z + d.w) / 8 : 0;
}

bool ss_box_exceeds(const hipMemcpy3DParms *p, hipStream_t stream)
{
	hipExtent box;

	ss_stream_used(stream);
	if (!p || (p->srcArray && p->dstArray))
		return false;
	box = p->extent;
	/* Beside an array the width counts its elements. */
	if (p->srcArray || p->dstArray)
		box.width = times(box.width, ss_array_element(p->srcArray ? p->srcArray : p->dstArray));
	return (!p->srcArray && ss_exceeds_on(stream, p->srcPtr.ptr, ss_box_bytes(&p->srcPtr, &p->srcPos, &box))) ||
	       (!p->dstArray && ss_exceeds_on(stream, p->dstPtr.ptr, ss_box_bytes(&p->dstPtr, &p->dstPos, &box)));
}

/* For a node the runtime also looks whether all rows, with their pitch and wherever they begin,
 * are more than the whole allocation; for a single row, too. */
bool ss_memset_exceeds(const hipMemsetParams *p)
{
	struct ss_block_info info;
	unsigned number;

	return p && (ss_exceeds(p->dst, ss_rows_bytes(p->pitch, times(p->width, p->elementSize), p->height)) ||
		     ((ss_lookup(ss_core, p->dst, &info) || ss_import_find(p->dst, &info, &number)) &&
		      times(p->pitch, p->height) > info.size));
}

hipError_t do_hipMemset3DAsync(hipPitchedPtr dst, int value, hipExtent box, hipStream_t stream)
{
	RAW_ROWS(false, stream, dst.ptr, dst.pitch, dst.ysize, box.depth, 1, value, box.width, box.height);
	IN_ROWS(volume(&dst, &box), dst.ptr, stream,
		REAL(hipMemset3DAsync, dst, value, box, stream));
}

hipError_t do_hipMemset3DAsync_spt(hipPitchedPtr dst, int value, hipExtent box,
				   hipStream_t stream)
{
	RAW_ROWS(false, ss_spt_stream(stream), dst.ptr, dst.pitch, dst.ysize, box.depth, 1, value, box.width, box.height);
	IN_ROWS(volume(&dst, &box), dst.ptr, ss_spt_stream(stream),
		REAL(hipMemset3DAsync_spt, dst, value, box, stream));
}

hipError_t do_hipMemset3D(hipPitchedPtr dst, int value, hipExtent box)
{
	RAW_ROWS(true, NULL, dst.ptr, dst.pitch, dst.ysize, box.depth, 1, value, box.width, box.height);
	MEMSET(volume(&dst, &box), dst.ptr, hipMemset3D, hipMemset3DAsync, NULL, dst, value, box);
}

hipError_t do_hipMemset3D_spt(hipPitchedPtr dst, int value, hipExtent box)
{
	RAW_ROWS(true, SS_PER_THREAD, dst.ptr, dst.pitch, dst.ysize, box.depth, 1, value, box.width, box.height);
	MEMSET(volume(&dst, &box), dst.ptr, hipMemset3D_spt, hipMemset3DAsync, SS_PER_THREAD, dst,
	       value, box);
}

hipError_t do_hipMemsetD2D8(hipDeviceptr_t dst, size_t pitch, unsigned char value, size_t width,
			    size_t height)
{
	RAW_ROWS(true, NULL, dst, pitch, height, 1, 1, (int)value, width, height);
	MEMSET(ss_rows_bytes(pitch, width, height), dst, hipMemsetD2D8, hipMemsetD2D8Async, NULL, dst,
	       pitch, value, width, height);
}

hipError_t do_hipMemsetD2D16(hipDeviceptr_t dst, size_t pitch, unsigned short value, size_t width,
			     size_t height)
{
	RAW_ROWS(true, NULL, dst, pitch, height, 1, 2, (int)value, width, height);
	MEMSET(ss_rows_bytes(pitch, times(width, 2), height), dst, hipMemsetD2D16, hipMemsetD2D16Async,
	       NULL, dst, pitch, value, width, height);
}

hipError_t do_hipMemsetD2D32(hipDeviceptr_t dst, size_t pitch, unsigned int value, size_t width,
			     size_t height)
{
	RAW_ROWS(true, NULL, dst, pitch, height, 1, 4, (int)value, width, height);
	MEMSET(ss_rows_bytes(pitch, times(width, 4), height), dst, hipMemsetD2D32, hipMemsetD2D32Async,
	       NULL, dst, pitch, value, width, height);
}

#define MEMSET_D2D_ASYNC(name, type, element) \
	hipError_t do_##name(hipDeviceptr_t dst, size_t pitch, type value, size_t width, \
			     size_t height, hipStream_t stream) \
	{ \
		RAW_ROWS(false, stream, dst, pitch, height, 1, element, (int)value, width, height); \
		IN_ROWS(ss_rows_bytes(pitch, times(width, element), height), dst, stream, \
			REAL(name, dst, pitch, value, width, height, stream)); \
	}
MEMSET_D2D_ASYNC(hipMemsetD2D8Async, unsigned char, 1)
MEMSET_D2D_ASYNC(hipMemsetD2D16Async, unsigned short, 2)
MEMSET_D2D_ASYNC(hipMemsetD2D32Async, unsigned int, 4)

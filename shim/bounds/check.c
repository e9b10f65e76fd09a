/* SPDX-License-Identifier: MIT */
/*
 * Checks ranges, rows and boxes against blocks. The runtime refuses accesses that leave an
 * allocation of its own, but knows only our segments, so this file checks blocks instead. Sizes
 * that overflow count as SIZE_MAX, which no block has. No lock.
 */
#include <stdint.h>

#include "shim/bounds/check.h"
#include "shim/process/real.h"

size_t ss_times(size_t a, size_t b)
{
	size_t n;

	return __builtin_mul_overflow(a, b, &n) ? SIZE_MAX : n;
}

size_t ss_rows_bytes(size_t pitch, size_t width, size_t rows)
{
	size_t n;

	if (!width || !rows)
		return 0;
	return __builtin_add_overflow(ss_times(pitch, rows - 1), width, &n) ? SIZE_MAX : n;
}

size_t ss_box_bytes(const hipPitchedPtr *p, const struct hipPos *at, const hipExtent *box)
{
	size_t pitch = p->pitch ? p->pitch : box->width, slice = p->ysize ? p->ysize : box->height;
	size_t row, rows;

	if (!box->width || !box->height || !box->depth)
		return 0;
	if (__builtin_add_overflow(at->z, box->depth - 1, &rows) ||
	    __builtin_add_overflow(ss_times(slice, rows), at->y, &rows) ||
	    __builtin_add_overflow(rows, box->height, &rows) ||
	    __builtin_add_overflow(at->x, box->width, &row))
		return SIZE_MAX;
	return ss_rows_bytes(pitch, row, rows);
}

bool ss_range_exceeds(hipStream_t stream, enum ss_access access, const void *ptr, size_t size)
{
	ss_stream_used(stream);
	return ss_exceeds_on(stream, access, ptr, size);
}

bool ss_rows_exceed(hipStream_t stream, enum ss_access access, const void *ptr, size_t pitch,
		    size_t width, size_t rows)
{
	const struct ss_check_rows r = {.width = width, .pitch = pitch, .rows = rows, .slices = 1};

	ss_stream_used(stream);
	return ss_rows_exceed_on(stream, access, ptr, ss_rows_bytes(pitch, width, rows), &r);
}

struct ss_check_rows ss_box_rows(const hipPitchedPtr *p, const struct hipPos *at,
				 const hipExtent *box)
{
	size_t pitch = p->pitch ? p->pitch : box->width, slice = p->ysize ? p->ysize : box->height;

	return (struct ss_check_rows){
		.offset = (at->z * slice + at->y) * pitch + at->x,
		.width = box->width,
		.pitch = pitch,
		.rows = box->height,
		.slice = slice * pitch,
		.slices = box->depth,
	};
}

bool ss_pitched_exceeds(hipStream_t stream, enum ss_access access, const hipPitchedPtr *p,
			const struct hipPos *at, const hipExtent *box)
{
	const struct ss_check_rows rows = ss_box_rows(p, at, box);

	return ss_rows_exceed_on(stream, access, p->ptr, ss_box_bytes(p, at, box), &rows);
}

/* A copy between boxes of pitched memory. */
static void tell_source(const hipMemcpy3DParms *p, const hipExtent *box)
{
	struct ss_check_rows from = ss_box_rows(&p->srcPtr, &p->srcPos, box);
	struct ss_check_rows to = ss_box_rows(&p->dstPtr, &p->dstPos, box);

	ss_check_source((char *)p->dstPtr.ptr + to.offset, (char *)p->srcPtr.ptr + from.offset,
			from.pitch == to.pitch && from.slice == to.slice);
}

size_t ss_array_element(hipArray_const_t array)
{
	hipChannelFormatDesc d;

	if (REAL(hipGetChannelDesc, &d, array) != hipSuccess)
		return 0;
	return (size_t)(d.x + d.y + d.z + d.w) / 8;
}

bool ss_box_exceeds_as(const hipMemcpy3DParms *p, hipStream_t stream, enum ss_access source)
{
	hipArray_t array;
	hipExtent box;

	ss_stream_used(stream);
	if (!p || (p->srcArray && p->dstArray))
		return false;
	box = p->extent;
	array = p->srcArray ? p->srcArray : p->dstArray;
	/* In a copy from or to an array the width counts elements. */
	if (array)
		box.width = ss_times(box.width, ss_array_element(array));
	if (unlikely(ss_checking) && !array)
		tell_source(p, &box);
	return (!p->dstArray &&
		ss_pitched_exceeds(stream, SS_WRITES, &p->dstPtr, &p->dstPos, &box)) ||
	       (!p->srcArray && ss_pitched_exceeds(stream, source, &p->srcPtr, &p->srcPos, &box));
}

bool ss_box_exceeds(const hipMemcpy3DParms *p, hipStream_t stream)
{
	return ss_box_exceeds_as(p, stream, SS_READS);
}

/* For a graph node the runtime also refuses a memset whose rows, each counted as one pitch, have
 * more bytes than the whole allocation. The runtime ignores the start of the rows, and refuses even
 * a single row. */
bool ss_memset_exceeds(const hipMemsetParams *p)
{
	struct ss_block_info info;
	unsigned buffer_id;

	if (!p)
		return false;
	if (ss_rows_exceed(NULL, SS_WRITES, p->dst, p->pitch, ss_times(p->width, p->elementSize),
			   p->height))
		return true;
	if (ss_lookup(ss_core, p->dst, &info)) {
		if (!info.live) /* the runtime's pools keep freed memory, too */
			return false;
		if (unlikely(ss_checking))
			info.size = ss_check_asked(p->dst, info.size);
	} else if (!ss_import_find(p->dst, &info, &buffer_id)) {
		return false;
	}
	return ss_times(p->pitch, p->height) > info.size;
}

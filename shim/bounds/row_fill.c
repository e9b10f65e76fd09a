/* SPDX-License-Identifier: MIT */
/*
 * Memsets in rows of raw HSA memory. The runtime (6.x, 7.2) makes an object as long as the rows but
 * checks it from the start of the allocation, so the runtime refuses rows that begin anywhere else.
 * The runtime accepts a plain memset, so this file makes one per row. No lock.
 */
#include <stdint.h>

#include "shim/alloc/last_error.h"
#include "shim/bounds/check.h"
#include "shim/bounds/row_fill.h"
#include "shim/process/real.h"

/* For elements of 2 and 4 bytes the runtime's kernel rounds the elements of a row up to a multiple
 * of 16 (7.2.4: a width of 16 bytes set 64), unless the rows have no gaps. Natively this overwrites
 * only gaps; in a segment of ours the next block may begin after the last row. */
static bool overruns(const struct ss_row_fill *r)
{
	size_t width = r->width / 16 * 16 + (r->width % 16 ? 16 : 0);

	return r->element > 1 && ss_times(r->width, r->element) != r->pitch &&
	       ss_exceeds(r->dst, ss_rows_bytes(r->pitch, ss_times(width, r->element), r->height));
}

bool ss_row_fill_needed(const struct ss_row_fill *r, bool sync)
{
	struct ss_block_info info;

	/* While a stream captures, the runtime decides whether a call that waits is legal. */
	if (sync && ss_capture_live())
		return false;
	return (ss_lookup(ss_core, r->dst, &info) && info.live && info.backing == SS_BACKING_HSA &&
		r->dst != info.segment) ||
	       overruns(r);
}

static hipError_t fill(const struct ss_row_fill *r, void *at, size_t count, hipStream_t stream)
{
	return r->element == 1 ?
		       REAL(hipMemsetAsync, at, r->value, count, stream) :
	       r->element == 2 ?
		       REAL(hipMemsetD16Async, at, (unsigned short)r->value, count, stream) :
		       REAL(hipMemsetD32Async, at, r->value, count, stream);
}

hipError_t ss_row_fill(const struct ss_row_fill *r, hipStream_t stream)
{
	size_t rows = r->height, width = r->width, end;
	hipPitchedPtr whole = {.ptr = r->dst, .pitch = r->pitch, .ysize = r->slice};
	hipExtent box;
	hipError_t err = hipSuccess;

	if (!width || !rows || !r->depth)
		return hipSuccess;
	if (__builtin_mul_overflow(width, r->element, &end))
		return ss_fail(hipErrorInvalidValue);
	if (r->pitch < end)
		return ss_fail(hipErrorInvalidValue);
	box = (hipExtent){end, rows, r->depth};
	if (ss_pitched_exceeds(stream, SS_WRITES, &whole, &(struct hipPos){0, 0, 0}, &box))
		return ss_fail(hipErrorInvalidValue);
	ss_stream_used(stream);
	if (r->pitch == end) { /* no gaps between rows: one memset */
		width *= rows;
		rows = 1;
	}
	for (size_t z = 0; z < r->depth && err == hipSuccess; z++)
		for (size_t y = 0; y < rows && err == hipSuccess; y++)
			err = fill(r, (char *)r->dst + (z * r->slice + y) * r->pitch, width,
				   stream);
	return ss_result(err);
}

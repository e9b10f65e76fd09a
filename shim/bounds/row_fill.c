/* SPDX-License-Identifier: MIT */
/*
 * Memsets in rows of raw HSA memory. The runtime (6.x, 7.2) makes an object as long as
 * the rows but checks it from the start of the allocation, so it refuses rows that begin
 * anywhere else. It does not refuse a plain memset, so each row becomes one here. No
 * lock.
 */
#include <stdint.h>

#include "shim/alloc/last_error.h"
#include "shim/bounds/check.h"
#include "shim/bounds/row_fill.h"
#include "shim/process/real.h"

/* For elements of 2 and 4 bytes the runtime's kernel sets up to a multiple of 16 of them in each row (7.2.4: 64 bytes
 * where the width was 16). Natively that harms what lies between rows only; here the next block may begin behind the
 * last row. */
static bool overruns(const struct ss_row_fill *r, const struct ss_block_info *info)
{
	size_t at = (size_t)((const char *)r->dst - (const char *)info->base), end, row;

	if (r->element == 1 || __builtin_mul_overflow(r->width, r->element, &row) || row == r->pitch || !row || at > info->size ||
	    __builtin_mul_overflow(r->slice, r->depth - 1, &end) ||
	    __builtin_add_overflow(end, r->height - 1, &end) || __builtin_mul_overflow(end, r->pitch, &end))
		return false; /* what is no memset of ours is refused later */
	row = (row + 16 * r->element - 1) / (16 * r->element) * 16 * r->element;
	return end <= info->size - at && row > info->size - at - end;
}

bool ss_row_fill_needed(const struct ss_row_fill *r, bool sync)
{
	struct ss_block_info info;

	/* Beside a capture the runtime decides whether a call that waits is legal. */
	if ((sync && ss_capture_live()) || !r->height || !r->depth || !ss_lookup(ss_core, r->dst, &info) ||
	    !info.live)
		return false;
	return (info.backing == SS_BACKING_HSA && r->dst != info.segment) || overruns(r, &info);
}

static hipError_t fill(const struct ss_row_fill *r, void *at, size_t count, hipStream_t stream)
{
	return r->element == 1 ? REAL(hipMemsetAsync, at, r->value, count, stream) :
	       r->element == 2 ? REAL(hipMemsetD16Async, at, (unsigned short)r->value, count, stream) :
				 REAL(hipMemsetD32Async, at, r->value, count, stream);
}

hipError_t ss_row_fill(const struct ss_row_fill *r, hipStream_t stream)
{
	size_t rows = r->height, width = r->width, end;
	hipPitchedPtr whole = {.pitch = r->pitch, .ysize = r->slice};
	hipExtent box;
	hipError_t err = hipSuccess;

	if (!width || !rows || !r->depth)
		return hipSuccess;
	if (__builtin_mul_overflow(width, r->element, &end))
		return ss_fail(hipErrorInvalidValue);
	if (r->pitch < end)
		return ss_fail(hipErrorInvalidValue);
	box = (hipExtent){end, rows, r->depth};
	if (ss_exceeds_on(stream, r->dst, ss_box_bytes(&whole, &(struct hipPos){0, 0, 0}, &box)))
		return ss_fail(hipErrorInvalidValue);
	ss_stream_used(stream);
	if (r->pitch == end) { /* no gaps between rows: one memset */
		width *= rows;
		rows = 1;
	}
	for (size_t z = 0; z < r->depth && err == hipSuccess; z++)
		for (size_t y = 0; y < rows && err == hipSuccess; y++)
			err = fill(r, (char *)r->dst + (z * r->slice + y) * r->pitch, width, stream);
	return ss_result(err);
}

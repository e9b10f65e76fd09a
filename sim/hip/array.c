/* SPDX-License-Identifier: MIT */
/* Arrays: allocation, and copies to and from them. */
#include <stdlib.h>

#include "device/command.h"
#include "hip/capture_guard.h"
#include "hip/copy.h"
#include "hip/entry_points.h"
#include "hip/memory.h"
#include "hip/thread_state.h"

/* Copies rows between an array and memory: to `to` from q, or, if `to` is NULL, from `from` to
 * p. x (in bytes) and y are the place in the array; pitch is that of the memory. */
static hipError_t array2d(hipStream_t h, hipArray *to, const hipArray *from, void *p, const void *q,
			  size_t x, size_t y, size_t pitch, size_t w, size_t rows,
			  hipMemcpyKind kind, bool wait)
{
	const hipArray *a = to ? to : from;
	size_t ap;

	if (!a || !a->data)
		return hipErrorInvalidValue;
	ap = array_pitch(a);
	if (to)
		return submit_rows(h, (char *)to->data + y * ap + x, ap, q, pitch, w, rows, kind,
				   wait);
	return submit_rows(h, p, pitch, (const char *)from->data + y * ap + x, ap, w, rows, kind,
			   wait);
}

hipError_t i_hipMemcpy2DToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t sp,
				size_t w, size_t rows, hipMemcpyKind kind)
{
	return array2d(NULL, dst, NULL, NULL, src, x, y, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DToArrayAsync(hipArray *dst, size_t x, size_t y, const void *src, size_t sp,
				     size_t w, size_t rows, hipMemcpyKind kind, hipStream_t h)
{
	return array2d(h, dst, NULL, NULL, src, x, y, sp, w, rows, kind, false);
}

hipError_t i_hipMemcpy2DFromArray(void *dst, size_t dp, hipArray_const_t src, size_t x, size_t y,
				  size_t w, size_t rows, hipMemcpyKind kind)
{
	return array2d(NULL, NULL, src, dst, NULL, x, y, dp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DFromArrayAsync(void *dst, size_t dp, hipArray_const_t src, size_t x,
				       size_t y, size_t w, size_t rows, hipMemcpyKind kind,
				       hipStream_t h)
{
	return array2d(h, NULL, src, dst, NULL, x, y, dp, w, rows, kind, false);
}

hipError_t i_hipMemcpyToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t n,
			      hipMemcpyKind kind)
{
	if (!dst || !dst->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_command((char *)dst->data + y * array_pitch(dst) + x, src, n),
			   kind, true);
}

hipError_t i_hipMemcpyFromArray(void *dst, hipArray_const_t src, size_t x, size_t y, size_t n,
				hipMemcpyKind kind)
{
	if (!src || !src->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_command(dst, (char *)src->data + y * array_pitch(src) + x, n),
			   kind, true);
}

static hipError_t array_new(hipArray **out, int bits[4], size_t w, size_t rows, size_t depth)
{
	hipArray *a;
	hipError_t e = guard_unsafe();

	if (e)
		return e;
	if (!out || !w)
		return hipErrorInvalidValue;
	a = calloc(1, sizeof *a);
	if (!a)
		return hipErrorOutOfMemory;
	a->desc.x = bits[0];
	a->desc.y = bits[1];
	a->desc.z = bits[2];
	a->desc.w = bits[3];
	a->width = (unsigned)w;
	a->height = (unsigned)rows;
	a->depth = (unsigned)depth;
	e = device_malloc(&a->data, array_pitch(a) * (rows ? rows : 1) * (depth ? depth : 1), 0,
			  current_device());
	if (e) {
		free(a);
		return e;
	}
	*out = a;
	return hipSuccess;
}

hipError_t i_hipMallocArray(hipArray **out, const hipChannelFormatDesc *d, size_t w, size_t rows,
			    unsigned flags)
{
	return d ? array_new(out, (int[]){d->x, d->y, d->z, d->w}, w, rows, 0) :
		   hipErrorInvalidValue;
}

hipError_t i_hipMalloc3DArray(hipArray **out, const struct hipChannelFormatDesc *d,
			      struct hipExtent x, unsigned flags)
{
	return d ? array_new(out, (int[]){d->x, d->y, d->z, d->w}, x.width, x.height, x.depth) :
		   hipErrorInvalidValue;
}

static void format_bits(int f, unsigned n, int bits[4])
{
	int b = f == HIP_AD_FORMAT_UNSIGNED_INT8 || f == HIP_AD_FORMAT_SIGNED_INT8 ? 8 :
		f == HIP_AD_FORMAT_UNSIGNED_INT16 || f == HIP_AD_FORMAT_SIGNED_INT16 ||
				f == HIP_AD_FORMAT_HALF ?
										     16 :
										     32;

	for (unsigned i = 0; i < 4; i++)
		bits[i] = i < n ? b : 0;
}

hipError_t i_hipArrayCreate(hipArray **out, const HIP_ARRAY_DESCRIPTOR *d)
{
	int bits[4];

	if (!d)
		return hipErrorInvalidValue;
	format_bits((int)d->Format, d->NumChannels, bits);
	return array_new(out, bits, d->Width, d->Height, 0);
}

hipError_t i_hipArray3DCreate(hipArray **out, const HIP_ARRAY3D_DESCRIPTOR *d)
{
	int bits[4];

	if (!d)
		return hipErrorInvalidValue;
	format_bits((int)d->Format, d->NumChannels, bits);
	return array_new(out, bits, d->Width, d->Height, d->Depth);
}

hipError_t i_hipFreeArray(hipArray *a)
{
	hipError_t e;

	if (!a)
		return hipErrorInvalidValue;
	e = memory_free(a->data);
	if (!e) {
		a->data = NULL;
		free(a);
	}
	return e;
}

hipError_t i_hipGetChannelDesc(hipChannelFormatDesc *desc, hipArray_const_t array)
{
	if (!desc || !array)
		return hipErrorInvalidValue;
	*desc = array->desc;
	return hipSuccess;
}

hipError_t i_hipArrayDestroy(hipArray *a)
{
	return i_hipFreeArray(a);
}

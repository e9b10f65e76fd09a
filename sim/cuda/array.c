/* SPDX-License-Identifier: MIT */
/* Arrays. Nothing here samples a texture, so an array is rows of device memory, as on the software
 * device. */
#include <stdlib.h>

#include "cuda/context.h"
#include "cuda/copy.h"

size_t array_pitch(const hipArray *a)
{
	int bits = a->desc.x + a->desc.y + a->desc.z + a->desc.w;

	return (size_t)a->width * (size_t)(bits ? bits : 8) / 8;
}

static hipError_t array_new(hipArray **out, hipChannelFormatDesc desc, size_t width, size_t height,
			    size_t depth)
{
	hipArray *a;
	hipError_t e;

	if (!out || !width)
		return hipErrorInvalidValue;
	a = calloc(1, sizeof *a);
	if (!a)
		return hipErrorOutOfMemory;
	a->desc = desc;
	a->width = (unsigned)width;
	a->height = (unsigned)height;
	a->depth = (unsigned)depth;
	e = i_hipMalloc(&a->data, array_pitch(a) * (height ? height : 1) * (depth ? depth : 1));
	if (e) {
		free(a);
		return e;
	}
	*out = a;
	return hipSuccess;
}

hipError_t i_hipMallocArray(hipArray **out, const hipChannelFormatDesc *d, size_t width,
			    size_t height, unsigned flags)
{
	return d ? array_new(out, *d, width, height, 0) : hipErrorInvalidValue;
}

hipError_t i_hipMalloc3DArray(hipArray **out, const struct hipChannelFormatDesc *d,
			      struct hipExtent x, unsigned flags)
{
	return d ? array_new(out, *d, x.width, x.height, x.depth) : hipErrorInvalidValue;
}

static hipChannelFormatDesc description(int format, unsigned channels)
{
	int bits = format == HIP_AD_FORMAT_UNSIGNED_INT8 || format == HIP_AD_FORMAT_SIGNED_INT8 ?
			   8 :
		   format == HIP_AD_FORMAT_UNSIGNED_INT16 || format == HIP_AD_FORMAT_SIGNED_INT16 ||
				   format == HIP_AD_FORMAT_HALF ?
			   16 :
			   32;

	return (hipChannelFormatDesc){.x = bits,
				      .y = channels > 1 ? bits : 0,
				      .z = channels > 2 ? bits : 0,
				      .w = channels > 3 ? bits : 0};
}

hipError_t i_hipArrayCreate(hipArray **out, const HIP_ARRAY_DESCRIPTOR *d)
{
	return d ? array_new(out, description((int)d->Format, d->NumChannels), d->Width, d->Height,
			     0) :
		   hipErrorInvalidValue;
}

hipError_t i_hipArray3DCreate(hipArray **out, const HIP_ARRAY3D_DESCRIPTOR *d)
{
	return d ? array_new(out, description((int)d->Format, d->NumChannels), d->Width, d->Height,
			     d->Depth) :
		   hipErrorInvalidValue;
}

hipError_t i_hipFreeArray(hipArray *a)
{
	hipError_t e;

	if (!a)
		return hipErrorInvalidValue;
	e = i_hipFree(a->data);
	if (!e)
		free(a);
	return e;
}

hipError_t i_hipArrayDestroy(hipArray *a)
{
	return i_hipFreeArray(a);
}

hipError_t i_hipGetChannelDesc(hipChannelFormatDesc *desc, hipArray_const_t array)
{
	if (!desc || !array)
		return hipErrorInvalidValue;
	*desc = array->desc;
	return hipSuccess;
}

/* ---- copies ---- */

/* x is in bytes. */
static char *place(const hipArray *a, size_t x, size_t y)
{
	return a && a->data ? (char *)a->data + y * array_pitch(a) + x : NULL;
}

hipError_t i_hipMemcpy2DToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t pitch,
				size_t width, size_t height, hipMemcpyKind kind)
{
	return dst ? i_hipMemcpy2D(place(dst, x, y), array_pitch(dst), src, pitch, width, height,
				   kind) :
		     hipErrorInvalidValue;
}

hipError_t i_hipMemcpy2DToArrayAsync(hipArray *dst, size_t x, size_t y, const void *src,
				     size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
				     hipStream_t s)
{
	return dst ? i_hipMemcpy2DAsync(place(dst, x, y), array_pitch(dst), src, pitch, width,
					height, kind, s) :
		     hipErrorInvalidValue;
}

hipError_t i_hipMemcpy2DFromArray(void *dst, size_t pitch, hipArray_const_t src, size_t x, size_t y,
				  size_t width, size_t height, hipMemcpyKind kind)
{
	return src ? i_hipMemcpy2D(dst, pitch, place(src, x, y), array_pitch(src), width, height,
				   kind) :
		     hipErrorInvalidValue;
}

hipError_t i_hipMemcpy2DFromArrayAsync(void *dst, size_t pitch, hipArray_const_t src, size_t x,
				       size_t y, size_t width, size_t height, hipMemcpyKind kind,
				       hipStream_t s)
{
	return src ? i_hipMemcpy2DAsync(dst, pitch, place(src, x, y), array_pitch(src), width,
					height, kind, s) :
		     hipErrorInvalidValue;
}

hipError_t i_hipMemcpyToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t n,
			      hipMemcpyKind kind)
{
	return i_hipMemcpy(place(dst, x, y), src, n, kind);
}

hipError_t i_hipMemcpyFromArray(void *dst, hipArray_const_t src, size_t x, size_t y, size_t n,
				hipMemcpyKind kind)
{
	return i_hipMemcpy(dst, place(src, x, y), n, kind);
}

/* SPDX-License-Identifier: MIT */
/* Copies of rows and boxes, in each of the shapes in which HIP describes them. */
#include <string.h>

#include "cuda/context.h"
#include "cuda/copy.h"
#include "cuda/pointer.h"
#include "hip/driver_box.h"

bool box_valid(const struct box *b)
{
	return b->dst && b->src &&
	       (b->rows * b->slices <= 1 || (b->dst_pitch >= b->width && b->src_pitch >= b->width));
}

CUDA_MEMCPY3D box_for_driver(const struct box *b)
{
	CUDA_MEMCPY3D c;

	memset(&c, 0, sizeof c);
	c.srcMemoryType = pointer_side(b->src);
	if (c.srcMemoryType == CU_MEMORYTYPE_HOST)
		c.srcHost = b->src;
	else
		c.srcDevice = address(b->src);
	c.srcPitch = b->src_pitch;
	c.srcHeight = b->src_rows;
	c.dstMemoryType = pointer_side(b->dst);
	if (c.dstMemoryType == CU_MEMORYTYPE_HOST)
		c.dstHost = b->dst;
	else
		c.dstDevice = address(b->dst);
	c.dstPitch = b->dst_pitch;
	c.dstHeight = b->dst_rows;
	c.WidthInBytes = b->width;
	c.Height = b->rows;
	c.Depth = b->slices;
	return c;
}

/* Rows have a call of their own that takes any pitch. */
static CUresult copy_rows(const CUDA_MEMCPY3D *c, hipStream_t s, bool wait)
{
	CUDA_MEMCPY2D r = {
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcPitch = c->srcPitch,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
	};

	return wait ? CU(cuMemcpy2DUnaligned, &r) : CU(cuMemcpy2DAsync, &r, (CUstream)s);
}

hipError_t box_copy(const struct box *b, hipStream_t s, bool wait)
{
	CUDA_MEMCPY3D c;

	if (!b->width || !b->rows || !b->slices)
		return hipSuccess;
	if (!box_valid(b))
		return hipErrorInvalidValue;
	c = box_for_driver(b);
	if (b->slices == 1)
		return to_hip(copy_rows(&c, s, wait));
	return to_hip(wait ? CU(cuMemcpy3D, &c) : CU(cuMemcpy3DAsync, &c, (CUstream)s));
}

/* ---- rows ---- */

static hipError_t rows(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		       size_t n, hipMemcpyKind kind, hipStream_t s, bool wait)
{
	struct box b = {dst, src, dst_pitch, n, src_pitch, n, width, n, 1};

	ENTER_STREAM(s);
	if (!copy_kind_known(kind))
		return hipErrorInvalidMemcpyDirection;
	if (!dst || !src)
		return hipErrorInvalidValue;
	if (width > dst_pitch || width > src_pitch)
		return hipErrorInvalidPitchValue;
	return box_copy(&b, s, wait);
}

hipError_t i_hipMemcpy2D(void *dst, size_t dp, const void *src, size_t sp, size_t width,
			 size_t height, hipMemcpyKind kind)
{
	return rows(dst, dp, src, sp, width, height, kind, NULL, true);
}

hipError_t i_hipMemcpy2DAsync(void *dst, size_t dp, const void *src, size_t sp, size_t width,
			      size_t height, hipMemcpyKind kind, hipStream_t s)
{
	return rows(dst, dp, src, sp, width, height, kind, s, false);
}

hipError_t i_hipMemcpy2D_spt(void *dst, size_t dp, const void *src, size_t sp, size_t width,
			     size_t height, hipMemcpyKind kind)
{
	hipError_t e = rows(dst, dp, src, sp, width, height, kind, hipStreamPerThread, false);

	return e ? e : to_hip(CU(cuStreamSynchronize, (CUstream)hipStreamPerThread));
}

static hipError_t described_rows(const hip_Memcpy2D *p, hipStream_t s, bool wait)
{
	size_t dp, sp;
	char *dst;
	const char *src;

	if (!p)
		return hipErrorInvalidValue;
	/* The numbers of the memory types changed in 6.0, so the pointers that are set decide. */
	dst = p->dstHost && !p->dstDevice ? p->dstHost :
	      p->dstArray                 ? p->dstArray->data :
					    p->dstDevice;
	src = p->srcHost && !p->srcDevice ? p->srcHost :
	      p->srcArray                 ? p->srcArray->data :
					    p->srcDevice;
	if (!dst || !src)
		return hipErrorInvalidValue;
	dp = p->dstPitch ? p->dstPitch : p->WidthInBytes;
	sp = p->srcPitch ? p->srcPitch : p->WidthInBytes;
	return rows(dst + p->dstY * dp + p->dstXInBytes, dp, src + p->srcY * sp + p->srcXInBytes,
		    sp, p->WidthInBytes, p->Height, hipMemcpyDefault, s, wait);
}

hipError_t i_hipMemcpyParam2D(const hip_Memcpy2D *p)
{
	return described_rows(p, NULL, true);
}

hipError_t i_hipMemcpyParam2DAsync(const hip_Memcpy2D *p, hipStream_t s)
{
	return described_rows(p, s, false);
}

hipError_t i_hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *p)
{
	return described_rows(p, NULL, true);
}

/* ---- boxes ---- */

struct box box_of(const hipMemcpy3DParms *p)
{
	const hipArray *a = p->srcArray ? p->srcArray : p->dstArray;
	size_t element = a ? array_pitch(a) / a->width : 1;
	struct box b = {
		.src = p->srcArray ? p->srcArray->data : p->srcPtr.ptr,
		.src_pitch = p->srcArray ? array_pitch(p->srcArray) : p->srcPtr.pitch,
		.src_rows = p->srcArray ? p->srcArray->height : p->srcPtr.ysize,
		.dst = p->dstArray ? p->dstArray->data : p->dstPtr.ptr,
		.dst_pitch = p->dstArray ? array_pitch(p->dstArray) : p->dstPtr.pitch,
		.dst_rows = p->dstArray ? p->dstArray->height : p->dstPtr.ysize,
		.width = p->extent.width * element,
		.rows = p->extent.height,
		.slices = p->extent.depth,
	};

	/* Rows and slices without a length of their own follow each other closely. */
	b.src_pitch = b.src_pitch ? b.src_pitch : b.width;
	b.dst_pitch = b.dst_pitch ? b.dst_pitch : b.width;
	b.src_rows = b.src_rows ? b.src_rows : b.rows;
	b.dst_rows = b.dst_rows ? b.dst_rows : b.rows;
	if (b.src)
		b.src = (const char *)b.src + p->srcPos.x * (p->srcArray ? element : 1) +
			(p->srcPos.z * b.src_rows + p->srcPos.y) * b.src_pitch;
	if (b.dst)
		b.dst = (char *)b.dst + p->dstPos.x * (p->dstArray ? element : 1) +
			(p->dstPos.z * b.dst_rows + p->dstPos.y) * b.dst_pitch;
	return b;
}

static hipError_t described_box(const hipMemcpy3DParms *p, hipStream_t s, bool wait)
{
	struct box b;

	ENTER_STREAM(s);
	if (!p)
		return hipErrorInvalidValue;
	b = box_of(p);
	return box_copy(&b, s, wait);
}

hipError_t i_hipMemcpy3D(const struct hipMemcpy3DParms *p)
{
	return described_box(p, NULL, true);
}

hipError_t i_hipMemcpy3DAsync(const struct hipMemcpy3DParms *p, hipStream_t s)
{
	return described_box(p, s, false);
}

hipError_t i_hipMemcpy3D_spt(const struct hipMemcpy3DParms *p)
{
	hipError_t e = described_box(p, hipStreamPerThread, false);

	return e ? e : to_hip(CU(cuStreamSynchronize, (CUstream)hipStreamPerThread));
}

struct box box_of_driver(const HIP_MEMCPY3D *params)
{
	struct driver_box p = driver_box(params, V6);
	struct box b = {
		.dst = p.dhost ? p.dhost :
		       p.darr  ? p.darr->data :
				 p.ddev,
		.src = p.shost ? p.shost :
		       p.sarr  ? p.sarr->data :
				 p.sdev,
		.dst_pitch = p.dp ? p.dp : p.w,
		.dst_rows = p.dr ? p.dr : p.h,
		.src_pitch = p.sp ? p.sp : p.w,
		.src_rows = p.sr ? p.sr : p.h,
		.width = p.w,
		.rows = p.h,
		.slices = p.d,
	};

	if (b.dst)
		b.dst = (char *)b.dst + (p.dz * b.dst_rows + p.dy) * b.dst_pitch + p.dx;
	if (b.src)
		b.src = (const char *)b.src + (p.sz * b.src_rows + p.sy) * b.src_pitch + p.sx;
	return b;
}

static hipError_t driver_box_copy(const HIP_MEMCPY3D *params, hipStream_t s, bool wait)
{
	struct box b;

	ENTER_STREAM(s);
	if (!params)
		return hipErrorInvalidValue;
	b = box_of_driver(params);
	return b.dst && b.src ? box_copy(&b, s, wait) : hipErrorInvalidValue;
}

hipError_t i_hipDrvMemcpy3D(const HIP_MEMCPY3D *p)
{
	return driver_box_copy(p, NULL, true);
}

hipError_t i_hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *p, hipStream_t s)
{
	return driver_box_copy(p, s, false);
}

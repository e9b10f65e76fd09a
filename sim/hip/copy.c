/* SPDX-License-Identifier: MIT */
/* Copies. Every variant becomes one C_COPY command. */
#include <stdlib.h>
#include <string.h>

#include "hip.h"

#define STAGE (4u << 20)

static hipError_t check_side(const void *p, size_t n)
{
	struct sim_alloc a;

	if (!hip_find(p, &a)) {
		/* Reserved but not mapped: to HIP it is host memory, and touching
		 * it from the host is a fault like any other. */
		return hipSuccess;
	}
	if (a.kind == SIM_MAPPED)
		return a.access & 1u << cur_device() ? hipSuccess : hipErrorUnknown;
	if (a.hip && n > a.size - ((uintptr_t)p - a.r.base))
		return hipErrorInvalidValue;
	return hipSuccess;
}

hipError_t check_copy(const void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	hipError_t e;

	if (kind > hipMemcpyDefault)
		return hipErrorInvalidMemcpyDirection;
	if (!n)
		return hipSuccess;
	if (!dst || !src)
		return hipErrorInvalidValue;
	e = check_side(dst, n);
	return e ? e : check_side(src, n);
}

struct cmd *copy_cmd(void *dst, const void *src, size_t n)
{
	struct cmd *c = cmd_new(C_COPY);

	c->copy.dst = dst;
	c->copy.src = src;
	c->copy.width = n;
	c->copy.height = c->copy.depth = 1;
	return c;
}

static size_t extent(const struct cmd *c, size_t pitch, size_t slice)
{
	if (!c->copy.width || !c->copy.height || !c->copy.depth)
		return 0;
	return (c->copy.depth - 1) * slice + (c->copy.height - 1) * pitch + c->copy.width;
}

hipError_t submit_copy(hipStream_t h, struct cmd *c, hipMemcpyKind kind, bool wait)
{
	size_t dn = extent(c, c->copy.dpitch, c->copy.dslice), sn = extent(c, c->copy.spitch, c->copy.sslice);
	bool dhost, shost;
	hipError_t e;

	if (kind > hipMemcpyDefault)
		e = hipErrorInvalidMemcpyDirection;
	else if (!dn)
		e = hipSuccess;
	else if (!c->copy.dst || !c->copy.src)
		e = hipErrorInvalidValue;
	else if (!(e = check_side(c->copy.dst, dn)))
		e = check_side(c->copy.src, sn);
	if (e || !dn) {
		cmd_free(c);
		return e;
	}
	if (wait) {
		e = guard_sync_copy();
		if (e) {
			cmd_free(c);
			return e;
		}
		return submit(h, c, true);
	}
	struct stream *s = stream_of(h);

	if (s && atomic_load(&captures_live) && stream_capturing(s))
		return submit(h, c, false);
	dhost = host_pageable(c->copy.dst);
	shost = host_pageable(c->copy.src);
	/* Pageable source: staged now, so that the caller may reuse it. */
	if (shost && !dhost && sn <= STAGE) {
		c->owned = blob_new(sn);
		memcpy(c->owned, c->copy.src, sn);
		c->copy.src = c->owned;
		return submit(h, c, false);
	}
	return submit(h, c, dhost || shost);
}

hipError_t i_hipMemcpy(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	return submit_copy(NULL, copy_cmd(dst, src, n), kind, true);
}

hipError_t i_hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t h)
{
	return submit_copy(h, copy_cmd(dst, src, n), kind, false);
}

hipError_t i_hipMemcpyWithStream(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t h)
{
	return submit_copy(h, copy_cmd(dst, src, n), kind, true);
}

hipError_t i_hipMemcpy_spt(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	return submit_copy(hipStreamPerThread, copy_cmd(dst, src, n), kind, true);
}

hipError_t i_hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t n)
{
	return submit_copy(NULL, copy_cmd(dst, src, n), hipMemcpyHostToDevice, true);
}

hipError_t i_hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t n)
{
	return submit_copy(NULL, copy_cmd(dst, src, n), hipMemcpyDeviceToHost, true);
}

hipError_t i_hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n)
{
	return submit_copy(NULL, copy_cmd(dst, src, n), hipMemcpyDeviceToDevice, true);
}

hipError_t i_hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_cmd(dst, src, n), hipMemcpyHostToDevice, false);
}

hipError_t i_hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_cmd(dst, src, n), hipMemcpyDeviceToHost, false);
}

hipError_t i_hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_cmd(dst, src, n), hipMemcpyDeviceToDevice, false);
}

hipError_t i_hipMemcpyPeer(void *dst, int ddev, const void *src, int sdev, size_t n)
{
	if (ddev < 0 || ddev >= sim_opt.devices || sdev < 0 || sdev >= sim_opt.devices)
		return hipErrorInvalidDevice;
	return submit_copy(NULL, copy_cmd(dst, src, n), hipMemcpyDeviceToDevice, true);
}

hipError_t i_hipMemcpyPeerAsync(void *dst, int ddev, const void *src, int sdev, size_t n, hipStream_t h)
{
	if (ddev < 0 || ddev >= sim_opt.devices || sdev < 0 || sdev >= sim_opt.devices)
		return hipErrorInvalidDevice;
	return submit_copy(h, copy_cmd(dst, src, n), hipMemcpyDeviceToDevice, false);
}

/* ---- 2D ---- */

hipError_t submit_rows(hipStream_t h, void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows,
			 hipMemcpyKind kind, bool wait)
{
	struct cmd *c;

	if (!dst || !src)
		return hipErrorInvalidValue;
	if (w > dp || w > sp)
		return hipErrorInvalidPitchValue;
	c = copy_cmd(dst, src, w);
	c->copy.height = rows;
	c->copy.dpitch = dp;
	c->copy.spitch = sp;
	return submit_copy(h, c, kind, wait);
}

hipError_t i_hipMemcpy2D(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows, hipMemcpyKind kind)
{
	return submit_rows(NULL, dst, dp, src, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2D_spt(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows, hipMemcpyKind kind)
{
	return submit_rows(hipStreamPerThread, dst, dp, src, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DAsync(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows, hipMemcpyKind kind, hipStream_t h)
{
	return submit_rows(h, dst, dp, src, sp, w, rows, kind, false);
}

/* ---- 3D ---- */

static size_t array_pitch(const hipArray *a)
{
	return (size_t)a->width * (size_t)((a->desc.x + a->desc.y + a->desc.z + a->desc.w + 7) / 8);
}

struct cmd *copy3d_cmd(const hipMemcpy3DParms *p, hipError_t *e)
{
	size_t dp, sp, dr, sr;
	size_t scale = 1;
	char *d;
	const char *s;
	struct cmd *c;

	*e = hipErrorInvalidValue;
	if (!p)
		return NULL;
	if (p->dstArray || p->srcArray) {
		const hipArray *a = p->dstArray ? p->dstArray : p->srcArray;

		scale = array_pitch(a) / (a->width ? a->width : 1);
	}
	d = p->dstArray ? p->dstArray->data : p->dstPtr.ptr;
	s = p->srcArray ? p->srcArray->data : p->srcPtr.ptr;
	dp = p->dstArray ? array_pitch(p->dstArray) : p->dstPtr.pitch;
	sp = p->srcArray ? array_pitch(p->srcArray) : p->srcPtr.pitch;
	dr = p->dstArray ? (p->dstArray->height ? p->dstArray->height : 1) : p->dstPtr.ysize;
	sr = p->srcArray ? (p->srcArray->height ? p->srcArray->height : 1) : p->srcPtr.ysize;
	if (!d || !s)
		return NULL;
	c = cmd_new(C_COPY);
	c->copy.dpitch = dp;
	c->copy.spitch = sp;
	c->copy.dslice = dp * dr;
	c->copy.sslice = sp * sr;
	c->copy.dst = d + p->dstPos.z * c->copy.dslice + p->dstPos.y * dp + p->dstPos.x * (p->dstArray ? scale : 1);
	c->copy.src = s + p->srcPos.z * c->copy.sslice + p->srcPos.y * sp + p->srcPos.x * (p->srcArray ? scale : 1);
	c->copy.width = p->extent.width * scale;
	c->copy.height = p->extent.height;
	c->copy.depth = p->extent.depth;
	*e = hipSuccess;
	return c;
}

static hipError_t copy3d(const hipMemcpy3DParms *p, hipStream_t h, bool wait)
{
	hipError_t e;
	struct cmd *c = copy3d_cmd(p, &e);

	return c ? submit_copy(h, c, p->kind, wait) : e;
}

hipError_t i_hipMemcpy3D(const struct hipMemcpy3DParms *p)
{
	return copy3d(p, NULL, true);
}

hipError_t i_hipMemcpy3D_spt(const struct hipMemcpy3DParms *p)
{
	return copy3d(p, hipStreamPerThread, true);
}

hipError_t i_hipMemcpy3DAsync(const struct hipMemcpy3DParms *p, hipStream_t h)
{
	return copy3d(p, h, false);
}

/* ---- arrays ---- */

static hipError_t array2d(hipStream_t h, hipArray *to, const hipArray *from, void *p, const void *q, size_t x,
			  size_t y, size_t pitch, size_t w, size_t rows, hipMemcpyKind kind, bool wait)
{
	const hipArray *a = to ? to : from;
	size_t ap;

	if (!a || !a->data)
		return hipErrorInvalidValue;
	ap = array_pitch(a);
	if (to)
		return submit_rows(h, (char *)to->data + y * ap + x, ap, q, pitch, w, rows, kind, wait);
	return submit_rows(h, p, pitch, (const char *)from->data + y * ap + x, ap, w, rows, kind, wait);
}

hipError_t i_hipMemcpy2DToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t sp, size_t w, size_t rows, hipMemcpyKind kind)
{
	return array2d(NULL, dst, NULL, NULL, src, x, y, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DToArrayAsync(hipArray *dst, size_t x, size_t y, const void *src, size_t sp, size_t w, size_t rows, hipMemcpyKind kind, hipStream_t h)
{
	return array2d(h, dst, NULL, NULL, src, x, y, sp, w, rows, kind, false);
}

hipError_t i_hipMemcpy2DFromArray(void *dst, size_t dp, hipArray_const_t src, size_t x, size_t y, size_t w, size_t rows, hipMemcpyKind kind)
{
	return array2d(NULL, NULL, src, dst, NULL, x, y, dp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DFromArrayAsync(void *dst, size_t dp, hipArray_const_t src, size_t x, size_t y, size_t w, size_t rows, hipMemcpyKind kind, hipStream_t h)
{
	return array2d(h, NULL, src, dst, NULL, x, y, dp, w, rows, kind, false);
}

hipError_t i_hipMemcpyToArray(hipArray *dst, size_t x, size_t y, const void *src, size_t n, hipMemcpyKind kind)
{
	if (!dst || !dst->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_cmd((char *)dst->data + y * array_pitch(dst) + x, src, n), kind, true);
}

hipError_t i_hipMemcpyFromArray(void *dst, hipArray_const_t src, size_t x, size_t y, size_t n, hipMemcpyKind kind)
{
	if (!src || !src->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_cmd(dst, (char *)src->data + y * array_pitch(src) + x, n), kind, true);
}

hipError_t i_hipMemcpyHtoA(hipArray *dst, size_t off, const void *src, size_t n)
{
	if (!dst || !dst->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_cmd((char *)dst->data + off, src, n), hipMemcpyHostToDevice, true);
}

hipError_t i_hipMemcpyAtoH(void *dst, hipArray *src, size_t off, size_t n)
{
	if (!src || !src->data)
		return hipErrorInvalidValue;
	return submit_copy(NULL, copy_cmd(dst, (char *)src->data + off, n), hipMemcpyDeviceToHost, true);
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
	e = device_malloc(&a->data, array_pitch(a) * (rows ? rows : 1) * (depth ? depth : 1), 0, cur_device());
	if (e) {
		free(a);
		return e;
	}
	*out = a;
	return hipSuccess;
}

hipError_t i_hipMallocArray(hipArray **out, const hipChannelFormatDesc *d, size_t w, size_t rows, unsigned flags)
{
	return d ? array_new(out, (int[]){ d->x, d->y, d->z, d->w }, w, rows, 0) : hipErrorInvalidValue;
}

hipError_t i_hipMalloc3DArray(hipArray **out, const struct hipChannelFormatDesc *d, struct hipExtent x, unsigned flags)
{
	return d ? array_new(out, (int[]){ d->x, d->y, d->z, d->w }, x.width, x.height, x.depth) : hipErrorInvalidValue;
}

static void format_bits(int f, unsigned n, int bits[4])
{
	int b = f == HIP_AD_FORMAT_UNSIGNED_INT8 || f == HIP_AD_FORMAT_SIGNED_INT8 ? 8 :
		f == HIP_AD_FORMAT_UNSIGNED_INT16 || f == HIP_AD_FORMAT_SIGNED_INT16 || f == HIP_AD_FORMAT_HALF ? 16 : 32;

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
	e = host_release(a->data);
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

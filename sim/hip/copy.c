/* SPDX-License-Identifier: MIT */
/* Copies of memory. Every variant becomes one copy command. */
#include <string.h>

#include "device/command.h"
#include "device/options.h"
#include "device/transfer.h"
#include "hip/allocation.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/copy.h"
#include "hip/entry_points.h"
#include "hip/handle.h"
#include "hip/submit.h"
#include "hip/thread_state.h"

#define STAGE_MAX (4u << 20)         /* bytes of pageable memory that a copy reads at once */

static hipError_t check_side(const void *p, size_t n)
{
	struct sim_alloc a;

	if (!hip_find(p, &a)) {
		/* To HIP, reserved addresses without memory are host memory, so the copy runs
		 * and faults. */
		return hipSuccess;
	}
	if (a.kind == SIM_MAPPED)
		return a.access & 1u << current_device() ? hipSuccess : hipErrorUnknown;
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

struct sim_command *copy_command(void *dst, const void *src, size_t n)
{
	struct sim_command *c = sim_copy_command();

	c->copy.dst = dst;
	c->copy.src = src;
	c->copy.width = n;
	c->copy.height = c->copy.depth = 1;
	return c;
}

static size_t extent(const struct sim_command *c, size_t pitch, size_t slice)
{
	if (!c->copy.width || !c->copy.height || !c->copy.depth)
		return 0;
	return (c->copy.depth - 1) * slice + (c->copy.height - 1) * pitch + c->copy.width;
}

hipError_t submit_copy(hipStream_t h, struct sim_command *c, hipMemcpyKind kind, bool wait)
{
	size_t dn = extent(c, c->copy.dpitch, c->copy.dslice);
	size_t sn = extent(c, c->copy.spitch, c->copy.sslice);
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
		sim_command_free(c);
		return e;
	}
	if (wait) {
		e = guard_sync_copy();
		if (e) {
			sim_command_free(c);
			return e;
		}
		return submit(h, c, true);
	}
	struct stream *s = stream_of(h);

	if (s && atomic_load(&captures_live) && stream_capturing(s))
		return submit(h, c, false);
	dhost = host_pageable(c->copy.dst);
	shost = host_pageable(c->copy.src);
	/* Pageable source memory is copied now, so that the caller may reuse it at once. */
	if (shost && !dhost && sn <= STAGE_MAX) {
		c->owned = sim_blob_new(sn, NULL);
		memcpy(c->owned, c->copy.src, sn);
		c->copy.src = c->owned;
		return submit(h, c, false);
	}
	return submit(h, c, dhost || shost);
}

hipError_t i_hipMemcpy(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	return submit_copy(NULL, copy_command(dst, src, n), kind, true);
}

hipError_t i_hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t h)
{
	return submit_copy(h, copy_command(dst, src, n), kind, false);
}

hipError_t i_hipMemcpyWithStream(void *dst, const void *src, size_t n, hipMemcpyKind kind,
				 hipStream_t h)
{
	return submit_copy(h, copy_command(dst, src, n), kind, true);
}

hipError_t i_hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t n)
{
	return submit_copy(NULL, copy_command(dst, src, n), hipMemcpyHostToDevice, true);
}

hipError_t i_hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t n)
{
	return submit_copy(NULL, copy_command(dst, src, n), hipMemcpyDeviceToHost, true);
}

hipError_t i_hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n)
{
	return submit_copy(NULL, copy_command(dst, src, n), hipMemcpyDeviceToDevice, true);
}

hipError_t i_hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_command(dst, src, n), hipMemcpyHostToDevice, false);
}

hipError_t i_hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_command(dst, src, n), hipMemcpyDeviceToHost, false);
}

hipError_t i_hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n, hipStream_t h)
{
	return submit_copy(h, copy_command(dst, src, n), hipMemcpyDeviceToDevice, false);
}

hipError_t i_hipMemcpyBatchAsync(void **dst, void **src, size_t *sizes, size_t count, void *attrs,
				 size_t *which, size_t attr_count, size_t *failed,
				 hipStream_t stream)
{
	if (!dst || !src || !sizes || !count)
		return hipErrorInvalidValue;
	if (attr_count)
		return hipErrorNotSupported; /* as 7.2.4 */
	if (failed)
		*failed = SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		hipError_t e = i_hipMemcpyAsync(dst[i], src[i], sizes[i], hipMemcpyDefault, stream);

		if (e) {
			if (failed)
				*failed = i;
			return e;
		}
	}
	return hipSuccess;
}

hipError_t i_hipMemcpyPeer(void *dst, int ddev, const void *src, int sdev, size_t n)
{
	if (ddev < 0 || ddev >= sim_opt.devices || sdev < 0 || sdev >= sim_opt.devices)
		return hipErrorInvalidDevice;
	return submit_copy(NULL, copy_command(dst, src, n), hipMemcpyDeviceToDevice, true);
}

hipError_t i_hipMemcpyPeerAsync(void *dst, int ddev, const void *src, int sdev, size_t n,
				hipStream_t h)
{
	if (ddev < 0 || ddev >= sim_opt.devices || sdev < 0 || sdev >= sim_opt.devices)
		return hipErrorInvalidDevice;
	return submit_copy(h, copy_command(dst, src, n), hipMemcpyDeviceToDevice, false);
}

hipError_t submit_rows(hipStream_t h, void *dst, size_t dp, const void *src, size_t sp, size_t w,
		       size_t rows, hipMemcpyKind kind, bool wait)
{
	struct sim_command *c;

	if (!dst || !src)
		return hipErrorInvalidValue;
	if (w > dp || w > sp)
		return hipErrorInvalidPitchValue;
	c = copy_command(dst, src, w);
	c->copy.height = rows;
	c->copy.dpitch = dp;
	c->copy.spitch = sp;
	return submit_copy(h, c, kind, wait);
}

hipError_t i_hipMemcpy2D(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows,
			 hipMemcpyKind kind)
{
	return submit_rows(NULL, dst, dp, src, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy2DAsync(void *dst, size_t dp, const void *src, size_t sp, size_t w,
			      size_t rows, hipMemcpyKind kind, hipStream_t h)
{
	return submit_rows(h, dst, dp, src, sp, w, rows, kind, false);
}

size_t array_pitch(const hipArray *a)
{
	return (size_t)a->width * (size_t)((a->desc.x + a->desc.y + a->desc.z + a->desc.w + 7) / 8);
}

struct sim_command *copy3d_command(const hipMemcpy3DParms *p, hipError_t *e)
{
	size_t dp, sp, dr, sr;
	size_t scale = 1;
	char *d;
	const char *s;
	struct sim_command *c;

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
	c = sim_copy_command();
	c->copy.dpitch = dp;
	c->copy.spitch = sp;
	c->copy.dslice = dp * dr;
	c->copy.sslice = sp * sr;
	c->copy.dst = d + p->dstPos.z * c->copy.dslice + p->dstPos.y * dp +
		      p->dstPos.x * (p->dstArray ? scale : 1);
	c->copy.src = s + p->srcPos.z * c->copy.sslice + p->srcPos.y * sp +
		      p->srcPos.x * (p->srcArray ? scale : 1);
	c->copy.width = p->extent.width * scale;
	c->copy.height = p->extent.height;
	c->copy.depth = p->extent.depth;
	*e = hipSuccess;
	return c;
}

hipError_t submit_copy3d(const hipMemcpy3DParms *p, hipStream_t h, bool wait)
{
	hipError_t e;
	struct sim_command *c = copy3d_command(p, &e);

	return c ? submit_copy(h, c, p->kind, wait) : e;
}

hipError_t i_hipMemcpy3D(const struct hipMemcpy3DParms *p)
{
	return submit_copy3d(p, NULL, true);
}

hipError_t i_hipMemcpy3DAsync(const struct hipMemcpy3DParms *p, hipStream_t h)
{
	return submit_copy3d(p, h, false);
}

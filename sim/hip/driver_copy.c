/* SPDX-License-Identifier: MIT */
/* Copies that the driver API describes by a structure. */
#include "device/command.h"
#include "device/transfer.h"
#include "hip/copy.h"
#include "hip/driver_box.h"
#include "hip/entry_points.h"
#include "hip/version.h"

struct sim_command *driver_copy3d_command(const HIP_MEMCPY3D *params)
{
	struct driver_box p;
	struct sim_command *c;
	char *d;
	const char *s;

	if (!params)
		return NULL;
	p = driver_box(params, V6);
	d = p.dhost ? p.dhost : p.darr ? p.darr->data : p.ddev;
	s = p.shost ? p.shost : p.sarr ? p.sarr->data : p.sdev;
	if (!d || !s)
		return NULL;
	c = sim_copy_command();
	c->copy.dpitch = p.dp ? p.dp : p.w;
	c->copy.spitch = p.sp ? p.sp : p.w;
	c->copy.dslice = c->copy.dpitch * (p.dr ? p.dr : p.h);
	c->copy.sslice = c->copy.spitch * (p.sr ? p.sr : p.h);
	c->copy.dst = d + p.dz * c->copy.dslice + p.dy * c->copy.dpitch + p.dx;
	c->copy.src = s + p.sz * c->copy.sslice + p.sy * c->copy.spitch + p.sx;
	c->copy.width = p.w;
	c->copy.height = p.h;
	c->copy.depth = p.d;
	return c;
}

static hipError_t drv3d(const HIP_MEMCPY3D *p, hipStream_t h, bool wait)
{
	struct sim_command *c = driver_copy3d_command(p);

	return c ? submit_copy(h, c, hipMemcpyDefault, wait) : hipErrorInvalidValue;
}

hipError_t i_hipDrvMemcpy3D(const HIP_MEMCPY3D *p)
{
	return drv3d(p, NULL, true);
}

hipError_t i_hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *p, hipStream_t h)
{
	return drv3d(p, h, false);
}

static hipError_t param2d(const hip_Memcpy2D *p, hipStream_t h, bool wait)
{
	char *d;
	const char *s;
	size_t dp, sp;

	if (!p)
		return hipErrorInvalidValue;
	/* The numbers of the memory types changed in 6.0, so the pointers that are set decide. */
	d = p->dstHost && !p->dstDevice ? p->dstHost :
	    p->dstArray                 ? p->dstArray->data :
					  p->dstDevice;
	s = p->srcHost && !p->srcDevice ? p->srcHost :
	    p->srcArray                 ? p->srcArray->data :
					  p->srcDevice;
	dp = p->dstPitch ? p->dstPitch : p->WidthInBytes;
	sp = p->srcPitch ? p->srcPitch : p->WidthInBytes;
	if (!d || !s)
		return hipErrorInvalidValue;
	return submit_rows(h, d + p->dstY * dp + p->dstXInBytes, dp,
			   s + p->srcY * sp + p->srcXInBytes, sp, p->WidthInBytes, p->Height,
			   hipMemcpyDefault, wait);
}

hipError_t i_hipMemcpyParam2D(const hip_Memcpy2D *p)
{
	return param2d(p, NULL, true);
}

hipError_t i_hipMemcpyParam2DAsync(const hip_Memcpy2D *p, hipStream_t h)
{
	return param2d(p, h, false);
}

hipError_t i_hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *p)
{
	return param2d(p, NULL, true);
}

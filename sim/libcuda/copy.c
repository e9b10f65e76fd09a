/* SPDX-License-Identifier: MIT */
/* Copies and memsets. */
#include "libcuda/call.h"
#include "libcuda/copy.h"

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	RUN(cuMemcpy, NEEDS_CONTEXT, i_hipMemcpy(memory(dst), memory(src), n, hipMemcpyDefault));
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	RUN(cuMemcpyAsync, NEEDS_CONTEXT,
	    i_hipMemcpyAsync(memory(dst), memory(src), n, hipMemcpyDefault, stream_arg(s)));
}

static void *side(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : memory(device);
}

static hipError_t rows(const CUDA_MEMCPY2D *c, hipStream_t s, bool wait)
{
	char *dst = side(c->dstMemoryType, c->dstHost, c->dstDevice);
	const char *src = side(c->srcMemoryType, c->srcHost, c->srcDevice);

	dst += c->dstY * c->dstPitch + c->dstXInBytes;
	src += c->srcY * c->srcPitch + c->srcXInBytes;
	return wait ? i_hipMemcpy2D(dst, c->dstPitch, src, c->srcPitch, c->WidthInBytes, c->Height,
				    hipMemcpyDefault) :
		      i_hipMemcpy2DAsync(dst, c->dstPitch, src, c->srcPitch, c->WidthInBytes,
					 c->Height, hipMemcpyDefault, s);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	RUN(cuMemcpy2DUnaligned, NEEDS_CONTEXT, rows(c, NULL, true));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream s)
{
	RUN(cuMemcpy2DAsync, NEEDS_CONTEXT, rows(c, stream_arg(s), false));
}

hipMemcpy3DParms box_of(const CUDA_MEMCPY3D *c)
{
	return (hipMemcpy3DParms){
		.srcPtr = {side(c->srcMemoryType, c->srcHost, c->srcDevice), c->srcPitch,
			   c->srcPitch, c->srcHeight},
		.srcPos = {c->srcXInBytes, c->srcY, c->srcZ},
		.dstPtr = {side(c->dstMemoryType, c->dstHost, c->dstDevice), c->dstPitch,
			   c->dstPitch, c->dstHeight},
		.dstPos = {c->dstXInBytes, c->dstY, c->dstZ},
		.extent = {c->WidthInBytes, c->Height, c->Depth},
		.kind = hipMemcpyDefault,
	};
}

static hipError_t box(const CUDA_MEMCPY3D *c, hipStream_t s, bool wait)
{
	hipMemcpy3DParms p = box_of(c);

	return wait ? i_hipMemcpy3D(&p) : i_hipMemcpy3DAsync(&p, s);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
	RUN(cuMemcpy3D, NEEDS_CONTEXT, box(c, NULL, true));
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream s)
{
	RUN(cuMemcpy3DAsync, NEEDS_CONTEXT, box(c, stream_arg(s), false));
}

/* ---- memsets ---- */

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n)
{
	RUN(cuMemsetD8, NEEDS_CONTEXT, i_hipMemsetD8(memory(p), v, n));
}

CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n)
{
	RUN(cuMemsetD16, NEEDS_CONTEXT, i_hipMemsetD16(memory(p), v, n));
}

CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned v, size_t n)
{
	RUN(cuMemsetD32, NEEDS_CONTEXT, i_hipMemsetD32(memory(p), (int)v, n));
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s)
{
	RUN(cuMemsetD8Async, NEEDS_CONTEXT, i_hipMemsetD8Async(memory(p), v, n, stream_arg(s)));
}

CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, CUstream s)
{
	RUN(cuMemsetD16Async, NEEDS_CONTEXT, i_hipMemsetD16Async(memory(p), v, n, stream_arg(s)));
}

CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream s)
{
	RUN(cuMemsetD32Async, NEEDS_CONTEXT,
	    i_hipMemsetD32Async(memory(p), (int)v, n, stream_arg(s)));
}

CUresult cuMemsetD2D8_v2(CUdeviceptr p, size_t pitch, unsigned char v, size_t width, size_t n)
{
	RUN(cuMemsetD2D8, NEEDS_CONTEXT, i_hipMemsetD2D8(memory(p), pitch, v, width, n));
}

CUresult cuMemsetD2D16_v2(CUdeviceptr p, size_t pitch, unsigned short v, size_t width, size_t n)
{
	RUN(cuMemsetD2D16, NEEDS_CONTEXT, i_hipMemsetD2D16(memory(p), pitch, v, width, n));
}

CUresult cuMemsetD2D32_v2(CUdeviceptr p, size_t pitch, unsigned v, size_t width, size_t n)
{
	RUN(cuMemsetD2D32, NEEDS_CONTEXT, i_hipMemsetD2D32(memory(p), pitch, v, width, n));
}

CUresult cuMemsetD2D8Async(CUdeviceptr p, size_t pitch, unsigned char v, size_t width, size_t n,
			   CUstream s)
{
	RUN(cuMemsetD2D8Async, NEEDS_CONTEXT,
	    i_hipMemsetD2D8Async(memory(p), pitch, v, width, n, stream_arg(s)));
}

CUresult cuMemsetD2D16Async(CUdeviceptr p, size_t pitch, unsigned short v, size_t width, size_t n,
			    CUstream s)
{
	RUN(cuMemsetD2D16Async, NEEDS_CONTEXT,
	    i_hipMemsetD2D16Async(memory(p), pitch, v, width, n, stream_arg(s)));
}

CUresult cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned v, size_t width, size_t n,
			    CUstream s)
{
	RUN(cuMemsetD2D32Async, NEEDS_CONTEXT,
	    i_hipMemsetD2D32Async(memory(p), pitch, v, width, n, stream_arg(s)));
}

/* SPDX-License-Identifier: MIT */
/* The _spt variants, in which the default stream means the per-thread stream. */
#include "hip/copy.h"
#include "hip/entry_points.h"
#include "hip/memset.h"

static hipStream_t default_stream(hipStream_t h)
{
	return h ? h : hipStreamPerThread;
}

hipError_t i_hipMemcpyAsync_spt(void *d, const void *s, size_t n, hipMemcpyKind k,
				hipStream_t h)
{
	return i_hipMemcpyAsync(d, s, n, k, default_stream(h));
}

hipError_t i_hipMemcpy2DAsync_spt(void *d, size_t dp, const void *s, size_t sp, size_t w,
				  size_t rows, hipMemcpyKind k, hipStream_t h)
{
	return i_hipMemcpy2DAsync(d, dp, s, sp, w, rows, k, default_stream(h));
}

hipError_t i_hipMemcpy3DAsync_spt(const struct hipMemcpy3DParms *p, hipStream_t h)
{
	return i_hipMemcpy3DAsync(p, default_stream(h));
}

hipError_t i_hipMemcpy2DToArray_spt(hipArray *d, size_t x, size_t y, const void *s, size_t sp,
				    size_t w, size_t rows, hipMemcpyKind k)
{
	return i_hipMemcpy2DToArray(d, x, y, s, sp, w, rows, k);
}

hipError_t i_hipMemcpy2DToArrayAsync_spt(hipArray *d, size_t x, size_t y, const void *s,
					 size_t sp, size_t w, size_t rows, hipMemcpyKind k,
					 hipStream_t h)
{
	return i_hipMemcpy2DToArrayAsync(d, x, y, s, sp, w, rows, k, default_stream(h));
}

hipError_t i_hipMemcpy2DFromArray_spt(void *d, size_t dp, hipArray_const_t s, size_t x,
				      size_t y, size_t w, size_t rows, hipMemcpyKind k)
{
	return i_hipMemcpy2DFromArray(d, dp, s, x, y, w, rows, k);
}

hipError_t i_hipMemcpy2DFromArrayAsync_spt(void *d, size_t dp, hipArray_const_t s, size_t x,
					   size_t y, size_t w, size_t rows, hipMemcpyKind k,
					   hipStream_t h)
{
	return i_hipMemcpy2DFromArrayAsync(d, dp, s, x, y, w, rows, k, default_stream(h));
}

hipError_t i_hipMemcpyFromArray_spt(void *d, hipArray_const_t s, size_t x, size_t y, size_t n,
				    hipMemcpyKind k)
{
	return i_hipMemcpyFromArray(d, s, x, y, n, k);
}

hipError_t i_hipMemcpyToSymbol_spt(const void *sym, const void *s, size_t n, size_t off,
				   hipMemcpyKind k)
{
	return i_hipMemcpyToSymbol(sym, s, n, off, k);
}

hipError_t i_hipMemcpyToSymbolAsync_spt(const void *sym, const void *s, size_t n, size_t off,
					hipMemcpyKind k, hipStream_t h)
{
	return i_hipMemcpyToSymbolAsync(sym, s, n, off, k, default_stream(h));
}

hipError_t i_hipMemcpyFromSymbol_spt(void *d, const void *sym, size_t n, size_t off,
				     hipMemcpyKind k)
{
	return i_hipMemcpyFromSymbol(d, sym, n, off, k);
}

hipError_t i_hipMemcpyFromSymbolAsync_spt(void *d, const void *sym, size_t n, size_t off,
					  hipMemcpyKind k, hipStream_t h)
{
	return i_hipMemcpyFromSymbolAsync(d, sym, n, off, k, default_stream(h));
}

hipError_t i_hipMemsetAsync_spt(void *d, int v, size_t n, hipStream_t h)
{
	return i_hipMemsetAsync(d, v, n, default_stream(h));
}

hipError_t i_hipMemset2DAsync_spt(void *d, size_t pitch, int v, size_t w, size_t rows,
				  hipStream_t h)
{
	return i_hipMemset2DAsync(d, pitch, v, w, rows, default_stream(h));
}

hipError_t i_hipMemset3DAsync_spt(hipPitchedPtr p, int v, hipExtent x, hipStream_t h)
{
	return i_hipMemset3DAsync(p, v, x, default_stream(h));
}

hipError_t i_hipStreamQuery_spt(hipStream_t h)
{
	return i_hipStreamQuery(default_stream(h));
}

hipError_t i_hipStreamSynchronize_spt(hipStream_t h)
{
	return i_hipStreamSynchronize(default_stream(h));
}

hipError_t i_hipStreamGetPriority_spt(hipStream_t h, int *p)
{
	return i_hipStreamGetPriority(default_stream(h), p);
}

hipError_t i_hipStreamGetFlags_spt(hipStream_t h, unsigned *f)
{
	return i_hipStreamGetFlags(default_stream(h), f);
}

hipError_t i_hipStreamWaitEvent_spt(hipStream_t h, hipEvent_t e, unsigned f)
{
	return i_hipStreamWaitEvent(default_stream(h), e, f);
}

hipError_t i_hipStreamAddCallback_spt(hipStream_t h, hipStreamCallback_t cb, void *arg,
				      unsigned f)
{
	return i_hipStreamAddCallback(default_stream(h), cb, arg, f);
}

hipError_t i_hipEventRecord_spt(hipEvent_t e, hipStream_t h)
{
	return i_hipEventRecord(e, default_stream(h));
}

hipError_t i_hipLaunchHostFunc_spt(hipStream_t h, hipHostFn_t fn, void *arg)
{
	return i_hipLaunchHostFunc(default_stream(h), fn, arg);
}

hipError_t i_hipLaunchKernel_spt(const void *f, dim3 g, dim3 b, void **args, size_t shared,
				 hipStream_t h)
{
	return i_hipLaunchKernel(f, g, b, args, shared, default_stream(h));
}

hipError_t i_hipLaunchCooperativeKernel_spt(const void *f, dim3 g, dim3 b, void **args,
					    uint32_t shared, hipStream_t h)
{
	return i_hipLaunchCooperativeKernel(f, g, b, args, shared, default_stream(h));
}

hipError_t i_hipMemset_spt(void *d, int v, size_t n)
{
	return submit_fill(hipStreamPerThread, d, (uint32_t)v, 1, n, 1, 1, 0, 0, false);
}

hipError_t i_hipMemset2D_spt(void *d, size_t pitch, int v, size_t w, size_t rows)
{
	return submit_fill(hipStreamPerThread, d, (uint32_t)v, 1, w, rows, 1, pitch, 0, false);
}

hipError_t i_hipMemset3D_spt(hipPitchedPtr p, int v, hipExtent x)
{
	return submit_fill(hipStreamPerThread, p.ptr, (uint32_t)v, 1, x.width, x.height,
			   x.depth, p.pitch, p.pitch * p.ysize, false);
}

hipError_t i_hipMemcpy_spt(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	return submit_copy(hipStreamPerThread, copy_command(dst, src, n), kind, true);
}

hipError_t i_hipMemcpy2D_spt(void *dst, size_t dp, const void *src, size_t sp, size_t w,
			     size_t rows, hipMemcpyKind kind)
{
	return submit_rows(hipStreamPerThread, dst, dp, src, sp, w, rows, kind, true);
}

hipError_t i_hipMemcpy3D_spt(const struct hipMemcpy3DParms *p)
{
	return submit_copy3d(p, hipStreamPerThread, true);
}

hipError_t i_hipGraphLaunch_spt(hipGraphExec_t h, hipStream_t stream)
{
	return i_hipGraphLaunch(h, default_stream(stream));
}

hipError_t i_hipStreamBeginCapture_spt(hipStream_t h, hipStreamCaptureMode mode)
{
	return i_hipStreamBeginCapture(default_stream(h), mode);
}

hipError_t i_hipStreamEndCapture_spt(hipStream_t h, hipGraph_t *out)
{
	return i_hipStreamEndCapture(default_stream(h), out);
}

hipError_t i_hipStreamIsCapturing_spt(hipStream_t h, hipStreamCaptureStatus *status)
{
	return i_hipStreamIsCapturing(default_stream(h), status);
}

hipError_t i_hipStreamGetCaptureInfo_spt(hipStream_t h, hipStreamCaptureStatus *status,
					 unsigned long long *id)
{
	return i_hipStreamGetCaptureInfo(default_stream(h), status, id);
}

hipError_t i_hipStreamGetCaptureInfo_v2_spt(hipStream_t h, hipStreamCaptureStatus *status,
					    unsigned long long *id, hipGraph_t *graph,
					    const hipGraphNode_t **deps, size_t *n)
{
	return i_hipStreamGetCaptureInfo_v2(default_stream(h), status, id, graph, deps, n);
}

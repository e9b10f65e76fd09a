/* SPDX-License-Identifier: MIT */
/* The _spt variants that take no stream. Those that take one are S rows of hip_entries.h. */
#include "hip/copy.h"
#include "hip/entry_points.h"
#include "hip/memset.h"

hipError_t i_hipMemcpy2DToArray_spt(hipArray *d, size_t x, size_t y, const void *s, size_t sp,
				    size_t w, size_t rows, hipMemcpyKind k)
{
	return i_hipMemcpy2DToArray(d, x, y, s, sp, w, rows, k);
}

hipError_t i_hipMemcpy2DFromArray_spt(void *d, size_t dp, hipArray_const_t s, size_t x, size_t y,
				      size_t w, size_t rows, hipMemcpyKind k)
{
	return i_hipMemcpy2DFromArray(d, dp, s, x, y, w, rows, k);
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

hipError_t i_hipMemcpyFromSymbol_spt(void *d, const void *sym, size_t n, size_t off,
				     hipMemcpyKind k)
{
	return i_hipMemcpyFromSymbol(d, sym, n, off, k);
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
	return submit_fill(hipStreamPerThread, p.ptr, (uint32_t)v, 1, x.width, x.height, x.depth,
			   p.pitch, p.pitch * p.ysize, false);
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

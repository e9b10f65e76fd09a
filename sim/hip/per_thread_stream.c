/* SPDX-License-Identifier: MIT */
/* The _spt variants: the default stream means the per-thread stream. */
#include "hip.h"

hipError_t i_hipMemcpyAsync_spt(void *d, const void *s, size_t n, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpyAsync(d, s, n, k, SPT(h)); }
hipError_t i_hipMemcpy2DAsync_spt(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t rows, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpy2DAsync(d, dp, s, sp, w, rows, k, SPT(h)); }
hipError_t i_hipMemcpy3DAsync_spt(const struct hipMemcpy3DParms *p, hipStream_t h) { return i_hipMemcpy3DAsync(p, SPT(h)); }
hipError_t i_hipMemcpy2DToArray_spt(hipArray *d, size_t x, size_t y, const void *s, size_t sp, size_t w, size_t rows, hipMemcpyKind k) { return i_hipMemcpy2DToArray(d, x, y, s, sp, w, rows, k); }
hipError_t i_hipMemcpy2DToArrayAsync_spt(hipArray *d, size_t x, size_t y, const void *s, size_t sp, size_t w, size_t rows, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpy2DToArrayAsync(d, x, y, s, sp, w, rows, k, SPT(h)); }
hipError_t i_hipMemcpy2DFromArray_spt(void *d, size_t dp, hipArray_const_t s, size_t x, size_t y, size_t w, size_t rows, hipMemcpyKind k) { return i_hipMemcpy2DFromArray(d, dp, s, x, y, w, rows, k); }
hipError_t i_hipMemcpy2DFromArrayAsync_spt(void *d, size_t dp, hipArray_const_t s, size_t x, size_t y, size_t w, size_t rows, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpy2DFromArrayAsync(d, dp, s, x, y, w, rows, k, SPT(h)); }
hipError_t i_hipMemcpyFromArray_spt(void *d, hipArray_const_t s, size_t x, size_t y, size_t n, hipMemcpyKind k) { return i_hipMemcpyFromArray(d, s, x, y, n, k); }
hipError_t i_hipMemcpyToSymbol_spt(const void *sym, const void *s, size_t n, size_t off, hipMemcpyKind k) { return i_hipMemcpyToSymbol(sym, s, n, off, k); }
hipError_t i_hipMemcpyToSymbolAsync_spt(const void *sym, const void *s, size_t n, size_t off, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpyToSymbolAsync(sym, s, n, off, k, SPT(h)); }
hipError_t i_hipMemcpyFromSymbol_spt(void *d, const void *sym, size_t n, size_t off, hipMemcpyKind k) { return i_hipMemcpyFromSymbol(d, sym, n, off, k); }
hipError_t i_hipMemcpyFromSymbolAsync_spt(void *d, const void *sym, size_t n, size_t off, hipMemcpyKind k, hipStream_t h) { return i_hipMemcpyFromSymbolAsync(d, sym, n, off, k, SPT(h)); }
hipError_t i_hipMemsetAsync_spt(void *d, int v, size_t n, hipStream_t h) { return i_hipMemsetAsync(d, v, n, SPT(h)); }
hipError_t i_hipMemset2DAsync_spt(void *d, size_t pitch, int v, size_t w, size_t rows, hipStream_t h) { return i_hipMemset2DAsync(d, pitch, v, w, rows, SPT(h)); }
hipError_t i_hipMemset3DAsync_spt(hipPitchedPtr p, int v, hipExtent x, hipStream_t h) { return i_hipMemset3DAsync(p, v, x, SPT(h)); }
hipError_t i_hipStreamQuery_spt(hipStream_t h) { return i_hipStreamQuery(SPT(h)); }
hipError_t i_hipStreamSynchronize_spt(hipStream_t h) { return i_hipStreamSynchronize(SPT(h)); }
hipError_t i_hipStreamGetPriority_spt(hipStream_t h, int *p) { return i_hipStreamGetPriority(SPT(h), p); }
hipError_t i_hipStreamGetFlags_spt(hipStream_t h, unsigned *f) { return i_hipStreamGetFlags(SPT(h), f); }
hipError_t i_hipStreamWaitEvent_spt(hipStream_t h, hipEvent_t e, unsigned f) { return i_hipStreamWaitEvent(SPT(h), e, f); }
hipError_t i_hipStreamAddCallback_spt(hipStream_t h, hipStreamCallback_t cb, void *arg, unsigned f) { return i_hipStreamAddCallback(SPT(h), cb, arg, f); }
hipError_t i_hipEventRecord_spt(hipEvent_t e, hipStream_t h) { return i_hipEventRecord(e, SPT(h)); }
hipError_t i_hipLaunchHostFunc_spt(hipStream_t h, hipHostFn_t fn, void *arg) { return i_hipLaunchHostFunc(SPT(h), fn, arg); }
hipError_t i_hipLaunchKernel_spt(const void *f, dim3 g, dim3 b, void **args, size_t shared, hipStream_t h) { return i_hipLaunchKernel(f, g, b, args, shared, SPT(h)); }
hipError_t i_hipLaunchCooperativeKernel_spt(const void *f, dim3 g, dim3 b, void **args, uint32_t shared, hipStream_t h) { return i_hipLaunchCooperativeKernel(f, g, b, args, shared, SPT(h)); }

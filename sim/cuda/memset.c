/* SPDX-License-Identifier: MIT */
/* Memsets. A memset without a stream runs on the null stream. The driver does not wait for it, and
 * HIP does not promise to. */
#include "cuda/context.h"

/* A fill of n elements; size is that of an element in bytes. */
static CUresult fill(void *p, unsigned value, unsigned size, size_t n, hipStream_t s)
{
	switch (size) {
	case 1: return CU(cuMemsetD8Async, address(p), (unsigned char)value, n, (CUstream)s);
	case 2: return CU(cuMemsetD16Async, address(p), (unsigned short)value, n, (CUstream)s);
	default: return CU(cuMemsetD32Async, address(p), value, n, (CUstream)s);
	}
}

/* The same without a stream. The driver checks captures differently there. */
static CUresult fill_now(void *p, unsigned value, unsigned size, size_t n)
{
	switch (size) {
	case 1: return CU(cuMemsetD8, address(p), (unsigned char)value, n);
	case 2: return CU(cuMemsetD16, address(p), (unsigned short)value, n);
	default: return CU(cuMemsetD32, address(p), value, n);
	}
}

static hipError_t set(void *p, unsigned value, unsigned size, size_t n)
{
	ENTER();
	return n ? to_hip(fill_now(p, value, size, n)) : hipSuccess;
}

static hipError_t set_async(void *p, unsigned value, unsigned size, size_t n, hipStream_t s)
{
	ENTER_STREAM(s);
	return n ? to_hip(fill(p, value, size, n, s)) : hipSuccess;
}

/* Waits for the per-thread stream after a call on it that succeeded. */
static hipError_t wait_own(hipError_t e)
{
	return e ? e : to_hip(CU(cuStreamSynchronize, (CUstream)hipStreamPerThread));
}

hipError_t i_hipMemset(void *p, int v, size_t n)
{
	return set(p, (unsigned)v, 1, n);
}

hipError_t i_hipMemset_spt(void *p, int v, size_t n)
{
	return wait_own(set_async(p, (unsigned)v, 1, n, hipStreamPerThread));
}

hipError_t i_hipMemsetAsync(void *p, int v, size_t n, hipStream_t s)
{
	return set_async(p, (unsigned)v, 1, n, s);
}

hipError_t i_hipMemsetD8(hipDeviceptr_t p, unsigned char v, size_t n)
{
	return set(p, v, 1, n);
}

hipError_t i_hipMemsetD8Async(hipDeviceptr_t p, unsigned char v, size_t n, hipStream_t s)
{
	return set_async(p, v, 1, n, s);
}

hipError_t i_hipMemsetD16(hipDeviceptr_t p, unsigned short v, size_t n)
{
	return set(p, v, 2, n);
}

hipError_t i_hipMemsetD16Async(hipDeviceptr_t p, unsigned short v, size_t n, hipStream_t s)
{
	return set_async(p, v, 2, n, s);
}

hipError_t i_hipMemsetD32(hipDeviceptr_t p, int v, size_t n)
{
	return set(p, (unsigned)v, 4, n);
}

hipError_t i_hipMemsetD32Async(hipDeviceptr_t p, int v, size_t n, hipStream_t s)
{
	return set_async(p, (unsigned)v, 4, n, s);
}

/* ---- rows ---- */

static CUresult fill_rows(void *p, size_t pitch, unsigned value, unsigned size, size_t width,
			  size_t rows, hipStream_t s)
{
	CUstream h = (CUstream)s;
	CUdeviceptr d = address(p);

	switch (size) {
	case 1: return CU(cuMemsetD2D8Async, d, pitch, (unsigned char)value, width, rows, h);
	case 2: return CU(cuMemsetD2D16Async, d, pitch, (unsigned short)value, width, rows, h);
	default: return CU(cuMemsetD2D32Async, d, pitch, value, width, rows, h);
	}
}

static hipError_t rows_async(void *p, size_t pitch, unsigned value, unsigned size, size_t width,
			     size_t rows, hipStream_t s)
{
	ENTER_STREAM(s);
	if (!width || !rows)
		return hipSuccess;
	return to_hip(fill_rows(p, pitch, value, size, width, rows, s));
}

static hipError_t rows_now(void *p, size_t pitch, unsigned value, unsigned size, size_t width,
			   size_t rows)
{
	ENTER();
	if (!width || !rows)
		return hipSuccess;
	switch (size) {
	case 1:
		return to_hip(
			CU(cuMemsetD2D8, address(p), pitch, (unsigned char)value, width, rows));
	case 2:
		return to_hip(
			CU(cuMemsetD2D16, address(p), pitch, (unsigned short)value, width, rows));
	default: return to_hip(CU(cuMemsetD2D32, address(p), pitch, value, width, rows));
	}
}

hipError_t i_hipMemset2D(void *p, size_t pitch, int v, size_t width, size_t height)
{
	return rows_now(p, pitch, (unsigned)v, 1, width, height);
}

hipError_t i_hipMemset2D_spt(void *p, size_t pitch, int v, size_t width, size_t height)
{
	return wait_own(i_hipMemset2DAsync(p, pitch, v, width, height, hipStreamPerThread));
}

hipError_t i_hipMemset2DAsync(void *p, size_t pitch, int v, size_t width, size_t height,
			      hipStream_t s)
{
	return rows_async(p, pitch, (unsigned)v, 1, width, height, s);
}

hipError_t i_hipMemsetD2D8(hipDeviceptr_t p, size_t pitch, unsigned char v, size_t width,
			   size_t height)
{
	return rows_now(p, pitch, v, 1, width, height);
}

hipError_t i_hipMemsetD2D8Async(hipDeviceptr_t p, size_t pitch, unsigned char v, size_t width,
				size_t height, hipStream_t s)
{
	return rows_async(p, pitch, v, 1, width, height, s);
}

hipError_t i_hipMemsetD2D16(hipDeviceptr_t p, size_t pitch, unsigned short v, size_t width,
			    size_t height)
{
	return rows_now(p, pitch, v, 2, width, height);
}

hipError_t i_hipMemsetD2D16Async(hipDeviceptr_t p, size_t pitch, unsigned short v, size_t width,
				 size_t height, hipStream_t s)
{
	return rows_async(p, pitch, v, 2, width, height, s);
}

hipError_t i_hipMemsetD2D32(hipDeviceptr_t p, size_t pitch, unsigned v, size_t width, size_t height)
{
	return rows_now(p, pitch, v, 4, width, height);
}

hipError_t i_hipMemsetD2D32Async(hipDeviceptr_t p, size_t pitch, unsigned v, size_t width,
				 size_t height, hipStream_t s)
{
	return rows_async(p, pitch, v, 4, width, height, s);
}

/* ---- boxes: rows, slice by slice ---- */

hipError_t i_hipMemset3DAsync(hipPitchedPtr p, int v, hipExtent x, hipStream_t s)
{
	CUresult r = 0;

	ENTER_STREAM(s);
	if (!x.width || !x.height)
		return hipSuccess;
	for (size_t z = 0; z < x.depth && !r; z++)
		r = fill_rows((char *)p.ptr + z * p.pitch * p.ysize, p.pitch, (unsigned)v, 1,
			      x.width, x.height, s);
	return to_hip(r);
}

hipError_t i_hipMemset3D(hipPitchedPtr p, int v, hipExtent x)
{
	return i_hipMemset3DAsync(p, v, x, NULL);
}

hipError_t i_hipMemset3D_spt(hipPitchedPtr p, int v, hipExtent x)
{
	return wait_own(i_hipMemset3DAsync(p, v, x, hipStreamPerThread));
}

/* SPDX-License-Identifier: MIT */
/* Memsets. */
#include "device/command.h"
#include "device/transfer.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/memset.h"
#include "hip/submit.h"
#include "hip/thread_state.h"
#include "hip/version.h"

/* Elements that the kernel sets in a row: a multiple of 16 in rows with gaps, if they are not bytes
 * (7.2.4). `room`: bytes behind the last row in the allocation, which are not exceeded here. */
static size_t in_kernel(int elem, size_t w, size_t pitch, size_t room)
{
	size_t n = (w + 15) / 16 * 16;

	return sim_opt.hip >= 702 && elem > 1 && pitch && pitch != w * (size_t)elem &&
			       (n - w) * (size_t)elem <= room ?
		       n :
		       w;
}

hipError_t submit_fill(hipStream_t h, void *dst, uint32_t v, int elem, size_t w, size_t rows,
		       size_t depth, size_t pitch, size_t slice, bool async)
{
	struct sim_alloc a;
	struct sim_command *c;
	size_t n;
	bool wait;
	hipError_t e = async ? hipSuccess : guard_sync_copy();

	if (e)
		return e;
	if (!w || !rows || !depth)
		return hipSuccess;
	n = (depth - 1) * slice + (rows - 1) * pitch + w * (size_t)elem;
	if (!dst || !hip_find(dst, &a))
		return hipErrorInvalidValue;
	if (a.kind == SIM_MAPPED && !(a.access & 1u << current_device()))
		return hipErrorUnknown;
	if (a.hip && a.kind != SIM_MAPPED && n > a.size - ((uintptr_t)dst - a.r.base))
		return hipErrorInvalidValue;
	/* Since 6.0 rows of raw HSA memory must start with the allocation. */
	if (!a.hip && a.kind != SIM_MAPPED && pitch && V6 && (uintptr_t)dst != a.r.base)
		return hipErrorInvalidValue;
	wait = !async && ((uintptr_t)dst != a.r.base || !a.hip || a.sync_memops ||
			  a.kind == SIM_HOST || a.kind == SIM_LOCKED || a.kind == SIM_MANAGED);
	c = sim_fill_command();
	c->fill.dst = dst;
	c->fill.value = v;
	c->fill.elem = elem;
	c->fill.width = in_kernel(elem, w, pitch, a.size - ((uintptr_t)dst - a.r.base) - n);
	c->fill.height = rows;
	c->fill.depth = depth;
	c->fill.pitch = pitch;
	c->fill.slice = slice;
	return submit(h, c, wait);
}

hipError_t i_hipMemset(void *d, int v, size_t n)
{
	return submit_fill(NULL, d, (uint32_t)v, 1, n, 1, 1, 0, 0, false);
}

hipError_t i_hipMemsetAsync(void *d, int v, size_t n, hipStream_t h)
{
	return submit_fill(h, d, (uint32_t)v, 1, n, 1, 1, 0, 0, true);
}

hipError_t i_hipMemsetD8(hipDeviceptr_t d, unsigned char v, size_t n)
{
	return submit_fill(NULL, d, v, 1, n, 1, 1, 0, 0, false);
}

hipError_t i_hipMemsetD8Async(hipDeviceptr_t d, unsigned char v, size_t n, hipStream_t h)
{
	return submit_fill(h, d, v, 1, n, 1, 1, 0, 0, true);
}

hipError_t i_hipMemsetD16(hipDeviceptr_t d, unsigned short v, size_t n)
{
	return submit_fill(NULL, d, v, 2, n, 1, 1, 0, 0, false);
}

hipError_t i_hipMemsetD16Async(hipDeviceptr_t d, unsigned short v, size_t n, hipStream_t h)
{
	return submit_fill(h, d, v, 2, n, 1, 1, 0, 0, true);
}

hipError_t i_hipMemsetD32(hipDeviceptr_t d, int v, size_t n)
{
	return submit_fill(NULL, d, (uint32_t)v, 4, n, 1, 1, 0, 0, false);
}

hipError_t i_hipMemsetD32Async(hipDeviceptr_t d, int v, size_t n, hipStream_t h)
{
	return submit_fill(h, d, (uint32_t)v, 4, n, 1, 1, 0, 0, true);
}

hipError_t i_hipMemset2D(void *d, size_t pitch, int v, size_t w, size_t rows)
{
	return submit_fill(NULL, d, (uint32_t)v, 1, w, rows, 1, pitch, 0, false);
}

hipError_t i_hipMemset2DAsync(void *d, size_t pitch, int v, size_t w, size_t rows, hipStream_t h)
{
	return submit_fill(h, d, (uint32_t)v, 1, w, rows, 1, pitch, 0, true);
}

hipError_t i_hipMemsetD2D8(hipDeviceptr_t d, size_t pitch, unsigned char v, size_t w, size_t rows)
{
	return submit_fill(NULL, d, v, 1, w, rows, 1, pitch, 0, false);
}

hipError_t i_hipMemsetD2D8Async(hipDeviceptr_t d, size_t pitch, unsigned char v, size_t w,
				size_t rows, hipStream_t h)
{
	return submit_fill(h, d, v, 1, w, rows, 1, pitch, 0, true);
}

/* The runtime takes the width for bytes, and sets at least one element in each row. */
static size_t elements(size_t width, size_t element)
{
	return width && width < element ? 1 : width / element;
}

hipError_t i_hipMemsetD2D16(hipDeviceptr_t d, size_t pitch, unsigned short v, size_t w, size_t rows)
{
	return submit_fill(NULL, d, v, 2, elements(w, 2), rows, 1, pitch, 0, false);
}

hipError_t i_hipMemsetD2D16Async(hipDeviceptr_t d, size_t pitch, unsigned short v, size_t w,
				 size_t rows, hipStream_t h)
{
	return submit_fill(h, d, v, 2, elements(w, 2), rows, 1, pitch, 0, true);
}

hipError_t i_hipMemsetD2D32(hipDeviceptr_t d, size_t pitch, unsigned v, size_t w, size_t rows)
{
	return submit_fill(NULL, d, v, 4, elements(w, 4), rows, 1, pitch, 0, false);
}

hipError_t i_hipMemsetD2D32Async(hipDeviceptr_t d, size_t pitch, unsigned v, size_t w, size_t rows,
				 hipStream_t h)
{
	return submit_fill(h, d, v, 4, elements(w, 4), rows, 1, pitch, 0, true);
}

hipError_t i_hipMemset3D(hipPitchedPtr p, int v, hipExtent x)
{
	return submit_fill(NULL, p.ptr, (uint32_t)v, 1, x.width, x.height, x.depth, p.pitch,
			   p.pitch * p.ysize, false);
}

hipError_t i_hipMemset3DAsync(hipPitchedPtr p, int v, hipExtent x, hipStream_t h)
{
	return submit_fill(h, p.ptr, (uint32_t)v, 1, x.width, x.height, x.depth, p.pitch,
			   p.pitch * p.ysize, true);
}

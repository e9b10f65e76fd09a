/* SPDX-License-Identifier: MIT */
/* hipMemcpy2D and its kin, both sides checked against blocks. No lock. */
#include "shim/alloc/last_error.h"
#include "shim/bounds/check.h"
#include "shim/handlers.h"
#include "shim/process/real.h"

#define RETURN_COPY_2D(stream, name, ...) do { \
	if (unlikely(ss_checking)) \
		ss_check_source(dst, src, spitch == dpitch); \
	if (ss_rows_exceed(stream, SS_WRITES, dst, dpitch, width, height) || \
	    ss_rows_exceed(stream, SS_READS, src, spitch, width, height)) \
		return ss_fail(hipErrorInvalidValue); \
	struct ss_waiting copies_ = ss_stream_copies(stream); \
	hipError_t err_ = REAL(name, __VA_ARGS__); \
	ss_waiting_end(ss_core, &copies_); \
	return ss_result(err_); \
} while (0)

hipError_t do_hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, hipMemcpyKind kind)
{
	RETURN_COPY_2D(NULL, hipMemcpy2D, dst, dpitch, src, spitch, width, height, kind);
}

hipError_t do_hipMemcpy2D_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, hipMemcpyKind kind)
{
	RETURN_COPY_2D(SS_PER_THREAD, hipMemcpy2D_spt, dst, dpitch, src, spitch, width, height,
		       kind);
}

hipError_t do_hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			       size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream)
{
	RETURN_COPY_2D(stream, hipMemcpy2DAsync, dst, dpitch, src, spitch, width, height, kind,
		       stream);
}

hipError_t do_hipMemcpy2DAsync_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height, hipMemcpyKind kind,
				   hipStream_t stream)
{
	RETURN_COPY_2D(ss_spt_stream(stream), hipMemcpy2DAsync_spt, dst, dpitch, src, spitch, width,
		       height, kind, stream);
}

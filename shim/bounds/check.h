/* SPDX-License-Identifier: MIT */
/*
 * Tests whether a command would leave a block of ours, or an imported block that is open in this
 * process. A stream of NULL is the null stream.
 */
#ifndef SS_SHIM_CHECK_H
#define SS_SHIM_CHECK_H

#include <hip/hip_runtime_api.h>

#include "shim/check/checker.h"
#include "shim/entries.h"
#include "shim/share/mappings.h"
#include "shim/stream/timeline.h"

/* True if `size` bytes at ptr reach past the end of the block that contains ptr. False for other
 * memory. */
static inline bool ss_exceeds(const void *ptr, size_t size)
{
	uint64_t left;

	if (ss_bytes_left(ss_core, ptr, &left))
		return unlikely(size > (unlikely(ss_checking) ? ss_check_left(ptr, left) : left));
	return ss_import_left(ptr, &left) && unlikely(size > left);
}
/* As ss_exceeds(), and tells the core which device's memory the command uses. The caller makes the
 * stream known (ss_stream_used). The command uses only `rows` of the `size` bytes; NULL: all. */
static inline bool ss_rows_exceed_on(hipStream_t stream, enum ss_access access, const void *ptr,
				     size_t size, const struct ss_check_rows *rows)
{
	if (unlikely(ss_checking) &&
	    !ss_check_access(ss_stream_or_null(stream), access, ptr, size, rows))
		return true;
	if (ss_exceeds(ptr, size))
		return true;
	if (unlikely(atomic_load_explicit(&ss_multi_device, memory_order_relaxed)) && ptr)
		ss_stream_touch(stream, ptr);
	return false;
}
/* The same for a command that uses all of these bytes. */
static inline bool ss_exceeds_on(hipStream_t stream, enum ss_access access, const void *ptr,
				 size_t size)
{
	return ss_rows_exceed_on(stream, access, ptr, size, NULL);
}
/* The same; this function makes the stream known itself. */
bool ss_range_exceeds(hipStream_t stream, enum ss_access access, const void *ptr, size_t size);
/* The same for rows of `width` bytes, which start `pitch` bytes apart. */
bool ss_rows_exceed(hipStream_t stream, enum ss_access access, const void *ptr, size_t pitch,
		    size_t width, size_t rows);
/* As ss_exceeds_on(), for a box in pitched memory. */
bool ss_pitched_exceeds(hipStream_t stream, enum ss_access access, const hipPitchedPtr *p,
			const struct hipPos *at, const hipExtent *box);

/* a * b, or SIZE_MAX. */
size_t ss_times(size_t a, size_t b);
/* Bytes from the first to the last of `rows` rows of `width` bytes. */
size_t ss_rows_bytes(size_t pitch, size_t width, size_t rows);
/* Bytes from the start of pitched memory to the last byte of a box in it. A pitch or a height of 0
 * means rows, or slices, without gaps, as in the runtime's amd::BufferRect. */
size_t ss_box_bytes(const hipPitchedPtr *p, const struct hipPos *at, const hipExtent *box);
/* The bytes of the box, counted from the start of the pitched memory. */
struct ss_check_rows ss_box_rows(const hipPitchedPtr *p, const struct hipPos *at,
				 const hipExtent *box);
/* Bytes of one element of an array; 0: unknown. */
size_t ss_array_element(hipArray_const_t array);

/* ---- descriptions of copies and memsets --------------------------------- */

/* Does the copy leave a block of ours? Reports the copy to the checker. */
bool ss_box_exceeds(const hipMemcpy3DParms *p, hipStream_t stream);
bool ss_box_exceeds_as(const hipMemcpy3DParms *p, hipStream_t stream, enum ss_access source);
/* Would the runtime lose an update of an executable graph's copy node to p (graph_update.c)? */
bool ss_update_is_lost(const hipMemcpy3DParms *p);
/* The memset of a graph node. */
bool ss_memset_exceeds(const hipMemsetParams *p);
/* The driver API's (driver_copy.c). */
bool ss_2d_exceeds(const hip_Memcpy2D *p, hipStream_t stream);
bool ss_3d_exceeds(const HIP_MEMCPY3D *p, hipStream_t stream);
bool ss_drv_memset_exceeds(const void *p);
/* A list of ranges, or a hipMemcpy3DPeerParms (batch.c). */
bool ss_list_exceeds(hipStream_t stream, void *const *list, const size_t *sizes, size_t count);
bool ss_peer_copy_exceeds(const void *p, hipStream_t stream);

#endif

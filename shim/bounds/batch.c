/* SPDX-License-Identifier: MIT */
/*
 * Calls that take a list of copies or ranges (7.1 and later), each checked against blocks. The
 * structures are declared here, because older headers lack them. No lock.
 */
#include <stdint.h>

#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/bounds/check.h"
#include "shim/handlers.h"
#include "shim/process/real.h"

/* hipMemcpyAttributes, and the flags that say that a pointer is the address of a pointer,
 * which the device reads when the copy runs. */
struct attributes {
	int order;
	hipMemLocation src, dst;
	unsigned int flags;
};
#define ORDER_STREAM 1 /* the source is read in the order of the stream */
#define INDIRECT_SRC 0x400
#define INDIRECT_DST 0x800

struct operand {  /* hipMemcpy3DOperand */
	int type; /* 1: a pointer, 2: an array */
	union {
		struct {
			void *ptr;
			size_t row, rows;
			hipMemLocation hint;
		} ptr;
		struct {
			hipArray_t array;
			size_t x, y, z;
		} array;
	};
};

struct box_copy { /* hipMemcpy3DBatchOp */
	struct operand src, dst;
	hipExtent extent;
	int order;
	unsigned int flags;
};

struct peer_copy { /* hipMemcpy3DPeerParms */
	hipArray_t src_array;
	struct hipPos src_pos;
	hipPitchedPtr src;
	int src_device;
	hipArray_t dst_array;
	struct hipPos dst_pos;
	hipPitchedPtr dst;
	int dst_device;
	hipExtent extent;
};

#if HIP_VERSION_MAJOR > 7 || (HIP_VERSION_MAJOR == 7 && HIP_VERSION_MINOR >= 1)
_Static_assert(sizeof(struct attributes) == sizeof(hipMemcpyAttributes) &&
		       sizeof(struct box_copy) == sizeof(struct hipMemcpy3DBatchOp) &&
		       sizeof(struct peer_copy) == sizeof(hipMemcpy3DPeerParms),
	       "as in the headers");
#endif

bool ss_list_exceeds(hipStream_t stream, void *const *list, const size_t *sizes, size_t count)
{
	ss_stream_used(stream);
	for (size_t i = 0; list && sizes && i < count; i++)
		if (ss_exceeds_on(stream, SS_MAY_WRITE, list[i], sizes[i]))
			return true;
	return false;
}

bool ss_peer_copy_exceeds(const void *given, hipStream_t stream)
{
	const struct peer_copy *p = given;
	hipMemcpy3DParms same;

	if (!p)
		return false;
	same = (hipMemcpy3DParms){
		.srcArray = p->src_array,
		.srcPos = p->src_pos,
		.srcPtr = p->src,
		.dstArray = p->dst_array,
		.dstPos = p->dst_pos,
		.dstPtr = p->dst,
		.extent = p->extent,
	};
	return ss_box_exceeds(&same, stream);
}

/* A source that is read before the stream reaches the copy is no read of the stream. */
static enum ss_access source_of(int order)
{
	return order == ORDER_STREAM ? SS_READS : SS_MAY_WRITE;
}

/* The index of the first copy that leaves a block, or `count`. */
static size_t first_exceeding(hipStream_t stream, void *const *dst, void *const *src,
			      const size_t *sizes, size_t count, const struct attributes *attrs,
			      const size_t *which, size_t attr_count)
{
	for (size_t i = 0, at = 0; i < count; i++) {
		enum ss_access source = SS_READS;
		unsigned int flags = 0;

		while (at + 1 < attr_count && which[at + 1] <= i)
			at++;
		if (attr_count && which[at] <= i) {
			flags = attrs[at].flags;
			source = source_of(attrs[at].order);
		}
		if (flags & (INDIRECT_SRC | INDIRECT_DST))
			ss_stream_touch_unknown(stream);
		if (ss_exceeds_on(stream, flags & INDIRECT_DST ? SS_READS : SS_WRITES, dst[i],
				  flags & INDIRECT_DST ? sizeof(void *) : sizes[i]) ||
		    ss_exceeds_on(stream, source, src[i],
				  flags & INDIRECT_SRC ? sizeof(void *) : sizes[i]))
			return i;
	}
	return count;
}

/* Up to 7.2 the runtime makes the copies of a batch without attributes up to the refused copy,
 * whose index is *failed. With attributes it makes none (7.2.4). Later releases check all copies
 * first and set *failed to SIZE_MAX (sources of July 2026). */
hipError_t do_hipMemcpyBatchAsync(void **dst, void **src, size_t *sizes, size_t count,
				  SS_COPY_ATTRIBUTES *attrs, size_t *which, size_t attr_count,
				  size_t *failed, hipStream_t stream)
{
	bool known = attrs && which, first = ss_runtime_at_least(ss_runtime(), 7, 3);
	size_t bad = count;
	hipError_t err;

	ss_stream_used(stream);
	if (dst && src && sizes)
		bad = first_exceeding(stream, dst, src, sizes, count, (const void *)attrs, which,
				      known ? attr_count : 0);
	if (bad == count)
		return ss_result(REAL(hipMemcpyBatchAsync, dst, src, sizes, count, attrs, which,
				      attr_count, failed, stream));
	if (!first && !attr_count && bad) {
		err = REAL(hipMemcpyBatchAsync, dst, src, sizes, bad, NULL, NULL, 0, failed,
			   stream);
		if (err != hipSuccess)
			return ss_result(err);
	}
	if (failed)
		*failed = first ? SIZE_MAX : bad;
	return ss_fail(hipErrorInvalidValue);
}

static bool operand_set(const struct operand *o, const hipExtent *e, size_t element,
			hipPitchedPtr *ptr, hipArray_t *array)
{
	size_t row = o->ptr.row ? o->ptr.row : e->width;

	if (o->type == 2) {
		*array = o->array.array;
		return true;
	}
	if (__builtin_mul_overflow(row, element, &row))
		return false;
	*ptr = (hipPitchedPtr){
		.ptr = o->ptr.ptr, .pitch = row, .ysize = o->ptr.rows ? o->ptr.rows : e->height};
	return true;
}

static bool exceeds(const struct box_copy *op, hipStream_t stream)
{
	hipMemcpy3DParms p = {.extent = op->extent};
	size_t element = op->src.type == 2 ? ss_array_element(op->src.array.array) :
			 op->dst.type == 2 ? ss_array_element(op->dst.array.array) :
					     1;

	return !operand_set(&op->src, &op->extent, element, &p.srcPtr, &p.srcArray) ||
	       !operand_set(&op->dst, &op->extent, element, &p.dstPtr, &p.dstArray) ||
	       ss_box_exceeds_as(&p, stream, source_of(op->order));
}

/* Every release makes the copies one after the other. */
hipError_t do_hipMemcpy3DBatchAsync(size_t count, SS_COPY_OPS *ops, size_t *failed,
				    unsigned long long flags, hipStream_t stream)
{
	const struct box_copy *list = (const void *)ops;
	size_t good = 0;
	hipError_t err;

	ss_stream_used(stream);
	while (list && good < count && !exceeds(&list[good], stream))
		good++;
	if (!list || good == count || flags)
		return ss_result(REAL(hipMemcpy3DBatchAsync, count, ops, failed, flags, stream));
	if (good) {
		err = REAL(hipMemcpy3DBatchAsync, good, ops, failed, flags, stream);
		if (err != hipSuccess)
			return ss_result(err);
	}
	if (failed)
		*failed = good;
	return ss_fail(hipErrorInvalidValue);
}

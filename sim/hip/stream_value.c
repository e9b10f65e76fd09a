/* SPDX-License-Identifier: MIT */
/*
 * Streams that write values to memory, or wait for them. Up to 7.14 they do so at once, even while
 * the stream captures. Since 7.15 (ROCm 10.0) a capture takes the command as a node.
 */
#include "device/address_map.h"
#include "device/command.h"
#include "device/device_queues.h"
#include "device/queue.h"
#include "device/stream_value.h"
#include "device/macros.h"
#include "hip/capture.h"
#include "hip/entry_points.h"
#include "hip/handle.h"
#include "hip/submit.h"
#include "hip/version.h"

_Static_assert(hipStreamWaitValueGte == (int)SIM_VALUE_GTE &&
		       hipStreamWaitValueEq == (int)SIM_VALUE_EQ &&
		       hipStreamWaitValueAnd == (int)SIM_VALUE_AND &&
		       hipStreamWaitValueNor == (int)SIM_VALUE_NOR,
	       "flags pass through as numbers");

/* Enqueues a command on memory at p, which HIP or HSA must know: malloc's is refused. */
static hipError_t enqueue_value(hipStream_t h, const void *p, struct sim_command *c)
{
	struct sim_alloc a;
	struct sim_queue *q;
	struct stream *s;
	hipError_t e = p && sim_find(p, &a) ? resolve(h, &q, &s) : hipErrorInvalidValue;

	if (e) {
		sim_command_free(c);
		return e;
	}
	if (unlikely(V7_15 && s && atomic_load(&captures_live)) && capture_submit(s, c, &e)) {
		sim_queue_unref(q);
		return e;
	}
	sim_enqueue(q, c);
	sim_queue_unref(q);
	return hipSuccess;
}

static hipError_t write_value(hipStream_t h, void *p, uint64_t v, bool wide)
{
	return enqueue_value(h, p, sim_write_value_command(p, v, wide));
}

static hipError_t wait_value(hipStream_t h, void *p, uint64_t v, unsigned flags, uint64_t mask,
			     bool wide)
{
	if (flags > hipStreamWaitValueNor)
		return hipErrorInvalidValue;
	return enqueue_value(
		h, p, sim_wait_value_command(p, v, mask, (enum sim_value_condition)flags, wide));
}

hipError_t i_hipStreamWriteValue32(hipStream_t h, void *p, uint32_t v, unsigned flags)
{
	return write_value(h, p, v, false);
}

hipError_t i_hipStreamWriteValue64(hipStream_t h, void *p, uint64_t v, unsigned flags)
{
	return write_value(h, p, v, true);
}

hipError_t i_hipStreamWaitValue32(hipStream_t h, void *p, uint32_t v, unsigned flags, uint32_t mask)
{
	return wait_value(h, p, v, flags, mask, false);
}

hipError_t i_hipStreamWaitValue64(hipStream_t h, void *p, uint64_t v, unsigned flags, uint64_t mask)
{
	return wait_value(h, p, v, flags, mask, true);
}

/* hipStreamBatchMemOpParams of 6.4: a union of 48 bytes. */
struct batch_op {
	int op;
	void *address;
	uint64_t value;
	unsigned flags;
	void *alias;
	uint64_t pad;
};

enum { OP_WAIT_32 = 1, OP_WRITE_32, OP_FLUSH, OP_WAIT_64, OP_WRITE_64 };

static hipError_t batch_op(hipStream_t h, const struct batch_op *op)
{
	switch (op->op) {
	case OP_WAIT_32: return wait_value(h, op->address, op->value, op->flags, ~0ULL, false);
	case OP_WAIT_64: return wait_value(h, op->address, op->value, op->flags, ~0ULL, true);
	case OP_WRITE_32: return write_value(h, op->address, op->value, false);
	case OP_WRITE_64: return write_value(h, op->address, op->value, true);
	case OP_FLUSH: return hipSuccess;
	}
	return hipErrorInvalidValue;
}

hipError_t i_hipStreamBatchMemOp(hipStream_t h, unsigned count, void *params, unsigned flags)
{
	struct batch_op *op = params;

	if (!op || !count || count > 256 || flags)
		return hipErrorInvalidValue;
	for (unsigned i = 0; i < count; i++) {
		hipError_t e = batch_op(h, &op[i]);

		if (e)
			return e;
	}
	return hipSuccess;
}

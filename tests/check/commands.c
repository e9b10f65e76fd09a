/* SPDX-License-Identifier: MIT */
/* Commands that are neither plain copies nor kernels, calls that fail, and several devices. */
#include <dlfcn.h>

#include "corpus.h"

static void *block_of_1(hipStream_t on)
{
	void *p;

	OK(hipSetDevice(1));
	p = block(on);
	OK(hipSetDevice(0));
	return p;
}

/* `later` waits for what is on a stream of device 1. */
static void order_of_1(hipStream_t on, hipStream_t later)
{
	hipEvent_t e;

	OK(hipSetDevice(1));
	e = mark(on);
	OK(hipSetDevice(0));
	OK(hipStreamWaitEvent(later, e, 0));
	OK(hipEventDestroy(e));
}

static void refused(hipError_t err)
{
	if (err == hipSuccess)
		exit(2);
}

static void until_elapsed(hipEvent_t from, hipEvent_t to)
{
	float ms;

	while (hipEventElapsedTime(&ms, from, to) == hipErrorNotReady)
		;
}

static hipEvent_t timed(hipStream_t on)
{
	hipEvent_t e;

	OK(hipEventCreate(&e));
	OK(hipEventRecord(e, on));
	return e;
}

/* ---- wrong ones ---------------------------------------------------------------- */

static void elapsed_time_of_another_stream(void)
{
	hipEvent_t from = timed(b), to = timed(b);
	void *p = block(a);

	until_elapsed(from, to);
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void wait_for_another_device(void)
{
	hipStream_t s = stream_of_1();
	void *p = block_of_1(s);

	OK(hipDeviceSynchronize()); /* for device 0 */
	fill(p, a);
	order(a, s);
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
}

static void null_stream_of_another_device(void)
{
	void *p = block(NULL);

	OK(hipSetDevice(1));
	fill(p, NULL);
	OK(hipStreamSynchronize(NULL));
	OK(hipSetDevice(0));
	OK(hipFreeAsync(p, NULL));
}

static void peer_copy_after_free(void)
{
	hipStream_t s = stream_of_1();
	void *p = block(a), *q = block_of_1(s);

	OK(hipFreeAsync(p, a));
	order(a, s);
	OK(hipMemcpyPeerAsync(q, 1, p, 0, BYTES, s));
	OK(hipFreeAsync(q, s));
	OK(hipStreamSynchronize(s));
}

static void value_written_after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipStreamWriteValue32(a, p, 1, 0));
}

static void value_written_before_allocation(void)
{
	void *p = block(a);

	OK(hipStreamWriteValue64(b, p, 1, 0));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
}

/* A release that lacks the call leaves the program out. */
static hipError_t batch(hipStream_t on, void *p)
{
	hipError_t (*call)(hipStream_t, unsigned, void *, unsigned) = (hipError_t(*)(
		hipStream_t, unsigned, void *, unsigned))dlsym(RTLD_DEFAULT, "hipStreamBatchMemOp");
	struct {
		int op; /* 2 writes 4 bytes */
		void *at;
		uint64_t value, rest[3];
	} ops[] = {{.op = 2, .at = p, .value = 1}};

	if (!call)
		exit(77);
	return call(on, 1, ops, 0);
}

static void batch_after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(batch(a, p));
}

static void refused_copy_and_free_elsewhere(void)
{
	void *p = block(a), *q = block(b);

	order(a, b);
	refused(hipMemcpyAsync(q, (char *)p + 1, BYTES, hipMemcpyDeviceToDevice, b));
	OK(hipFreeAsync(p, a)); /* b uses nothing */
	OK(hipFreeAsync(q, b));
}

static void refused_copy_that_waits(void)
{
	static char here[BYTES + 1];
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	refused(hipMemcpy(here, p, BYTES + 1, hipMemcpyDeviceToHost));
	OK(hipFreeAsync(p, a));
}

static void host_memory_freed_twice(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	OK(hipHostFree(host));
	refused(hipHostFree(host));
}

const struct program wrong_commands[] = {
	{"elapsed-time-of-another-stream", elapsed_time_of_another_stream,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"wait-for-another-device", wait_for_another_device, "use-before-alloc hipMemsetAsync 1 4"},
	{"null-stream-of-another-device", null_stream_of_another_device,
	 "use-before-alloc hipMemsetAsync 5 4"},
	{"peer-copy-after-free", peer_copy_after_free, "use-after-free hipMemcpyPeerAsync 4 1"},
	{"value-written-after-free", value_written_after_free,
	 "use-after-free hipStreamWriteValue32 1 1"},
	{"value-written-before-allocation", value_written_before_allocation,
	 "use-before-alloc hipStreamWriteValue64 2 1"},
	{"batch-after-free", batch_after_free, "use-after-free hipStreamBatchMemOp 1 1"},
	{"refused-copy-and-free-elsewhere", refused_copy_and_free_elsewhere,
	 "out-of-bounds hipMemcpyAsync 2 1"},
	{"refused-copy-that-waits", refused_copy_that_waits, "out-of-bounds hipMemcpy 4 1"},
	{"host-memory-freed-twice", host_memory_freed_twice, "double-free hipHostFree 0 0"},
	{NULL, NULL, NULL},
};

/* ---- right ones ----------------------------------------------------------------- */

/* Both events have been reached once the time between them is known. */
static void elapsed_time(void)
{
	void *p = block(a);

	until_elapsed(timed(a), timed(a));
	fill(p, b);
	until_elapsed(timed(b), timed(b));
	OK(hipFreeAsync(p, c));
}

static void wait_for_the_device(void)
{
	hipStream_t s = stream_of_1();
	void *p = block_of_1(s);

	OK(hipSetDevice(1));
	OK(hipDeviceSynchronize());
	OK(hipSetDevice(0));
	fill(p, a);
	OK(hipDeviceSynchronize());
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
}

/* A wait for a device ends what its streams have waited for on another one. */
static void wait_for_the_device_that_waited(void)
{
	hipStream_t s = stream_of_1();
	void *p = block_of_1(s);

	order_of_1(s, b);
	OK(hipDeviceSynchronize());
	fill(p, a);
	OK(hipDeviceSynchronize());
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
}

static void peer_copy_in_order(void)
{
	hipStream_t s = stream_of_1();
	void *p = block(a), *q = block_of_1(s);

	order(a, s);
	OK(hipMemcpyPeerAsync(q, 1, p, 0, BYTES, s));
	order_of_1(s, a);
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, s));
	OK(hipStreamSynchronize(s));
}

static void refused_by_the_runtime(void)
{
	void *p = block(a), *q = block(b);

	order(a, b);
	refused(hipMemcpyAsync(q, p, BYTES, (hipMemcpyKind)99, b));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, b));
}

/* The last row of a picture need not be as long as the others. */
static void rows_to_the_last_byte(void)
{
	size_t flat = 128 * 7 + 50, box = 64 * (8 * 2 + 7) + 10;
	struct hipExtent extent = {10, 8, 3};
	hipMemcpy3DParms copy = {.extent = extent, .kind = hipMemcpyDeviceToDevice};
	void *p, *q;

	OK(hipMallocAsync(&p, flat, a));
	OK(hipMallocAsync(&q, flat, a));
	OK(hipMemcpy2DAsync(p, 128, q, 128, 50, 8, hipMemcpyDeviceToDevice, a));
	OK(hipMemset2DAsync(p, 128, 3, 50, 8, a));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
	OK(hipMallocAsync(&p, box, a));
	OK(hipMallocAsync(&q, box, a));
	copy.srcPtr = (hipPitchedPtr){q, 64, 64, 8};
	copy.dstPtr = (hipPitchedPtr){p, 64, 64, 8};
	OK(hipMemcpy3DAsync(&copy, a));
	OK(hipMemset3DAsync(copy.dstPtr, 0, extent, a));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
}

static void no_bytes_after_free(void)
{
	void *p = block(a), *q = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipMemcpyAsync(q, p, 0, hipMemcpyDeviceToDevice, a));
	OK(hipMemsetAsync(p, 0, 0, b));
	OK(hipFreeAsync(q, a));
}

static void value_in_order(void)
{
	void *p = block(a);

	OK(hipStreamWriteValue32(a, p, 1, 0));
	OK(hipStreamWaitValue32(a, p, 1, hipStreamWaitValueGte, ~0u));
	OK(hipFreeAsync(p, a));
}

/* Each call fails as the program expects. */
static void failing_calls(void)
{
	hipEvent_t e = NULL;
	void *p = NULL, *h = NULL;

	for (int i = 0; i < 3; i++) {
		refused(hipMalloc(&p, (size_t)1 << 60));
		refused(hipMallocAsync(NULL, 16, a));
		refused(hipHostMalloc(&h, (size_t)1 << 60, 0));
		refused(hipEventRecord(e, a));
		refused(hipStreamWaitEvent(a, e, 0));
		refused(hipMemcpyAsync(p, NULL, BYTES, hipMemcpyDeviceToDevice, a));
		(void)hipGetLastError();
		(void)hipPeekAtLastError();
		(void)hipStreamQuery(a); /* perhaps not yet */
	}
}

const struct program right_commands[] = {
#define P(name) {"right-" #name, name, NULL}
	P(elapsed_time),        P(wait_for_the_device),    P(wait_for_the_device_that_waited),
	P(peer_copy_in_order),  P(refused_by_the_runtime), P(rows_to_the_last_byte),
	P(no_bytes_after_free), P(value_in_order),         P(failing_calls),
	{NULL, NULL, NULL},
};

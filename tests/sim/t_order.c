/* SPDX-License-Identifier: MIT */
/*
 * Streams run late: null-stream joins, non-blocking streams, events that bind
 * to the record they saw, destroy without waiting, write and wait values.
 */
#include "test.h"

static char *buf;

static int at(int i)
{
	return __atomic_load_n(&buf[i], __ATOMIC_ACQUIRE);
}

static void settle(void)
{
	usleep(20000);
}

int main(void)
{
	hipStream_t a, b, nb, c;
	hipEvent_t ev, ev2;
	uint64_t *flag;
	float ms;

	OK(hipHostMalloc((void **)&buf, 4096, 0));
	OK(hipHostMalloc((void **)&flag, 4096, 0));
	OK(hipStreamCreate(&a));
	OK(hipStreamCreate(&b));
	OK(hipStreamCreateWithFlags(&nb, hipStreamNonBlocking));
	OK(hipEventCreate(&ev));
	OK(hipEventCreate(&ev2));

	/* Held streams do nothing; others go on. */
	stall(a);
	OK(hipMemsetAsync(buf, 1, 1, a));
	OK(hipMemsetAsync(buf + 1, 1, 1, b));
	OK(hipStreamSynchronize(b));
	settle();
	CHECK(at(0) == 0 && at(1) == 1);
	EXPECT(hipStreamQuery(a), hipErrorNotReady);
	EXPECT(hipStreamQuery(NULL), hipErrorNotReady);

	/* Null waits for blocking streams, not for the others; later work of
	 * blocking streams waits for null. */
	OK(hipMemsetAsync(buf + 2, 1, 1, NULL));
	OK(hipMemsetAsync(buf + 3, 1, 1, b));
	OK(hipMemsetAsync(buf + 4, 1, 1, nb));
	OK(hipStreamSynchronize(nb));
	settle();
	CHECK(at(2) == 0 && at(3) == 0 && at(4) == 1);
	release(a);
	OK(hipStreamSynchronize(b));
	CHECK(at(0) == 1 && at(2) == 1 && at(3) == 1);

	/* Nothing enqueued on null: no join between a and b. */
	stall(a);
	OK(hipMemsetAsync(buf + 5, 1, 1, a));
	EXPECT(hipStreamQuery(NULL), hipErrorNotReady);
	OK(hipMemsetAsync(buf + 6, 1, 1, b));
	OK(hipStreamSynchronize(b));
	CHECK(at(5) == 0 && at(6) == 1);

	/* A wait binds to the record it saw, not to a later one. */
	OK(hipEventRecord(ev, nb));
	OK(hipStreamSynchronize(nb));
	OK(hipStreamWaitEvent(b, ev, 0));
	OK(hipEventRecord(ev, a));
	EXPECT(hipEventQuery(ev), hipErrorNotReady);
	OK(hipMemsetAsync(buf + 7, 1, 1, b));
	OK(hipStreamSynchronize(b));
	CHECK(at(7) == 1 && at(5) == 0);
	OK(hipStreamWaitEvent(b, ev, 0));
	OK(hipMemsetAsync(buf + 8, 1, 1, b));
	settle();
	CHECK(at(8) == 0);
	EXPECT(hipEventElapsedTime(&ms, ev, ev), hipErrorNotReady);
	release(a);
	OK(hipStreamSynchronize(b));
	CHECK(at(8) == 1 && at(5) == 1);
	OK(hipEventRecord(ev2, b));
	OK(hipEventSynchronize(ev2));
	OK(hipEventElapsedTime(&ms, ev, ev2));
	CHECK(ms >= 0);

	/* Never recorded: complete. */
	hipEvent_t fresh;
	OK(hipEventCreateWithFlags(&fresh, hipEventDisableTiming));
	OK(hipEventQuery(fresh));
	OK(hipEventSynchronize(fresh));
	OK(hipStreamWaitEvent(b, fresh, 0));
	OK(hipEventDestroy(fresh));
	EXPECT(hipEventQuery(fresh), hipErrorContextIsDestroyed);

	/* Destroy returns at once, the work still runs, the handle comes back. */
	OK(hipStreamCreateWithFlags(&c, hipStreamNonBlocking));
	OK(hipStreamWaitValue64(c, flag, 1, hipStreamWaitValueEq, ~0ULL));
	OK(hipMemsetAsync(buf + 9, 1, 1, c));
	OK(hipStreamDestroy(c));
	EXPECT(hipStreamQuery(c), hipErrorContextIsDestroyed);
	hipStream_t d;
	OK(hipStreamCreateWithFlags(&d, hipStreamNonBlocking));
	CHECK(d == c);
	OK(hipStreamSynchronize(d));
	CHECK(at(9) == 0);
	OK(hipStreamWriteValue64(b, flag, 1, 0));
	OK(hipDeviceSynchronize());
	CHECK(at(9) == 1);

	/* Values: plain memory is refused, signal memory starts at 1. */
	uint64_t *sig, plain = 0;
	EXPECT(hipStreamWriteValue64(b, &plain, 1, 0), hipErrorInvalidValue);
	OK(hipExtMallocWithFlags((void **)&sig, 8, hipMallocSignalMemory));
	CHECK(*sig == 1);
	OK(hipStreamWriteValue64(hipStreamPerThread, sig, 7, 0));
	OK(hipStreamSynchronize(hipStreamPerThread));
	CHECK(*sig == 7);
	EXPECT(hipStreamWriteValue64((hipStream_t)1, sig, 7, 0), hipErrorContextIsDestroyed);

	/* hipFree waits for the whole device, non-blocking streams included. */
	void *m;
	OK(hipMalloc(&m, 64));
	*flag = 0;
	OK(hipMemsetAsync(buf + 10, 1, 1, nb));
	OK(hipMemsetAsync(m, 1, 64, nb));
	OK(hipFree(m));
	CHECK(at(10) == 1);
	/* Device to pageable host blocks; hipMemset is late at offset 0 only. */
	OK(hipMalloc(&m, 4096));
	stall(NULL);
	OK(hipMemset(m, 5, 16));
	release(NULL);
	OK(hipMemset((char *)m + 16, 6, 16));
	CHECK(((char *)m)[0] == 5 && ((char *)m)[16] == 6);
	OK(hipFree(m));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Order between streams: the null stream, non-blocking streams, waits for events, destruction
 * of a stream with pending work, and values that streams write and wait for.
 */
#include "test.h"

static char *buf;

static int at(int i)
{
	return __atomic_load_n(&buf[i], __ATOMIC_ACQUIRE);
}

static void wait_a_moment(void)
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

	/* A stalled stream does nothing, and the others go on. */
	stall(a);
	OK(hipMemsetAsync(buf, 1, 1, a));
	OK(hipMemsetAsync(buf + 1, 1, 1, b));
	OK(hipStreamSynchronize(b));
	wait_a_moment();
	CHECK(at(0) == 0 && at(1) == 1);
	EXPECT(hipStreamQuery(a), hipErrorNotReady);
	EXPECT(hipStreamQuery(NULL), hipErrorNotReady);

	/* Work of the null stream waits for the blocking streams, not for the others, and later
	 * work of the blocking streams waits for it. */
	OK(hipMemsetAsync(buf + 2, 1, 1, NULL));
	OK(hipMemsetAsync(buf + 3, 1, 1, b));
	OK(hipMemsetAsync(buf + 4, 1, 1, nb));
	OK(hipStreamSynchronize(nb));
	wait_a_moment();
	CHECK(at(2) == 0 && at(3) == 0 && at(4) == 1);
	release(a);
	OK(hipStreamSynchronize(b));
	CHECK(at(0) == 1 && at(2) == 1 && at(3) == 1);

	/* Without work on the null stream, a and b are not ordered. */
	stall(a);
	OK(hipMemsetAsync(buf + 5, 1, 1, a));
	EXPECT(hipStreamQuery(NULL), hipErrorNotReady);
	OK(hipMemsetAsync(buf + 6, 1, 1, b));
	OK(hipStreamSynchronize(b));
	CHECK(at(5) == 0 && at(6) == 1);

	/* A wait is for the record that the event held, not for a later one. */
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
	wait_a_moment();
	CHECK(at(8) == 0);
	EXPECT(hipEventElapsedTime(&ms, ev, ev), hipErrorNotReady);
	release(a);
	OK(hipStreamSynchronize(b));
	CHECK(at(8) == 1 && at(5) == 1);
	OK(hipEventRecord(ev2, b));
	OK(hipEventSynchronize(ev2));
	OK(hipEventElapsedTime(&ms, ev, ev2));
	CHECK(ms >= 0);

	/* An event that was never recorded is complete. */
	hipEvent_t fresh;
	OK(hipEventCreateWithFlags(&fresh, hipEventDisableTiming));
	OK(hipEventQuery(fresh));
	OK(hipEventSynchronize(fresh));
	OK(hipStreamWaitEvent(b, fresh, 0));
	OK(hipEventDestroy(fresh));
	EXPECT(hipEventQuery(fresh), hipErrorContextIsDestroyed);

	/* Destroying a stream returns at once and its work still runs; the next stream gets the
	 * same handle. */
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

	/* Values in memory of malloc are refused; signal memory starts with 1. */
	uint64_t *sig, plain = 0;
	EXPECT(hipStreamWriteValue64(b, &plain, 1, 0), hipErrorInvalidValue);
	OK(hipExtMallocWithFlags((void **)&sig, 8, hipMallocSignalMemory));
	CHECK(*sig == 1);
	OK(hipStreamWriteValue64(hipStreamPerThread, sig, 7, 0));
	OK(hipStreamSynchronize(hipStreamPerThread));
	CHECK(*sig == 7);
	EXPECT(hipStreamWriteValue64((hipStream_t)1, sig, 7, 0), hipErrorContextIsDestroyed);

	/* hipFree waits for the whole device, also for non-blocking streams. */
	void *m;
	OK(hipMalloc(&m, 64));
	*flag = 0;
	OK(hipMemsetAsync(buf + 10, 1, 1, nb));
	OK(hipMemsetAsync(m, 1, 64, nb));
	OK(hipFree(m));
	CHECK(at(10) == 1);
	/* hipMemset returns early at the start of an allocation, and waits elsewhere. */
	OK(hipMalloc(&m, 4096));
	stall(NULL);
	OK(hipMemset(m, 5, 16));
	release(NULL);
	OK(hipMemset((char *)m + 16, 6, 16));
	CHECK(((char *)m)[0] == 5 && ((char *)m)[16] == 6);
	OK(hipFree(m));
	return 0;
}

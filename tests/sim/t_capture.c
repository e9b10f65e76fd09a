/* SPDX-License-Identifier: MIT */
/* Stream capture: which calls are legal beside it, by release and mode; fork and join between
 * streams; launches; memory that a graph allocates. */
#include "test.h"

static int version;
static hipStream_t A, B;
static hipEvent_t ev;
static char *buf;

static void begin(hipStreamCaptureMode m)
{
	OK(hipStreamBeginCapture(A, m));
}

/* Ends the capture, which must have been invalidated if `lost` is set, and be valid if not. */
static void end(bool lost)
{
	hipStreamCaptureStatus st;
	hipGraph_t g = NULL;

	OK(hipStreamIsCapturing(A, &st));
	CHECK(st == (lost ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive));
	if (lost) {
		EXPECT(hipMemsetAsync(buf, 1, 1, A), hipErrorStreamCaptureInvalidated);
		EXPECT(hipStreamEndCapture(A, &g), hipErrorStreamCaptureInvalidated);
		CHECK(!g);
	} else {
		OK(hipStreamEndCapture(A, &g));
		OK(hipGraphDestroy(g));
	}
}

static void table(hipStreamCaptureMode m)
{
	bool relaxed = m == hipStreamCaptureModeRelaxed, six = version >= 60000000,
	     seven = version >= 70000000;
	int e900 = relaxed ? hipSuccess : hipErrorStreamCaptureUnsupported;
	bool lost = six && !relaxed;
	hipEvent_t own;
	void *p;

	OK(hipEventRecord(ev, B));
	OK(hipStreamSynchronize(B));

	begin(m);
	EXPECT(hipMalloc(&p, 64), e900);
	end(lost);
	begin(m);
	EXPECT(hipHostMalloc(&p, 64, 0), e900);
	end(lost);
	begin(m);
	EXPECT(hipFree(NULL), e900);
	end(lost);
	begin(m);
	EXPECT(hipStreamQuery(B), e900);
	end(lost);
	begin(m);
	EXPECT(hipStreamSynchronize(B), e900);
	end(lost);
	begin(m);
	EXPECT(hipEventSynchronize(ev), e900);
	end(lost);
	begin(m);
	EXPECT(hipEventQuery(ev), seven ? e900 : 0);
	end(seven && lost);
	begin(m);
	EXPECT(hipDeviceSynchronize(), six ? hipErrorStreamCaptureUnsupported : 0);
	end(six);
	begin(m);
	EXPECT(hipStreamQuery(A), hipErrorStreamCaptureUnsupported);
	end(six);
	begin(m);
	EXPECT(hipMemset(buf, 1, 1),
	       six || m == hipStreamCaptureModeGlobal ? hipErrorStreamCaptureImplicit : 0);
	end(six);
	OK(hipEventCreate(&own));
	begin(m);
	OK(hipEventRecord(own, A));
	EXPECT(hipEventQuery(own), six ? hipErrorCapturedEvent : 0);
	end(six);
	OK(hipEventDestroy(own));

	/* Legal in every mode. */
	begin(m);
	OK(hipExtMallocWithFlags(&p, 64, 0));
	OK(hipEventRecord(ev, B));
	OK(hipMemsetAsync(buf + 9, 1, 1, B));
	OK(hipStreamWriteValue64(B, buf + 64, 1, 0));
	OK(hipEventRecord(ev, NULL));
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	OK(hipThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == hipStreamCaptureModeGlobal);
	OK(hipFree(p));
	OK(hipMalloc(&p, 64));
	OK(hipFree(p));
	OK(hipStreamSynchronize(B));
	OK(hipEventQuery(ev));
	OK(hipThreadExchangeStreamCaptureMode(&mode));
	end(false);
}

static void replay(void)
{
	hipGraph_t g;
	hipGraphExec_t x;
	hipEvent_t fork, join;
	size_t n;
	char *m;

	OK(hipEventCreate(&fork));
	OK(hipEventCreate(&join));
	memset(buf, 0, 64);
	begin(hipStreamCaptureModeGlobal);
	OK(hipMemsetAsync(buf, 5, 1, A));
	OK(hipEventRecord(fork, A));
	OK(hipStreamWaitEvent(B, fork, 0));
	OK(hipMemcpyAsync(buf + 1, buf, 1, hipMemcpyDefault, B));
	OK(hipEventRecord(join, B));
	OK(hipMemcpyAsync(buf + 2, buf, 1, hipMemcpyDefault, A));
	hipGraph_t bad;
	OK(hipStreamWaitEvent(A, join, 0));
	OK(hipMemcpyAsync(buf + 3, buf + 1, 1, hipMemcpyDefault, A));
	OK(hipStreamEndCapture(A, &g));
	CHECK(buf[0] == 0);
	OK(hipGraphGetNodes(g, NULL, &n));
	CHECK(n == 4);
	OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
	OK(hipGraphDestroy(g));
	for (int i = 0; i < 20; i++) {
		memset(buf, 0, 4);
		OK(hipGraphLaunch(x, B));
		OK(hipStreamSynchronize(B));
		CHECK(buf[0] == 5 && buf[1] == 5 && buf[2] == 5 && buf[3] == 5);
	}
	OK(hipGraphExecDestroy(x));

	begin(hipStreamCaptureModeRelaxed);
	OK(hipEventRecord(fork, A));
	OK(hipStreamWaitEvent(B, fork, 0));
	OK(hipMemsetAsync(buf, 5, 1, B));
	EXPECT(hipStreamEndCapture(B, &bad), hipErrorStreamCaptureUnmatched);
	EXPECT(hipStreamEndCapture(A, &bad), hipErrorStreamCaptureUnjoined);

	/* A capturing stream may not wait for work that is not captured. */
	OK(hipEventRecord(ev, B));
	begin(hipStreamCaptureModeRelaxed);
	EXPECT(hipStreamWaitEvent(A, ev, 0), hipErrorStreamCaptureIsolation);
	end(true);
	EXPECT(hipStreamEndCapture(A, &bad), hipErrorIllegalState);
	EXPECT(hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal),
	       hipErrorStreamCaptureUnsupported);

	/* Memory that is allocated in a capture has its address at once, and lives as long as the
	 * graph. */
	size_t before, after, total;
	OK(hipMemGetInfo(&before, &total));
	begin(hipStreamCaptureModeGlobal);
	OK(hipMallocAsync((void **)&m, 1 << 20, A));
	CHECK(m);
	OK(hipMemsetAsync(m, 7, 1 << 20, A));
	OK(hipMemcpyAsync(buf, m + 5, 1, hipMemcpyDefault, A));
	OK(hipFreeAsync(m, A));
	OK(hipStreamEndCapture(A, &g));
	OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
	OK(hipGraphDestroy(g));
	OK(hipGraphLaunch(x, A));
	OK(hipStreamSynchronize(A));
	CHECK(buf[0] == 7);
	OK(hipGraphExecDestroy(x));
	OK(hipMemGetInfo(&after, &total));
	CHECK(after == before);
}

int main(void)
{
	OK(hipRuntimeGetVersion(&version));
	OK(hipHostMalloc((void **)&buf, 4096, 0));
	OK(hipStreamCreateWithFlags(&A, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&B, hipStreamNonBlocking));
	OK(hipEventCreate(&ev));
	table(hipStreamCaptureModeGlobal);
	table(hipStreamCaptureModeThreadLocal);
	table(hipStreamCaptureModeRelaxed);
	replay();

	/* Since 6.0 nobody can allocate from the native pool while a blocking stream captures. */
	hipStream_t c;
	hipStreamCaptureStatus st;
	hipGraph_t g;
	void *p;
	OK(hipStreamCreate(&c));
	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	EXPECT(hipMallocAsync(&p, 64, B),
	       version >= 60000000 ? hipErrorStreamCaptureUnsupported : 0);
	EXPECT(hipStreamIsCapturing(NULL, &st),
	       version >= 60000000 ? hipErrorStreamCaptureImplicit : 0);
	OK(hipEventRecord(ev, NULL));
	OK(hipStreamEndCapture(c, &g));
	return 0;
}

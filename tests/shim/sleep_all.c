/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_SLEEP=all: memory of hipMalloc sleeps, too. A hipMalloc never waits for a stream, and
 * never fails, because memory is mapped.
 *
 *   shim_sleep_all SOMASHIM CASE
 */
#include "sleep.h"

#define SIZE (24 * MIB)

/* As block() of sleep.h, by hipMalloc. */
static void *classic(size_t size, uint32_t seed)
{
	uint32_t *host = malloc(size);
	void *p;

	CHECK(host);
	pattern(host, size / 4, seed);
	OK(hipMalloc(&p, size));
	OK(hipMemcpy(p, host, size, hipMemcpyHostToDevice));
	free(host);
	return p;
}

static void contents(void)
{
	void *p = classic(SIZE, 1), *q = block(SIZE, 2), *r;
	size_t awake, asleep, total;
	uint64_t before;
	hipIpcMemHandle_t handle;

	OK(hipDeviceSynchronize());
	OK(hipMemGetInfo(&awake, &total));
	before = device_free(0);
	COMMAND(0, "sleep", own_pid());
	CHECK(!strstr(said, "of hipMalloc"));
	CHECK(state_now() == SS_LIVE_ASLEEP && device_free(0) >= before + 2 * SIZE);
	/* The process may take it again, so it is not free. */
	OK(hipMemGetInfo(&asleep, &total));
	CHECK(asleep >= awake && asleep < awake + 3 * MIB);
	/* A hit needs no device; the free of a block that slept is a free. */
	OK(hipFree(p));
	OK(hipMalloc(&p, SIZE));
	CHECK(state_now() == SS_LIVE_ASLEEP);
	OK(hipMalloc(&r, 4 * SIZE)); /* has to map */
	CHECK(state_now() == SS_LIVE_AWAKE && whole(q, SIZE, 2));
	OK(hipFree(p));
	OK(hipFree(r));
	p = classic(SIZE, 3);
	COMMAND(0, "sleep", "--hold", own_pid());
	COMMAND(0, "wake", own_pid());
	CHECK(whole(p, SIZE, 3) && whole(q, SIZE, 2));
	/* The price: such a block has no handle, and the program sees that at once. */
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, p));
	CHECK(hipGetLastError() == hipErrorInvalidValue && whole(p, SIZE, 3));
}

/* Up to 7.13 a map waits for blocking streams. */
static void stalled(void)
{
	void *p = classic(SIZE, 1), *scratch, *more, *other;
	uint64_t maps;
	hipStream_t blocking;

	OK(hipStreamCreate(&blocking));
	OK(hipMalloc(&scratch, 4096));
	OK(hipDeviceSynchronize());
	stall(blocking);
	OK(hipMemsetAsync(scratch, 0, 4096, blocking));
	maps = sim_count("hipMemMap");
	OK(hipMalloc(&more, 4 * SIZE)); /* returns */
	CHECK(sim_count("hipMemMap") == maps);
	release(blocking);
	OK(hipDeviceSynchronize());
	OK(hipMalloc(&other, 4 * SIZE));
	CHECK(sim_count("hipMemMap") > maps);
	OK(hipMemset(more, 1, 4 * SIZE));
	COMMAND(0, "sleep", own_pid());
	SAID("96.0 MiB served by the runtime");
	CHECK(whole(p, SIZE, 1));
	OK(hipFree(more));
	COMMAND(0, "sleep", own_pid());
	CHECK(!strstr(said, "served by the runtime"));
	CHECK(whole(p, SIZE, 1));
}

/* A wait for an event that does not come is work, too: it passes the gate, and what comes after it
 * on a blocking stream is waited for by a map. */
static void waits(void)
{
	void *p = classic(SIZE, 1), *more, *scratch;
	hipStream_t blocking, stands;
	hipEvent_t event;

	OK(hipStreamCreate(&blocking));
	OK(hipStreamCreateWithFlags(&stands, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	OK(hipMalloc(&scratch, 4096));
	OK(hipDeviceSynchronize());
	stall(stands);
	OK(hipMemsetAsync(scratch, 0, 4096, stands));
	OK(hipEventRecord(event, stands));
	OK(hipStreamWaitEvent(blocking, event, 0));
	OK(hipMalloc(&more, 4 * SIZE));
	release(stands);
	OK(hipDeviceSynchronize());
	COMMAND(0, "sleep", own_pid());
	OK(hipStreamWaitEvent(blocking, event, 0)); /* wakes */
	CHECK(state_now() == SS_LIVE_AWAKE && whole(p, SIZE, 1));
	OK(hipFree(more));
}

/* On 6.x a map would join the stream that captures. */
static void capture(void)
{
	void *p = classic(SIZE, 1), *more;
	hipStream_t blocking;
	hipGraph_t graph;

	OK(hipStreamCreate(&blocking));
	OK(hipStreamBeginCapture(blocking, hipStreamCaptureModeRelaxed));
	OK(hipMalloc(&more, 4 * SIZE));
	OK(hipMemsetAsync(more, 1, 4096, blocking));
	OK(hipStreamEndCapture(blocking, &graph));
	OK(hipGraphDestroy(graph));
	COMMAND(0, "sleep", own_pid());
	SAID("96.0 MiB served by the runtime");
	CHECK(whole(p, SIZE, 1));
	OK(hipFree(more));
}

/* ---- threads that give work while another one maps ---------------------------------- */

static atomic_bool over;

static void *submits(void *arg)
{
	void *own = block(MIB, 7);
	hipStream_t blocking;

	(void)arg;
	OK(hipStreamCreate(&blocking));
	while (!atomic_load(&over)) {
		for (int i = 0; i < 8; i++)
			OK(hipMemsetAsync(own, 1, 4096, blocking));
		OK(hipStreamSynchronize(blocking));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[2];
	void *p[16];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, submits, NULL));
	for (int i = 0; i < 16; i++)
		p[i] = classic(3 * MIB, (uint32_t)i);
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	COMMAND(0, "sleep", own_pid());
	for (int i = 0; i < 16; i++) {
		CHECK(whole(p[i], 3 * MIB, (uint32_t)i));
		OK(hipFree(p[i]));
	}
}

/* ---- what wins over it (SOMASHIM_BACKING=hip, SOMASHIM_IPC_WHOLE=1M) ----------------------- */

static void wins(const char *text)
{
	void *p = classic(SIZE, 1);
	hipIpcMemHandle_t handle;

	OK(hipIpcGetMemHandle(&handle, p));
	COMMAND(1, "sleep", own_pid());
	SAID(text);
	CHECK(whole(p, SIZE, 1));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"contents", contents},
		     {"stalled", stalled},
		     {"waits", waits},
		     {"capture", capture},
		     {"threads", threads}};

	sleep_test_begin(argc, argv);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!strcmp(argv[2], cases[i].name)) {
			cases[i].run();
			return 0;
		}
	}
	wins(argv[2]);
	return 0;
}

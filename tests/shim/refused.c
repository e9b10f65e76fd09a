/* SPDX-License-Identifier: MIT */
/*
 * The runtime refuses a call once, or takes something away:
 *
 *   release  hipMemRelease fails (vmm)
 *   capture  a capture begins while a pool grows (vmm, 6.4: no unmap beside it)
 *   map      hipMemAddressReserve, hipMemMap or hipMemSetAccess fails (vmm)
 *   access   nobody gets access to what is mapped, and it cannot be unmapped then (vmm,
 *            unmap-unopened)
 *   opened   a peer gets no access, beside a capture (hip: no hipFree then, either)
 *   settle   the trial of a fresh mapping fails, on a slow device (vmm, gfx12)
 *   agents   HSA reports no agents (hsa)
 *   page     fences count in pinned memory, and the device is reset
 *   current  the current pool is the runtime's, and is destroyed; then another one, and a reset
 */
#include <pthread.h>
#include <unistd.h>

#define BYTES 65536
#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipStream_t stream;

static uint64_t reserved(void)
{
	hipMemPool_t pool;
	uint64_t n = 0;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &n));
	return n;
}

static void trim(void)
{
	hipMemPool_t pool;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
}

static void use(uint64_t size)
{
	void *p;

	OK(hipMallocAsync(&p, size, stream));
	OK(hipFreeAsync(p, stream));
}

static void not_released(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	uint64_t before, held;

	use(MIB);
	trim();
	before = device_free(0);
	for (int i = 0; i < 4; i++) {
		use(256 * MIB);
		fail("hipMemRelease:%1");
		trim();
		clear();
		/* It says what it has still. */
		held = reserved();
		CHECK(held > 0 && before - device_free(0) == held);
		trim();
		CHECK(reserved() == 0 && device_free(0) == before);
	}
}

/* A driver that has no virtual memory for us, from the start or later. */
static void not_mapped(void)
{
	static const char *const calls[] = {"hipMemAddressReserve:%1", "hipMemMap:%1",
					    "hipMemSetAccess:%1",      "hipMemSetAccess:%1=1",
					    "hipMemMap:%1=801",        "hipMemCreate:%1=600"};
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	uint64_t before = device_free(0);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
		void *p, *q;

		fail(calls[i]);
		OK(hipMallocFromPoolAsync(&p, MIB, pool, stream));
		fill(p, 5);
		OK(hipMallocFromPoolAsync(&q, MIB, pool, stream));
		fill(q, 6);
		CHECK(holds(p, 5) && holds(q, 6));
		OK(hipFreeAsync(p, stream));
		OK(hipFreeAsync(q, stream));
		clear();
		OK(hipStreamSynchronize(stream));
		OK(hipMemPoolDestroy(pool));

		if (!i) /* it has its addresses */
			continue;
		pool = make_pool(0, hipMemHandleTypeNone);
		OK(hipMallocFromPoolAsync(&p, MIB, pool, stream));
		fill(p, 7);
		fail(calls[i]);
		GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&q, 256 * MIB, pool, stream));
		CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) < 64 * MIB && holds(p, 7));
		clear();
		OK(hipMallocFromPoolAsync(&q, 256 * MIB, pool, stream));
		OK(hipFreeAsync(p, stream));
		OK(hipFreeAsync(q, stream));
		OK(hipStreamSynchronize(stream));
		OK(hipMemPoolDestroy(pool));
	}
	CHECK(device_free(0) == before);
}

/* How many lines of the log say that. It may have some from before. */
static int lines_of(const char *what)
{
	FILE *log = fopen(getenv("SOMASHIM_LOG"), "r");
	char line[512];
	int n = 0;

	while (log && fgets(line, sizeof(line), log))
		n += strstr(line, what) != NULL;
	if (log)
		fclose(log);
	return n;
}

static void *take(hipMemPool_t pool, uint64_t size, int value)
{
	void *p;

	OK(hipMallocFromPoolAsync(&p, size, pool, stream));
	fill(p, value);
	CHECK(holds(p, value));
	return p;
}

static void no_access(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemPool_t grown = make_pool(0, hipMemHandleTypeNone),
		     pool = make_pool(0, hipMemHandleTypeNone);
	int said = lines_of("the runtime refuses to map memory");
	uint64_t before, held, lost, calls;
	void *p[4], *large;

	/* A pool that has live memory of this kind. */
	p[0] = take(grown, MIB, 5);
	held = figure(grown, hipMemPoolAttrReservedMemCurrent);
	before = device_free(0);
	fail("hipMemSetAccess:%1,hipMemMap:%9");
	/* One that has nothing yet goes on with another kind. */
	p[1] = take(pool, 24 * MIB, 6);
	p[2] = take(pool, MIB, 7);
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) >= 25 * MIB);
	lost = before - device_free(0) - figure(pool, hipMemPoolAttrReservedMemCurrent);
	CHECK(lost > 0 && lost <= 128 * MIB);
	CHECK(lines_of("the runtime refuses to map memory") == said + 1);
	/* So does one that comes later, and asks no more. */
	calls = sim_count("hipMemSetAccess");
	OK(hipMemPoolDestroy(make_pool(0, hipMemHandleTypeNone)));
	OK(hipMallocAsync(&p[3], 8 * MIB, stream));
	fill(p[3], 8);
	CHECK(holds(p[3], 8) && sim_count("hipMemSetAccess") == calls);
	/* The first one can't, but has no more than it had. */
	GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&large, 64 * MIB, grown, stream));
	CHECK(figure(grown, hipMemPoolAttrReservedMemCurrent) == held && holds(p[0], 5));
	clear();
	OK(hipMallocFromPoolAsync(&large, 64 * MIB, grown, stream));
	OK(hipFreeAsync(large, stream));
	for (int i = 0; i < 3; i++)
		CHECK(holds(p[i], 5 + i));
	for (int i = 0; i < 4; i++)
		OK(hipFreeAsync(p[i], stream));
	OK(hipStreamSynchronize(stream));
	OK(hipMemPoolDestroy(pool));
	OK(hipMemPoolDestroy(grown));
	CHECK(lines_of("the runtime refuses to map memory") == said + 1);
}

/* A segment that is good for nothing, and cannot go there and then. */
static void not_opened(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemAccessDesc peer = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	uint64_t before = device_free(0), held;
	hipGraph_t graph;
	void *p;

	OK(hipMemPoolSetAccess(pool, &peer, 1));
	for (int i = 0; i < 4; i++) {
		hipStream_t capturing;

		OK(hipStreamCreateWithFlags(&capturing, hipStreamNonBlocking));
		OK(hipStreamBeginCapture(capturing, hipStreamCaptureModeRelaxed));
		fail("hsa_amd_agents_allow_access:%1,hsa_amd_memory_pool_free:%1");
		for (int k = 0; k < 4; k++)
			GIVES(hipErrorOutOfMemory,
			      hipMallocFromPoolAsync(&p, 64 * MIB, pool, stream));
		clear();
		/* It says what it has, which is no more than once. */
		held = figure(pool, hipMemPoolAttrReservedMemCurrent);
		CHECK(before - device_free(0) == held && held < 128 * MIB);
		OK(hipStreamEndCapture(capturing, &graph));
		OK(hipGraphDestroy(graph));
		OK(hipStreamDestroy(capturing));
		if (i & 1) { /* it is to be had, now that it can be opened */
			OK(hipMallocFromPoolAsync(&p, 64 * MIB, pool, stream));
			fill(p, 5);
			CHECK(holds(p, 5) &&
			      figure(pool, hipMemPoolAttrReservedMemCurrent) == held);
			OK(hipFreeAsync(p, stream));
		}
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(pool, 0));
		CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
		CHECK(device_free(0) == before);
	}
	OK(hipMemPoolDestroy(pool));
}

/* As without vmm: hip, and that is said. */
static void no_agents(void)
{
	char text[512] = "";
	FILE *log;
	void *p;

	OK(hipMallocAsync(&p, MIB, stream));
	OK(hipFreeAsync(p, stream));
	OK(hipMalloc(&p, MIB));
	OK(hipFree(p));
	log = fopen(getenv("SOMASHIM_LOG"), "r");
	CHECK(log && fread(text, 1, sizeof(text) - 1, log) &&
	      strstr(text, "SOMASHIM_BACKING=hsa is not used, but hip"));
	fclose(log);
}

/* What is unmapped is worked with no more, or the device would fault. */
static void not_settled(void)
{
	static const char *const calls[] = {"hipMemcpyAsync:2", "hipMemcpyAsync:%1",
					    "hipStreamSynchronize:1", "hipStreamSynchronize:%1"};
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	uint64_t before = device_free(0);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
		void *p;

		OK(hipMallocFromPoolAsync(&p, 8 * MIB, pool, stream));
		fill(p, 5);
		OK(hipFreeAsync(p, stream));
		fail(calls[i]);
		if (hipMallocFromPoolAsync(&p, 16 * MIB, pool, stream) == hipSuccess)
			OK(hipFreeAsync(p, stream));
		clear();
		OK(hipMallocFromPoolAsync(&p, 16 * MIB, pool, stream));
		fill(p, 7);
		CHECK(holds(p, 7));
		OK(hipFreeAsync(p, stream));
		OK(hipStreamSynchronize(stream));
		OK(hipMemPoolDestroy(pool));
		CHECK(device_free(0) == before);
	}
}

static void *grow(void *arg)
{
	void *p = NULL;

	if (hipMallocAsync(&p, 256 * MIB, stream) == hipSuccess)
		OK(hipFreeAsync(p, stream));
	return arg;
}

static void not_unmapped(void)
{
	int (*hold)(const char *, int) = sim_must("somasim_hold");
	int (*held)(void) = sim_must("somasim_holds");
	void (*let_go)(void) = sim_must("somasim_let_go");
	hipStream_t capturing;
	hipGraph_t graph;
	pthread_t thread;
	uint64_t before;

	OK(hipStreamCreate(&capturing));
	use(MIB);
	trim();
	before = device_free(0);
	for (int i = 0; i < 4; i++) {
		hold("hipMemMap", 1);
		CHECK(!pthread_create(&thread, NULL, grow, NULL));
		while (!held())
			usleep(1000);
		OK(hipStreamBeginCapture(capturing, hipStreamCaptureModeRelaxed));
		let_go();
		pthread_join(thread, NULL);
		OK(hipStreamEndCapture(capturing, &graph));
		OK(hipGraphDestroy(graph));
		trim();
		CHECK(reserved() == 0 && device_free(0) == before);
		/* Nor is anything left that stands in the way. */
		use(256 * MIB);
		trim();
	}
}

static void round_of(void)
{
	hipStream_t a, b;
	void *p;

	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	for (int i = 0; i < 4; i++) {
		OK(hipMallocAsync(&p, 32 * MIB, a));
		OK(hipMemsetAsync(p, 1, 32 * MIB, a));
		OK(hipFreeAsync(p, a));
		OK(hipMallocAsync(&p, 32 * MIB, b));
		OK(hipFreeAsync(p, b));
	}
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
}

static void taken_page(void)
{
	uint64_t written = sim_count("hipStreamWriteValue64");
	unsigned char *h[8];

	round_of();
	CHECK(sim_count("hipStreamWriteValue64") > written); /* fences count */
	OK(hipDeviceReset());
	for (int i = 0; i < 8; i++) {
		OK(hipHostMalloc((void **)&h[i], 4096, 0));
		memset(h[i], 0x77, 4096);
	}
	round_of();
	OK(hipDeviceSynchronize());
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 4096; k++)
			CHECK(h[i][k] == 0x77);
}

static void default_again(void)
{
	uint64_t calls = sim_count("hipMallocAsync");
	hipMemPool_t def, now;
	void *p;

	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipDeviceGetMemPool(&now, 0));
	CHECK(now == def);
	OK(hipMallocAsync(&p, MIB, NULL));
	CHECK(sim_count("hipMallocAsync") == calls);
	OK(hipFreeAsync(p, NULL));
}

static void gone_pool(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeWin32);

	OK(hipDeviceSetMemPool(0, pool));
	OK(hipMemPoolDestroy(pool));
	default_again();
	pool = make_pool(0, hipMemHandleTypeWin32);
	OK(hipDeviceSetMemPool(0, pool));
	OK(hipDeviceReset());
	default_again();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	if (!strcmp(what, "release"))
		not_released();
	else if (!strcmp(what, "capture"))
		not_unmapped();
	else if (!strcmp(what, "map"))
		not_mapped();
	else if (!strcmp(what, "access"))
		no_access();
	else if (!strcmp(what, "opened"))
		not_opened();
	else if (!strcmp(what, "settle"))
		not_settled();
	else if (!strcmp(what, "agents"))
		no_agents();
	else if (!strcmp(what, "page"))
		taken_page();
	else if (!strcmp(what, "current"))
		gone_pool();
	else
		return 2;
	return 0;
}

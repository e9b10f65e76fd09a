/* SPDX-License-Identifier: MIT */
/*
 * From 7.14 on hipMemUnmap waits for all work of every device with access, and hipFree always does.
 * A call that natively waits for nothing makes neither of them while a stream waits for the host:
 * not for the shim's own purposes, and not after the runtime has refused something.
 *
 *   unmap_waits        vmm on 7.16, two devices
 *   unmap_waits hip    hip, two devices
 */
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536
#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipStream_t s, held;
static uint64_t unmaps, frees;

/* Work of this device ends when the test says so. */
static void begin_hold(void)
{
	hipEvent_t event;

	unmaps = sim_count("hipMemUnmap");
	frees = sim_count("hipFree");
	stall(held);
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	OK(hipEventRecord(event, held));
	OK(hipEventDestroy(event));
}

static void end_hold(void)
{
	CHECK(sim_count("hipMemUnmap") == unmaps && sim_count("hipFree") == frees);
	release(held);
	OK(hipDeviceSynchronize());
}

static void make_streams(void)
{
	OK(hipStreamCreateWithFlags(&held, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
}

/* ---- the first use of a device ------------------------------------------------------ */

static void first_alloc_async(void)
{
	void *p;

	OK(hipMallocAsync(&p, MIB, s));
}

static void first_alloc(void)
{
	void *p;

	OK(hipMalloc(&p, MIB));
}

static void first_pool(void)
{
	hipMemPool_t pool;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
}

static void first_new_pool(void)
{
	OK(hipMemPoolDestroy(make_pool(0, hipMemHandleTypeNone)));
}

static void second_device(void)
{
	void *p;

	first_alloc_async();
	OK(hipSetDevice(1));
	OK(hipMallocAsync(&p, MIB, NULL));
	OK(hipMalloc(&p, MIB));
	OK(hipSetDevice(0));
}

static void second_device_pool(void)
{
	void *p;

	OK(hipMallocFromPoolAsync(&p, MIB, make_pool(1, hipMemHandleTypeNone), s));
}

/* Each in a process of its own. */
static void first_uses(void)
{
	static void (*const uses[])(void) = {first_alloc_async, first_alloc,   first_pool,
					     first_new_pool,    second_device, second_device_pool};
	int status;

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child) {
			alarm(20);
			make_streams();
			begin_hold();
			uses[i]();
			end_hold();
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		if (status)
			fprintf(stderr, "first use %zu: status %x\n", i, (unsigned)status);
		CHECK(status == 0);
	}
}

/* ---- what the runtime refuses -------------------------------------------------------- */

static void empty(hipMemPool_t pool)
{
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
}

/* What could not be undone at once is given back when the device is idle. */
static void refused(const char *call, uint64_t before)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	void *p, *q;

	OK(hipMallocFromPoolAsync(&p, MIB, pool, s));
	fill(p, 5);
	begin_hold();
	fail(call);
	GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&q, 256 * MIB, pool, s));
	clear();
	OK(hipMallocFromPoolAsync(&q, 256 * MIB, pool, s));
	OK(hipFreeAsync(q, s));
	OK(hipMemPoolTrimTo(pool, 0));
	end_hold();
	CHECK(holds(p, 5));
	OK(hipFreeAsync(p, s));
	empty(pool);
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0 && device_free(0) == before);
	OK(hipMemPoolDestroy(pool));
}

/* A pool that never got a chunk that it could use takes another kind of memory. */
static void first_refused(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	void *p;

	begin_hold();
	fail("hipMemSetAccess:%1");
	OK(hipMallocFromPoolAsync(&p, 8 * MIB, pool, s));
	clear();
	end_hold();
	fill(p, 6);
	CHECK(holds(p, 6));
	OK(hipFreeAsync(p, s));
	OK(hipMemPoolDestroy(pool));
}

/* Memory of the pool goes with it, but not while a stream is at work. */
static void destroyed(uint64_t before)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	void *p;

	OK(hipMallocFromPoolAsync(&p, 8 * MIB, pool, s));
	begin_hold();
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolDestroy(pool));
	end_hold();
	CHECK(device_free(0) == before);
}

static void mapped(void)
{
	hipMemPool_t pool;
	uint64_t before;
	void *p;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMallocAsync(&p, MIB, s));
	fill(p, 1);
	CHECK(holds(p, 1));
	OK(hipFreeAsync(p, s));
	empty(pool);
	before = device_free(0);
	refused("hipMemSetAccess:%1", before);
	refused("hipMemMap:%3", before);
	destroyed(before);
	first_refused();
}

/* A segment that a peer cannot open is good for nothing. */
static void not_opened(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemAccessDesc peer = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	uint64_t before = device_free(0);
	void *p;

	OK(hipMemPoolSetAccess(pool, &peer, 1));
	begin_hold();
	fail("hsa_amd_agents_allow_access:%1");
	for (int i = 0; i < 3; i++)
		GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&p, 64 * MIB, pool, s));
	clear();
	CHECK(before - device_free(0) == figure(pool, hipMemPoolAttrReservedMemCurrent));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) < 128 * MIB);
	end_hold();
	empty(pool);
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0 && device_free(0) == before);
	OK(hipMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
	bool hip = argc > 1 && !strcmp(argv[1], "hip");

	alarm(60);
	CHECK(preloaded());
	if (!hip)
		first_uses();
	make_streams();
	if (hip)
		not_opened();
	else
		mapped();
	return 0;
}

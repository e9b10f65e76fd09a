/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_SELFTEST=1: tries every backing on every device, with a core of its own, before the
 * program's first allocation is served. The test maps, writes, verifies, reuses across streams,
 * leaves and fills gaps, gives access to a peer, releases and measures. The test logs the results
 * and hands the verdicts to driver/rocm/backing.c, which decides the meaning of
 * SOMASHIM_BACKING=auto.
 *
 * Locks: none. The test runs at guard depth, so the runtime's calls back to us are passed on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/order/watched.h"
#include "driver/rocm/rocm.h"
#include "driver/rocm/verdict.h"
#include "driver/rocm/verdict_file.h"
#include "shim/process/current_device.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/recorded_memset.h"
#include "shim/process/report.h"
#include "shim/process/selftest.h"

#define MIB (1u << 20)
#define PROBE 4096u
#define SETTLE_MS 20
#define MAPPED_AGAIN 3
#define SMALL_BLOCKS 40
#define SMALL_SIZE (1200u << 10)
#define ROOM (512ull * MIB)  /* bytes; with less free memory vmm is not tried */
#define SLACK (4ull * MIB) /* bytes; other processes change the free figure a little */

struct trial {
	struct ss_core *core;
	struct ss_pool *pool;
	int dev;
	enum ss_backing backing;
	uint64_t free_before;
	hipStream_t stream[2];
	struct ss_timeline *tl[2];
	void *block[3];
	unsigned char *host;
	int devices;
	bool missing;  /* the last step failed because memory was not released */
	bool unshared; /* the backing works, but its memory cannot be shared */
	char why[160];
};

static const size_t sizes[3] = {17 * MIB + 512, 1 * MIB, 24 * MIB};
static const size_t refill = 20 * MIB;

static bool failed(struct trial *t, const char *what, int code)
{
	snprintf(t->why, sizeof(t->why), "%s (%d)", what, code);
	return false;
}

#define STEP(t, call) do { \
	int code_ = (int)(call); \
	ss_report_add(&somashim_report.r.progress); \
	if (code_) \
		return failed(t, #call, code_); \
} while (0)

/* Do both ends and the bytes around every 2 MiB border hold `value`, as read on `s`? */
static bool holds(struct trial *t, const unsigned char *p, size_t size, int value, hipStream_t s)
{
	for (size_t at = 0; at < size; at += 2 * MIB) {
		size_t from = at < PROBE / 2 ? 0 : at - PROBE / 2;

		if (from + PROBE > size)
			from = size - PROBE;
		memset(t->host, ~value, PROBE);
		STEP(t, REAL(hipMemcpyAsync, t->host, p + from, PROBE, hipMemcpyDeviceToHost, s));
		STEP(t, REAL(hipStreamSynchronize, s));
		for (size_t i = 0; i < PROBE; i++)
			if (t->host[i] != (unsigned char)value) {
				snprintf(t->why, sizeof(t->why),
					 "wrote %02x, read %02x at offset %zu of %zu", value,
					 t->host[i], from + i, size);
				return false;
			}
	}
	return true;
}

static bool step_map(struct trial *t)
{
	struct ss_block_info info;

	for (int i = 0; i < 3; i++) {
		STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], sizes[i], &t->block[i]));
		if (!ss_lookup(t->core, t->block[i], &info) || info.backing != t->backing)
			return failed(t, "the driver refused, and it is another kind of memory",
				      (int)info.backing);
		/* No wait before this store: a fresh mapping must take stores from the first
		 * moment. */
		STEP(t, REAL(hipMemsetAsync, t->block[i], 0x5a + i, sizes[i], t->stream[0]));
	}
	/* Some runtimes replace the pages of a fresh mapping after up to 2 ms, and earlier stores
	 * are lost. So look after that time. */
	STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
	usleep(SETTLE_MS * 1000);
	for (int i = 0; i < 3; i++)
		if (!holds(t, t->block[i], sizes[i], 0x5a + i, t->stream[0]))
			return false;
	return true;
}

static bool step_reuse(struct trial *t)
{
	struct ss_token token;
	hipEvent_t event;
	hipError_t err;

	STEP(t, REAL(hipEventCreateWithFlags, &event, hipEventDisableTiming));
	ss_event_add(t->core, event);
	STEP(t, ss_free_async(t->core, t->block[0], t->tl[0]));
	token = ss_record_begin(t->core, event, t->tl[0]);
	err = REAL(hipEventRecord, event, t->stream[0]);
	ss_record_end(t->core, &token, err == hipSuccess);
	token = ss_wait_begin(t->core, event, t->tl[1]);
	err = REAL(hipStreamWaitEvent, t->stream[1], event, 0);
	ss_wait_end(t->core, &token, err == hipSuccess);
	STEP(t, ss_alloc_async(t->core, t->pool, t->tl[1], sizes[0], &t->block[0]));
	STEP(t, REAL(hipMemsetAsync, t->block[0], 0xc3, sizes[0], t->stream[1]));
	if (!holds(t, t->block[0], sizes[0], 0xc3, t->stream[1]) ||
	    !holds(t, t->block[2], sizes[2], 0x5a + 2, t->stream[0]))
		return false;
	ss_event_forget(t->core, event);
	STEP(t, REAL(hipEventDestroy, event));
	return true;
}

static bool give_back(struct trial *t)
{
	struct ss_token token = ss_streams_sync_begin(t->core, t->dev);

	STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
	STEP(t, REAL(hipStreamSynchronize, t->stream[1]));
	STEP(t, REAL(hipStreamSynchronize, NULL));
	ss_sync_end(t->core, &token, true, false);
	STEP(t, ss_pool_trim(t->core, t->pool, 0));
	ss_decay_run(t->core, t->dev, true);
	return true;
}

/* Does the device report at least `expected` bytes as free? */
static bool came_back(struct trial *t, uint64_t expected)
{
	struct ss_driver driver = ss_rocm_driver();
	uint64_t left = 0;

	STEP(t, driver.mem_info(driver.ctx, t->dev, &left, NULL));
	t->missing = left + SLACK < expected;
	if (!t->missing)
		return true;
	snprintf(t->why, sizeof(t->why), "%" PRIu64 " bytes free, %" PRIu64 " expected", left,
		 expected);
	return false;
}

/* Frees block 0 and releases its memory. Does the device report that memory as free? */
static bool block_comes_back(struct trial *t)
{
	struct ss_driver driver = ss_rocm_driver();
	uint64_t left = 0;

	STEP(t, driver.mem_info(driver.ctx, t->dev, &left, NULL));
	STEP(t, ss_free_async(t->core, t->block[0], t->tl[0]));
	return give_back(t) && came_back(t, left + sizes[0] - SLACK);
}

/* The runtime may hold the bytes that are missing after a free, because it creates queues at any
 * time. A queue is created once, but a leak repeats each time. */
static bool comes_back_again(struct trial *t)
{
	if (!t->missing)
		return false;
	STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], sizes[0], &t->block[0]));
	STEP(t, REAL(hipMemsetAsync, t->block[0], 0x69, sizes[0], t->stream[0]));
	return block_comes_back(t);
}

/* Releases the memory of one block between two live ones, then allocates a larger block, whose
 * chunks fill the gap or lie beside the gap. */
static bool step_gap(struct trial *t)
{
	if (!block_comes_back(t) && !comes_back_again(t))
		return false;
	STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], refill, &t->block[0]));
	STEP(t, REAL(hipMemsetAsync, t->block[0], 0x3c, refill, t->stream[0]));
	return holds(t, t->block[0], refill, 0x3c, t->stream[0]) &&
	       holds(t, t->block[1], sizes[1], 0x5a + 1, t->stream[0]) &&
	       holds(t, t->block[2], sizes[2], 0x5a + 2, t->stream[0]);
}

/* A device that gets access later can read older blocks and newer ones. */
static bool peer_reads(struct trial *t, int peer)
{
	struct ss_device_switch s;
	hipStream_t stream;
	bool ok;

	if (!ss_device_switch(&s, peer))
		return failed(t, "the peer cannot be made current", peer);
	ok = REAL(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking) == hipSuccess;
	if (ok) {
		ok = holds(t, t->block[0], refill, 0x3c, stream) &&
		     holds(t, t->block[1], sizes[1], 0x77, stream) &&
		     holds(t, t->block[2], sizes[2], 0x5a + 2, stream);
		(void)REAL(hipStreamDestroy, stream);
	}
	ss_device_restore(&s);
	return ok;
}

static bool step_peers(struct trial *t)
{
	uint64_t peers = 1ull << t->dev;
	int can;

	for (int i = 0; i < t->devices; i++)
		if (i != t->dev && REAL(hipDeviceCanAccessPeer, &can, i, t->dev) == hipSuccess &&
		    can)
			peers |= 1ull << i;
	STEP(t, ss_pool_set_access(t->pool, peers, 0));
	STEP(t, ss_free_async(t->core, t->block[1], t->tl[0]));
	STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], sizes[1], &t->block[1]));
	STEP(t, REAL(hipMemsetAsync, t->block[1], 0x77, sizes[1], t->stream[0]));
	STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
	for (int i = 0; i < t->devices; i++)
		if (i != t->dev && (peers >> i & 1) && !peer_reads(t, i))
			return false;
	return true;
}

/* Grows in many steps of the smallest chunks, and verifies every byte of every block. */
static bool small_steps(struct trial *t, void *block[SMALL_BLOCKS], unsigned char *host)
{
	for (int i = 0; i < SMALL_BLOCKS; i++) {
		STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], SMALL_SIZE, &block[i]));
		STEP(t, REAL(hipMemsetAsync, block[i], 1 + i, SMALL_SIZE, t->stream[0]));
	}
	STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
	for (int i = 0; i < SMALL_BLOCKS; i++) {
		memset(host, 0, SMALL_SIZE);
		STEP(t, REAL(hipMemcpyAsync, host, block[i], SMALL_SIZE, hipMemcpyDeviceToHost,
			     t->stream[0]));
		STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
		for (size_t at = 0; at < SMALL_SIZE; at++)
			if (host[at] != 1 + i)
				return failed(t, "what was written in small steps is lost", i);
		STEP(t, ss_free_async(t->core, block[i], t->tl[0]));
	}
	return true;
}

static bool step_small(struct trial *t)
{
	void *block[SMALL_BLOCKS];
	unsigned char *host = malloc(SMALL_SIZE);
	bool ok = host ? small_steps(t, block, host) : failed(t, "out of host memory", 0);

	free(host);
	return ok;
}

static bool step_return(struct trial *t)
{
	for (int i = 0; i < 3; i++)
		STEP(t, ss_free_async(t->core, t->block[i], t->tl[0]));
	return give_back(t) && (came_back(t, t->free_before) || comes_back_again(t));
}

/* A slow thread or device may store only after the pages have been replaced, and then the test sees
 * no error. One success proves little, so map several times. */
static bool step_again(struct trial *t)
{
	for (int i = 0; i < MAPPED_AGAIN; i++) {
		STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], sizes[1], &t->block[1]));
		STEP(t, REAL(hipMemsetAsync, t->block[1], 0x96 + i, sizes[1], t->stream[0]));
		STEP(t, REAL(hipStreamSynchronize, t->stream[0]));
		usleep(SETTLE_MS * 1000);
		if (!holds(t, t->block[1], sizes[1], 0x96 + i, t->stream[0]))
			return false;
		STEP(t, ss_free_async(t->core, t->block[1], t->tl[0]));
		if (!give_back(t))
			return false;
	}
	return true;
}

static bool graph_after_maps(struct trial *t, struct ss_recorded_memset *r)
{
	STEP(t, ss_recorded_memset_make(r, t->stream[0], 0xa5, PROBE));
	for (int i = 0; i < MAPPED_AGAIN; i++) {
		STEP(t, ss_alloc_async(t->core, t->pool, t->tl[0], sizes[1], &t->block[1]));
		STEP(t, ss_recorded_memset_launch(r));
		if (!holds(t, r->memory, PROBE, 0xa5, t->stream[0]))
			return false;
		STEP(t, ss_free_async(t->core, t->block[1], t->tl[0]));
		if (!give_back(t))
			return false;
	}
	return true;
}

/* A map may spoil graphs that were made before (O9). */
static bool step_graph(struct trial *t)
{
	struct ss_recorded_memset r = {0};
	bool ok;

	if (t->backing != SS_BACKING_VMM)
		return true;
	ok = graph_after_maps(t, &r);
	ss_recorded_memset_end(&r);
	return ok;
}

/* On some machines the runtime cannot export memory of its own either. */
static bool runtime_shares(void)
{
	hipIpcMemHandle_t handle;
	hipError_t err;
	void *p;

	if (REAL(hipMalloc, &p, 2 * MIB) != hipSuccess)
		return true;
	err = REAL(hipIpcGetMemHandle, &handle, p);
	(void)REAL(hipFree, p);
	return err == hipSuccess;
}

/* Memory of hipMalloc must be exportable by hipIpcGetMemHandle; only the hip backing's is. No other
 * backing shares more, so a failure is no reason to reject this backing. */
static bool step_share(struct trial *t)
{
	struct ss_block_info info;
	hipIpcMemHandle_t handle;
	hipError_t err = hipSuccess;
	void *p;

	STEP(t, ss_alloc_classic(t->core, t->dev, 2 * MIB, &p));
	if (!ss_lookup(t->core, p, &info))
		return failed(t, "a block is not found", 0);
	if (info.backing == SS_BACKING_HIP && info.base == info.segment)
		err = REAL(hipIpcGetMemHandle, &handle, p);
	STEP(t, ss_free_classic(t->core, p, NULL));
	if (err == hipSuccess)
		return true;
	t->unshared = true;
	if (runtime_shares())
		return failed(t, "hipIpcGetMemHandle", (int)err);
	if (t->backing == SS_BACKING_HIP)
		ss_shim_log("selftest device %d: note: no memory can be shared with other "
			    "processes, because the runtime's hipIpcGetMemHandle fails (%d)",
			    t->dev, (int)err);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct trial *);
} steps[] = {
	{"map, write, verify", step_map},
	{"reuse across streams", step_reuse},
	{"leave and fill a gap", step_gap},
	{"let peers in", step_peers},
	{"grow in small steps", step_small},
	{"give back", step_return},
	{"map again", step_again},
	{"launch a graph after a map", step_graph},
	{"share", step_share},
};

/* At the first use of a stream, a memset or a copy the runtime takes device memory for itself and
 * keeps it (152 MiB on 7.2.4). This must happen before memory is counted, and with memory of the
 * runtime, because the test measures our memory. */
static bool warm_up(struct trial *t)
{
	unsigned char *p;
	bool ok = true;

	STEP(t, REAL(hipMalloc, (void **)&p, sizes[2]));
	for (int i = 0; i < 2 && ok; i++)
		ok = REAL(hipMemsetAsync, p, i, sizes[2], t->stream[i]) == hipSuccess &&
		     holds(t, p, sizes[2], i, t->stream[i]);
	/* The null stream has a queue of its own, which the steps need, too. */
	ok = ok && REAL(hipMemsetAsync, p, 2, sizes[2], NULL) == hipSuccess;
	(void)REAL(hipStreamSynchronize, NULL);
	STEP(t, REAL(hipFree, p));
	if (!ok && !t->why[0])
		return failed(t, "a memset failed", 0);
	return ok;
}

static bool prepare(struct trial *t, const struct ss_options *options, enum ss_backing backing)
{
	struct ss_driver driver = ss_rocm_driver();
	struct ss_options *mine; /* too large for some stacks */

	t->backing = backing;
	t->host = malloc(PROBE);
	mine = malloc(sizeof(*mine));
	if (mine) {
		*mine = *options;
		mine->backing = (int)backing;
		mine->limit.set = mine->initial.set = false;
		mine->limit.bytes = mine->initial.bytes = 0;
		t->core = ss_core_create(&driver, mine);
		free(mine);
	}
	if (!t->core || !t->host)
		return failed(t, "out of host memory", 0);
	t->pool = ss_pool_default(t->core, t->dev);
	if (!t->pool)
		return failed(t, "no pool", 0);
	for (int i = 0; i < 2; i++) {
		STEP(t, REAL(hipStreamCreateWithFlags, &t->stream[i], hipStreamNonBlocking));
		t->tl[i] = ss_timeline_add(t->core, t->dev, t->stream[i], SS_TL_NONBLOCKING, true);
		if (!t->tl[i])
			return failed(t, "no timeline", 0);
	}
	if (!warm_up(t))
		return false;
	STEP(t, driver.mem_info(driver.ctx, t->dev, &t->free_before, NULL));
	return true;
}

static bool has_room(int dev)
{
	struct ss_driver driver = ss_rocm_driver();
	uint64_t left = 0;

	return driver.mem_info(driver.ctx, dev, &left, NULL) == SS_OK && left >= ROOM;
}

/* A process can release its memory and later map new memory at the same addresses, if the device
 * gets unmapped memory back while the addresses stay reserved. */
static void tell_sleep(int dev, bool ok, bool missing)
{
	ss_shim_log("selftest device %d: can sleep: %s", dev,
		    ok      ? "yes (memory comes back while its addresses stay reserved)" :
		    missing ? "no (memory does not come back while its addresses stay reserved)" :
			      "no (the self-test of vmm failed)");
}

static void try_backing(int dev, int devices, const struct ss_options *options,
			enum ss_backing backing)
{
	struct trial t = {.dev = dev, .devices = devices};
	const char *at = "prepare", *name = ss_backing_name(backing), *why;
	bool ok, room = has_room(dev);
	int err = 0;

	if (!ss_rocm_usable(dev, backing, &why)) {
		ss_shim_log("selftest device %d %s: not offered on this runtime", dev, name);
		if (backing == SS_BACKING_VMM)
			ss_shim_log("selftest device %d: can sleep: no (%s)", dev, why);
		return;
	}
	ss_report_step("device %d, %s: %s", dev, name, at);
	ok = prepare(&t, options, backing);
	for (size_t i = 0; ok && i < sizeof(steps) / sizeof(steps[0]); i++) {
		at = steps[i].name;
		ss_report_step("device %d, %s: %s", dev, name, at);
		ok = steps[i].run(&t);
	}
	/* A failed step may have left pending work on memory that is released now. */
	for (int i = 0; i < 2; i++)
		if (t.stream[i])
			(void)REAL(hipStreamSynchronize, t.stream[i]);
	ss_core_destroy(t.core);
	for (int i = 0; i < 2; i++)
		if (t.stream[i])
			(void)REAL(hipStreamDestroy, t.stream[i]);
	free(t.host);
	/* A failure for lack of memory proves nothing about later. */
	err = ss_rocm_selftest_result(dev, backing, ok || t.unshared, ok || t.unshared || room);
	if (err)
		ss_shim_log("selftest device %d %s: the verdict is not remembered: %s", dev, name,
			    strerror(err));
	if (ok)
		ss_shim_log("selftest device %d %s: passed", dev, name);
	else
		ss_shim_log("selftest device %d %s: failed: %s: %s", dev, name, at, t.why);
	if (backing == SS_BACKING_VMM)
		tell_sleep(dev, ok || t.unshared, t.missing);
}

static void waiting(void)
{
	ss_report_add(&somashim_report.r.progress);
}

/* Tries vmm if no verdict on vmm is stored, and stores the start of the test first: a test that
 * ends the process or hangs is not made more than twice. */
static void try_untried(int dev, int devices, const struct ss_options *options)
{
	enum ss_verdict earlier = ss_rocm_verdict_again(dev);

	if (!ss_rocm_untried(dev))
		return;
	if (earlier == SS_VERDICT_AGAIN) {
		ss_shim_log("selftest device %d vmm: failed: it did not end, twice", dev);
		(void)ss_rocm_selftest_result(dev, SS_BACKING_VMM, false, true);
	} else if (!has_room(dev)) {
		ss_shim_log("selftest device %d vmm: not tried: too little memory is free", dev);
	} else if (ss_rocm_verdict_remember(dev, earlier == SS_VERDICT_NONE ?
							 SS_VERDICT_BEGUN :
							 SS_VERDICT_AGAIN) == 0) {
		try_backing(dev, devices, options, SS_BACKING_VMM);
	}
}

void ss_selftest(const struct ss_options *options, int devices)
{
	bool all = options->selftest != SS_SELFTEST_NEW;
	int lock = all ? -1 : ss_verdict_file_lock(waiting);

	enum ss_backing best;
	struct ss_device_switch s;
	const char *why;

	for (int dev = 0; dev < devices; dev++) {
		if (!ss_device_switch(&s, dev)) {
			ss_shim_log("selftest device %d: cannot be made current", dev);
			continue;
		}
		if (!all)
			try_untried(dev, devices, options);
		for (int b = SS_BACKING_HIP; all && b < SS_BACKING_COUNT; b++)
			try_backing(dev, devices, options, (enum ss_backing)b);
		ss_device_restore(&s);
		best = ss_rocm_best(dev, &why);
		ss_shim_log("selftest device %d: best: %s (%s)", dev, ss_backing_name(best), why);
	}
	if (lock >= 0)
		close(lock);
	ss_report_step("what follows the self-test");
}

/* SPDX-License-Identifier: MIT */
/*
 * The cost of sleep and wake, and the memory that comes back. A pool on virtual memory is filled
 * with blocks of many sizes, a third of which are freed, and put to sleep and woken by the core and
 * the store, on the runtime that is linked; no preload. Exit status 1: less than 0.99 of what was
 * held came back by the device's own figure, or contents were wrong.
 *   sleep [--mib N] [--store DIR] [--times N] [--seed N]
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/sleep.h"
#include "core/statistics.h"
#include "driver/rocm/rocm.h"
#include "shim/process/real.h"
#include "shim/sleep/store.h"

#define MIB (1ull << 20)
#define GIB (double)(1ull << 30)
#define BLOCKS 65536
#define SAMPLE 4096 /* bytes at each end of a block that are compared */

static struct block {
	char *p;
	size_t size;
	uint32_t value;
} block[BLOCKS];
static unsigned blocks;
static uint64_t seed = 1;

static uint64_t draw(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

/* ---- the store, with a clock ----------------------------------------------------------- */

static const struct ss_sleep_store *real;
static double copying_ns;

static bool timed(double since, bool ok)
{
	copying_ns += now_ns() - since;
	return ok;
}

static bool t_open(void *ctx, uint64_t bytes)
{
	double t = now_ns();

	return timed(t, real->open(ctx, bytes));
}

static bool t_save(void *ctx, int dev, uint64_t va, uint64_t size)
{
	double t = now_ns();

	return timed(t, real->save(ctx, dev, va, size));
}

static bool t_restore(void *ctx, int dev, uint64_t va, uint64_t size)
{
	double t = now_ns();

	return timed(t, real->restore(ctx, dev, va, size));
}

static bool t_flush(void *ctx)
{
	double t = now_ns();

	return timed(t, real->flush(ctx));
}

static void t_close(void *ctx)
{
	double t = now_ns();

	real->close(ctx);
	timed(t, true);
}

/* ---- contents ------------------------------------------------------------------------- */

static void fill(struct ss_core *core, struct ss_timeline *tl, hipStream_t stream, uint64_t bytes)
{
	struct ss_pool *pool = ss_pool_default(core, 0);
	uint64_t sum = 0;

	while (sum < bytes && blocks < BLOCKS) {
		struct block *b = &block[blocks++];

		/* 4 KiB to 64 MiB, as many of each power of two. */
		b->size = (4096 + draw() % 4096) << draw() % 14 & ~(size_t)3;
		if (ss_alloc_async(core, pool, tl, b->size, (void **)&b->p) != SS_OK)
			die("the device has no %llu MiB", (unsigned long long)(bytes / MIB));
		b->value = (uint32_t)draw();
		CHECK(hipMemsetD32Async((hipDeviceptr_t)b->p, (int)b->value, b->size / 4, stream));
		sum += b->size;
	}
	for (unsigned i = 0; i < blocks; i += 3) {
		ss_free_async(core, block[i].p, tl);
		block[i].p = NULL;
	}
}

static uint64_t wrong_in(const struct block *b, size_t at)
{
	uint32_t host[SAMPLE / 4];
	uint64_t wrong = 0;

	CHECK(hipMemcpy(host, b->p + at, SAMPLE, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < SAMPLE / 4; i++)
		wrong += host[i] != b->value ? 4 : 0;
	return wrong;
}

static uint64_t compare(void)
{
	uint64_t wrong = 0;

	for (unsigned i = 0; i < blocks; i++)
		if (block[i].p)
			wrong += wrong_in(&block[i], 0) +
				 wrong_in(&block[i], (block[i].size - SAMPLE) & ~(size_t)3);
	return wrong;
}

static void wait_idle(struct ss_core *core)
{
	struct ss_token t = ss_device_sync_begin(core, 0);

	CHECK(hipDeviceSynchronize());
	ss_sync_end(core, &t, true, true);
}

/* ---- one sleep -------------------------------------------------------------------------- */

static bool once(struct ss_core *core, const struct ss_sleep_store *store, int n)
{
	struct ss_asleep *asleep;
	struct ss_slept s;
	double begin, all[2], copies[2], gib;
	uint64_t wrong;
	bool good;

	wait_idle(core);
	copying_ns = 0;
	begin = now_ns();
	if (ss_core_sleep(core, store, &asleep, &s) != SS_OK)
		die("no sleep: %s", ss_store_why(real) ? ss_store_why(real) : "host memory is out");
	all[0] = now_ns() - begin;
	copies[0] = copying_ns;
	copying_ns = 0;
	begin = now_ns();
	if (ss_core_wake(asleep) != SS_OK)
		die("it does not wake");
	all[1] = now_ns() - begin;
	copies[1] = copying_ns;
	wrong = compare();
	gib = (double)s.live / GIB * 1e9;
	good = s.held && (double)s.seen >= 0.99 * (double)s.held && !wrong;
	printf("%5d %9.1f %9.1f %9.3f %8u %10.3f %10.3f %10.3f %10.3f %7llu%s\n", n,
	       (double)s.held / MIB, (double)s.live / MIB,
	       s.held ? (double)s.seen / (double)s.held : 0, s.chunks, copies[0] / gib,
	       (all[0] - copies[0]) / gib, copies[1] / gib, (all[1] - copies[1]) / gib,
	       (unsigned long long)wrong, good ? "" : " FAIL");
	return good;
}

int main(int argc, char **argv)
{
	static char *env[] = {"SOMASHIM_BACKING=vmm", NULL};
	const char *dir = NULL, *why;
	struct ss_sleep_store store;
	struct ss_options options;
	struct ss_timeline *tl;
	struct ss_driver driver;
	struct ss_core *core;
	hipStream_t stream;
	uint64_t mib = 1024;
	int times = 3;
	bool good = true;

	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1];

		if (value && !strcmp(argv[i], "--mib"))
			mib = strtoull(value, NULL, 10);
		else if (value && !strcmp(argv[i], "--times"))
			times = atoi(value);
		else if (value && !strcmp(argv[i], "--seed"))
			seed = strtoull(value, NULL, 10) | 1;
		else if (value && !strcmp(argv[i], "--store"))
			dir = value;
		else
			die("sleep [--mib N] [--store DIR] [--times N] [--seed N]");
	}
	ss_options_read(&options, env, NULL);
	if (!ss_real_resolve())
		die("no runtime");
	ss_runtime_ask_version();
	if (!ss_rocm_start(&options))
		die("no device");
	if (!ss_rocm_usable(0, SS_BACKING_VMM, &why))
		die("device 0 has no virtual memory: %s", why);
	driver = ss_rocm_driver();
	core = ss_core_create(&driver, &options);
	real = ss_store_make(dir, &why);
	if (!core || !real)
		die("%s", core ? why : "host memory is out");
	ss_core_watch(core, &(struct ss_watch){.log = stderr});
	store = (struct ss_sleep_store){real->ctx, t_open, t_save, t_restore, t_flush, t_close};
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	tl = ss_timeline_add(core, 0, stream, SS_TL_NONBLOCKING, true);
	if (!tl)
		die("host memory is out");
	fill(core, tl, stream, mib * MIB);
	printf("%5s %9s %9s %9s %8s %21s %21s %7s\n%5s %9s %9s %9s %8s %10s %10s %10s %10s %7s\n",
	       "", "MiB", "MiB", "came", "", "to sleep, s/GiB live", "to wake, s/GiB live", "wrong",
	       "sleep", "held", "live", "back", "chunks", "copies", "calls", "copies", "calls",
	       "bytes");
	for (int i = 1; i <= times; i++)
		good &= once(core, &store, i);
	ss_store_end(real);
	return !good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory of another process on two devices. Each close waits for the device that may still
 * use what it closes, and for no other.
 */
#include <pthread.h>

#define BYTES (1 << 20)
#include "procs.h"

#define PIECES 2

struct order {
	hipIpcMemHandle_t handle[PIECES];
	hipMemPoolPtrExportData data[PIECES];
};

static struct order o;
static unsigned char *seen;

/* ---- what is open, by either way ----------------------------------------- */

static void *open_piece(int i, int dev, bool pool)
{
	static hipMemPool_t pools[2];
	void *p;

	OK(hipSetDevice(dev));
	if (pool && !pools[dev])
		pools[dev] = make_pool(dev, hipMemHandleTypePosixFileDescriptor);
	if (pool)
		OK(hipMemPoolImportPointer(&p, pools[dev], &o.data[i]));
	else
		OK(hipIpcOpenMemHandle(&p, o.handle[i], 1));
	return p;
}

static void close_piece(void *p, bool pool)
{
	if (pool)
		OK(hipFree(p));
	else
		OK(hipIpcCloseMemHandle(p));
}

/* ---- a stream that is held, for a while ----------------------------------- */

static void *lets_go(void *stream)
{
	usleep(50000);
	release(stream);
	return NULL;
}

/* Of device `dev`, reading p. */
static hipStream_t reads(void *p, int dev, unsigned flags)
{
	hipStream_t s;

	OK(hipSetDevice(dev));
	OK(hipStreamCreateWithFlags(&s, flags));
	memset(seen, 0, BYTES);
	stall(s);
	OK(hipMemcpyAsync(seen, p, BYTES, hipMemcpyDeviceToHost, s));
	return s;
}

static void close_waits(void *p, bool pool, hipStream_t s, int value)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, lets_go, s));
	close_piece(p, pool);
	OK(hipStreamQuery(s));
	CHECK(!pthread_join(t, NULL));
	CHECK(seen[0] == value && seen[BYTES - 1] == value);
	OK(hipStreamDestroy(s));
}

/* ---- cases --------------------------------------------------------------- */

/* Since 7.0 both are one mapping, of the device that opened it last. */
static void reader(bool pool, int first, int current)
{
	void *p = open_piece(0, first, pool), *q = open_piece(1, !first, pool);
	hipStream_t s = reads(p, first, hipStreamNonBlocking);

	OK(hipSetDevice(current));
	close_piece(q, pool); /* has nothing to do with that stream */
	GIVES(hipErrorNotReady, hipStreamQuery(s));
	close_waits(p, pool, s, 10);
}

/* The real close waits for the null stream of the current device; so does one that leaves
 * the mapping to others. */
static void current_null(void)
{
	void *p = open_piece(0, 1, false), *q = open_piece(1, 1, false);
	hipStream_t s;

	for (int i = 0; i < PIECES; i++) {
		s = reads(i ? q : p, 0, hipStreamDefault);
		close_waits(i ? q : p, false, s, 10 + i);
	}
}

/* What was freed is closed when its device is idle, by whoever synchronizes: with a device
 * that is not, and that happens to be current, it has nothing to do. */
static void other_device(bool sync_frees)
{
	hipStream_t busy, idle;
	void *p, *mine;
	uint64_t closes = sim_count("hipIpcCloseMemHandle");

	OK(hipSetDevice(0));
	OK(hipMalloc(&mine, BYTES));
	OK(hipStreamCreate(&busy));
	p = open_piece(0, 1, true);
	OK(hipStreamCreateWithFlags(&idle, hipStreamNonBlocking));
	OK(hipMemsetAsync(p, 10, BYTES, idle));
	if (!sync_frees)
		OK(hipFreeAsync(p, idle));
	OK(hipSetDevice(0));
	stall(busy);
	OK(hipMemsetAsync(mine, 1, BYTES, busy));
	if (sync_frees)
		OK(hipFree(p)); /* of memory on device 1 */
	for (int i = 0; sim_count("hipIpcCloseMemHandle") == closes; i++) {
		CHECK(i < 5000);
		OK(hipStreamSynchronize(idle));
		usleep(1000);
	}
	GIVES(hipErrorNotReady, hipStreamQuery(busy));
	release(busy);
	OK(hipStreamDestroy(busy));
	OK(hipStreamDestroy(idle));
	OK(hipFree(mine));
}

static int import(void)
{
	hear(3, &o, sizeof(o));
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	for (int i = 0; i < 8; i++)
		reader(i & 1, i >> 1 & 1, i >> 2 & 1);
	current_null();
	other_device(false);
	other_device(true);
	tell(4, "", 1);
	return 0;
}

/* ---- the exporter -------------------------------------------------------- */

int main(int argc, char **argv)
{
	void *p[PIECES];
	struct child c;
	char go;

	if (argc > 1)
		return import();
	sim_calls();
	CHECK(preloaded());
	c = start("import", true);
	for (int i = 0; i < PIECES; i++) {
		OK(hipMalloc(&p[i], BYTES));
		fill(p[i], 10 + i);
		OK(hipIpcGetMemHandle(&o.handle[i], p[i]));
		OK(hipMemPoolExportPointer(&o.data[i], p[i]));
	}
	tell(c.to, &o, sizeof(o));
	hear(c.from, &go, 1);
	finish(&c, 0);
	return 0;
}

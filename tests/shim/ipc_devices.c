/* SPDX-License-Identifier: MIT */
/*
 * Memory of another process on two devices: each close waits for who may still use what it
 * closes.
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

static int import(void)
{
	hear(3, &o, sizeof(o));
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	for (int i = 0; i < 8; i++)
		reader(i & 1, i >> 1 & 1, i >> 2 & 1);
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

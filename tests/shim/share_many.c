/* SPDX-License-Identifier: MIT */
/*
 * Pools shared by many processes and threads, the programs of the HIP guide, processes
 * without the shim, and two devices.
 */
#include <pthread.h>

#include "share.h"

/* ---- every process shares with every other ------------------------------ */

/* Has a pool of its own with a block for each, and opens its block of each. */
int peer(void)
{
	void *own[BLOCKS + 2], *theirs[BLOCKS + 2];
	hipMemPoolPtrExportData data[BLOCKS + 2];
	hipMemPool_t pool = shareable(0), imported;
	int me, n, fd;
	char go = 1;

	hear(3, &me, sizeof(me));
	hear(3, &n, sizeof(n));
	for (int i = 0; i < n; i++) {
		OK(hipMallocFromPoolAsync(&own[i], BYTES, pool, NULL));
		fill(own[i], me * 16 + i);
		OK(hipMemPoolExportPointer(&data[i], own[i]));
	}
	fd = export_pool(pool);
	send_fd(4, fd);
	close(fd);
	tell(4, data, sizeof(data[0]) * (size_t)n);
	for (int i = 0; i < n; i++) {
		hipMemPoolPtrExportData d;

		fd = receive_fd(3);
		hear(3, &d, sizeof(d));
		imported = import_pool(fd);
		close(fd);
		OK(hipMemPoolImportPointer(&theirs[i], imported, &d));
		CHECK(holds(theirs[i], i * 16 + me));
	}
	tell(4, &go, 1);
	hear(3, &go, 1); /* all have looked */
	for (int i = 0; i < n; i++)
		fill(theirs[i], 128 + (i * 16 + me) % 128);
	tell(4, &go, 1);
	hear(3, &go, 1); /* all have written */
	for (int i = 0; i < n; i++)
		CHECK(holds(own[i], 128 + (me * 16 + i) % 128));
	for (int i = 0; i < n; i++)
		OK(hipFree(theirs[i]));
	tell(4, &go, 1);
	hear(3, &go, 1); /* importers have freed: now the exporters */
	for (int i = 0; i < n; i++)
		OK(hipFreeAsync(own[i], NULL));
	OK(hipDeviceSynchronize());
	return 0;
}

void all_to_all(int n)
{
	hipMemPoolPtrExportData data[8][8];
	struct child c[8];
	int fd[8];
	char go = 1;

	for (int i = 0; i < n; i++) {
		c[i] = start("peer", true);
		tell(c[i].to, &i, sizeof(i));
		tell(c[i].to, &n, sizeof(n));
	}
	for (int i = 0; i < n; i++) {
		fd[i] = receive_fd(c[i].from);
		hear(c[i].from, data[i], sizeof(data[0][0]) * (size_t)n);
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			send_fd(c[i].to, fd[k]);
			tell(c[i].to, &data[k][i], sizeof(data[0][0]));
		}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < n; i++)
			hear(c[i].from, &go, 1);
		for (int i = 0; i < n; i++)
			tell(c[i].to, &go, 1);
	}
	for (int i = 0; i < n; i++) {
		close(fd[i]);
		finish(&c[i], 0);
	}
}

/* ---- many threads --------------------------------------------------------- */

static struct order crowd_order;
static hipMemPool_t crowd_pool;

static void *one_of_them(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg * 7919 + 1;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < 150; i++) {
		int which = (int)((seed = seed * 1103515245 + 12345) >> 16) % crowd_order.count;
		unsigned char got[64];
		void *p;

		OK(hipMemPoolImportPointer(&p, crowd_pool, &crowd_order.data[which]));
		OK(hipMemcpyAsync(got, (char *)p + 1000, sizeof(got), hipMemcpyDeviceToHost, s));
		if (seed >> 28 & 1)
			OK(hipStreamSynchronize(s));
		if (i % 3)
			OK(hipFreeAsync(p, s));
		else
			OK(hipFree(p));
		OK(hipStreamSynchronize(s));
		CHECK(got[0] == 10 + which && got[63] == 10 + which);
	}
	OK(hipStreamDestroy(s));
	return NULL;
}

/* All import and free the same few blocks; at the end nothing is mapped. */
int crowd(void)
{
	void *p[BLOCKS];
	pthread_t t[4];
	char go = 1;

	crowd_pool = open_all(&crowd_order, p);
	for (int i = 0; i < crowd_order.count; i++)
		OK(hipFreeAsync(p[i], NULL));
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, one_of_them, (void *)i));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (int i = 0;
	     i < 2000 && sim_count("hipIpcCloseMemHandle") < sim_count("hipIpcOpenMemHandle");
	     i++) {
		OK(hipDeviceSynchronize());
		usleep(1000);
	}
	CHECK(sim_count("hipIpcCloseMemHandle") == sim_count("hipIpcOpenMemHandle"));
	tell(4, &go, 1);
	return 0;
}

/* ---- both programs of the HIP guide's interprocess section --------------- */

/* A pointer of hipMalloc, imported into a pool that was made here. */
int guide_pointer(void)
{
	hipMemPoolPtrExportData data;
	hipMemPool_t pool;
	void *p;
	int v = 0;
	char go = 1;

	hear(3, &data, sizeof(data));
	pool = shareable(0);
	OK(hipMemPoolImportPointer(&p, pool, &data));
	OK(hipMemcpy(&v, p, sizeof(v), hipMemcpyDeviceToHost));
	CHECK(v == 4711);
	v = 1147;
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipFree(p));
	tell(4, &go, 1);
	return 0;
}

/* Its descriptor is passed on by address. */
int guide_handle(void)
{
	int descriptor = receive_fd(3), v = 5, w = 0;
	hipMemPool_t pool;
	void *p;
	char go = 1;

	OK(hipMemPoolImportFromShareableHandle(&pool, &descriptor, POSIX_FD, 0));
	OK(hipMallocFromPoolAsync(&p, sizeof(int), pool, 0));
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipMemcpy(&w, p, sizeof(w), hipMemcpyDeviceToHost));
	CHECK(w == 5);
	OK(hipFree(p));
	OK(hipMemPoolDestroy(pool));
	tell(4, &go, 1);
	return 0;
}

void guide(void)
{
	struct child c = start("guide-pointer", true);
	hipMemPoolPtrExportData data;
	hipMemPool_t pool;
	void *p, *other;
	int v = 4711, descriptor;
	char go;

	OK(hipMalloc(&other, sizeof(int)));
	OK(hipMalloc(&p, sizeof(int)));
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipMemPoolExportPointer(&data, p));
	tell(c.to, &data, sizeof(data));
	hear(c.from, &go, 1);
	OK(hipMemcpy(&v, p, sizeof(v), hipMemcpyDeviceToHost));
	CHECK(v == 1147);
	OK(hipFree(p));
	OK(hipFree(other));
	finish(&c, 0);

	c = start("guide-handle", true);
	pool = shareable(0);
	OK(hipMallocFromPoolAsync(&p, sizeof(int), pool, 0));
	OK(hipMemPoolExportToShareableHandle(&descriptor, pool, POSIX_FD, 0));
	send_fd(c.to, descriptor);
	OK(hipFree(p));
	OK(hipMemPoolDestroy(pool)); /* the descriptor outlives it */
	hear(c.from, &go, 1);
	close(descriptor);
	finish(&c, 0);
}

/* ---- a process without us exports --------------------------------------- */

int plain_exporter(void)
{
	hipMemPool_t pool = shareable(0);
	struct order o;
	void *p[2];
	char go;

	CHECK(!preloaded());
	export(&o, pool, p, 2, 0);
	hand_over(4, pool, &o);
	hear(3, &go, 1);
	CHECK(holds(p[0], 60) && holds(p[1], 61));
	return 0;
}

void from_plain(void)
{
	struct child c = start("plain-exporter", false);
	hipMemPool_t pool, ours = shareable(0);
	struct order o;
	int fd = receive_fd(c.from);
	void *p[2];
	char go = 1;

	hear(c.from, &o, sizeof(o));
	pool = import_pool(fd);
	close(fd);
	for (int i = 0; i < 2; i++) {
		/* Into the runtime's pool, and into one of ours. */
		OK(hipMemPoolImportPointer(&p[i], i ? ours : pool, &o.data[i]));
		CHECK(holds(p[i], 10 + i));
		fill(p[i], 60 + i);
	}
	OK(hipFree(p[0]));
	OK(hipFreeAsync(p[1], NULL));
	OK(hipDeviceSynchronize());
	tell(c.to, &go, 1);
	finish(&c, 0);
	OK(hipMemPoolDestroy(pool));
	OK(hipMemPoolDestroy(ours));
}

/* ---- two devices --------------------------------------------------------- */

int right_device(void)
{
	hipMemLocation where = {hipMemLocationTypeDevice, 0};
	hipPointerAttribute_t a;
	hipMemAccessFlags f;
	hipMemPool_t pool;
	struct order o;
	void *p[BLOCKS], *q;
	char go = 1;

	pool = open_all(&o, p);
	for (int i = 0; i < o.count; i++) {
		OK(hipPointerGetAttributes(&a, p[i]));
		CHECK(a.device == o.device);
	}
	OK(hipSetDevice(0));
	OK(hipMallocFromPoolAsync(&q, BYTES, pool, NULL));
	OK(hipPointerGetAttributes(&a, q));
	CHECK(a.device == o.device);
	OK(hipMemPoolGetAccess(&f, pool, &where));
	CHECK(f == hipMemAccessFlagsProtReadWrite);
	where.id = 1;
	OK(hipMemPoolGetAccess(&f, pool, &where));
	CHECK(f == (o.device ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtNone));
	for (int i = 0; i < o.count; i++)
		OK(hipFree(p[i]));
	OK(hipFree(q));
	tell(4, &go, 1);
	return 0;
}

/* It does not see the device that the pool is on, nor any of that number: pointers do not ask
 * for one, in the runtime either, and the memory may well be of a device that it does see. */
int no_device(void)
{
	hipMemPool_t pool;
	int fd = receive_fd(3);
	struct order o;
	char go = 1;
	void *p;

	GIVES(hipErrorInvalidDevice,
	      hipMemPoolImportFromShareableHandle(&pool, by_value(fd), POSIX_FD, 0));
	hear(3, &o, sizeof(o));
	pool = shareable(0);
	for (int i = 0; i < o.count; i++) {
		OK(hipMemPoolImportPointer(&p, pool, &o.data[i]));
		CHECK(holds(p, 10 + i));
		OK(hipFree(p));
	}
	OK(hipMemPoolDestroy(pool));
	tell(4, &go, 1);
	return 0;
}

/* Imported on both devices. Since 7.0 that is one mapping, and whoever lets go of the last
 * of it waits for both. */
int both_devices(void)
{
	hipMemPool_t pools[DEVICES];
	unsigned char *seen;
	struct order o;
	hipStream_t s;
	void *p[DEVICES];
	char go = 1;

	close(receive_fd(3));
	hear(3, &o, sizeof(o));
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	for (int round = 0; round < 8; round++) {
		for (int dev = 0; dev < DEVICES; dev++) {
			OK(hipSetDevice(dev));
			pools[dev] = shareable(dev);
			OK(hipMemPoolImportPointer(&p[dev], pools[dev], &o.data[0]));
		}
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
		memset(seen, 0, BYTES);
		OK(hipMemcpyAsync(seen, p[1], BYTES, hipMemcpyDeviceToHost, s));
		for (int dev = 0; dev < DEVICES; dev++)
			OK(hipFree(p[dev]));
		for (size_t k = 0; k < BYTES; k++)
			CHECK(seen[k] == 10);
		OK(hipStreamDestroy(s));
		for (int dev = 0; dev < DEVICES; dev++)
			OK(hipMemPoolDestroy(pools[dev]));
	}
	tell(4, &go, 1);
	return 0;
}

static void with_device(const char *role, int dev)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	struct child c = start(role, true);
	hipMemPool_t pool = shareable(dev);
	struct order o;
	void *p[BLOCKS];
	char go;

	if (dev)
		OK(hipMemPoolSetAccess(pool, &access, 1));
	export(&o, pool, p, 3, dev);
	hand_over(c.to, pool, &o);
	hear(c.from, &go, 1);
	finish(&c, 0);
}

void devices(void)
{
	struct child blind;
	hipMemPool_t pool;
	struct order o;
	void *p[2];
	int fd;
	char seen;

	setenv("SOMASIM_DEVICES", "1", 1);
	blind = start("no-device", true);
	setenv("SOMASIM_DEVICES", "2", 1);
	pool = shareable(1);
	fd = export_pool(pool);
	send_fd(blind.to, fd);
	close(fd);
	export(&o, pool, p, 2, 1);
	tell(blind.to, &o, sizeof(o));
	hear(blind.from, &seen, 1);
	finish(&blind, 0);
	for (int dev = 0; dev < DEVICES; dev++) {
		with_device("right-device", dev);
		with_device("both-devices", dev);
	}
}

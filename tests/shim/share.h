/* SPDX-License-Identifier: MIT */
/* Helpers of the tests of pools between processes. */
#ifndef TEST_SHARE_H
#define TEST_SHARE_H

#define BYTES 100000
#include "procs.h"

#define BLOCKS 6
#define POSIX_FD hipMemHandleTypePosixFileDescriptor
#define DEVICES 2 /* where a test has them */

struct order {
	int count, device;
	hipMemPoolPtrExportData data[BLOCKS];
};

static inline hipMemPool_t shareable(int device)
{
	return make_pool(device, POSIX_FD);
}

static inline void *by_value(int fd)
{
	return (void *)(intptr_t)fd;
}

static inline int export_pool(hipMemPool_t pool)
{
	int fd = -1;

	OK(hipMemPoolExportToShareableHandle(&fd, pool, POSIX_FD, 0));
	CHECK(fd >= 3);
	return fd;
}

static inline hipMemPool_t import_pool(int fd)
{
	hipMemPool_t pool;

	OK(hipMemPoolImportFromShareableHandle(&pool, by_value(fd), POSIX_FD, 0));
	return pool;
}

static inline hipMemPool_t open_all(struct order *o, void **p)
{
	int fd = receive_fd(3);
	hipMemPool_t pool = import_pool(fd);

	close(fd); /* the pool does not need it */
	hear(3, o, sizeof(*o));
	OK(hipSetDevice(o->device));
	for (int i = 0; i < o->count; i++) {
		OK(hipMemPoolImportPointer(&p[i], pool, &o->data[i]));
		CHECK(holds(p[i], 10 + i));
	}
	return pool;
}

static inline void export(struct order *o, hipMemPool_t pool, void **p, int count, int device)
{
	memset(o, 0, sizeof(*o));
	o->count = count;
	o->device = device;
	for (int i = 0; i < count; i++) {
		OK(hipMallocFromPoolAsync(&p[i], BYTES, pool, NULL));
		fill(p[i], 10 + i);
		OK(hipMemPoolExportPointer(&o->data[i], p[i]));
	}
}

static inline void hand_over(int to, hipMemPool_t pool, const struct order *o)
{
	int fd = export_pool(pool);

	send_fd(to, fd);
	close(fd);
	tell(to, o, sizeof(*o));
}

static inline uint64_t reserved(hipMemPool_t pool)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

/* share_many.c: the roles of children, and what starts them. */
int peer(void);
int guide_pointer(void);
int guide_handle(void);
int plain_exporter(void);
int right_device(void);
int no_device(void);
int both_devices(void);
int crowd(void);
void all_to_all(int n);
void guide(void);
void from_plain(void);
void devices(void);

/* share_args.c */
int late(void);
int never_idle(void);
void same_process(void);
void stale(void);
void loop(void);
void arguments(void);
void attributes(void);

#endif

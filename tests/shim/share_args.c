/* SPDX-License-Identifier: MIT */
/*
 * Pools that a process shares with itself, imports when their pool ends, and arguments of
 * all kinds.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "share.h"

/* ---- in one process ------------------------------------------------------ */

/* Exported and imported here: one block, open twice, gone with the last free. */
void same_process(void)
{
	hipMemPool_t pool = shareable(0), imported;
	hipMemPoolPtrExportData data, stale;
	void *p[3], *q;
	int fd = export_pool(pool);

	imported = import_pool(fd);
	close(fd);
	CHECK(imported != pool);
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd, imported, POSIX_FD, 0));
	for (int i = 0; i < 3; i++)
		OK(hipMallocFromPoolAsync(&p[i], BYTES, pool, NULL));
	for (int first = 0; first < 2; first++) {
		fill(p[first], 7);
		OK(hipMemPoolExportPointer(&data, p[first]));
		OK(hipMemPoolImportPointer(&q, imported, &data));
		CHECK(holds(q, 7));
		fill(q, 8);
		CHECK(holds(p[first], 8));
		OK(first ? hipFree(q) : hipFreeAsync(p[first], NULL));
		CHECK(holds(first ? p[first] : q, 8));
		OK(first ? hipFreeAsync(p[first], NULL) : hipFree(q));
		GIVES(hipErrorInvalidValue, hipFreeAsync(p[first], NULL));
		stale = data;
		GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, imported, &stale));
	}
	OK(hipFreeAsync(p[2], NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(imported));
	OK(hipMemPoolDestroy(pool));
}

/* What was exported has gone, all of its segment with it, and another block lies there. */
void stale(void)
{
	hipMemPool_t pool = shareable(0);
	hipMemPoolPtrExportData data, other;
	void *p, *q, *r = NULL;

	for (int round = 0; round < 3; round++) {
		OK(hipMallocFromPoolAsync(&p, 8 << 20, pool, NULL));
		OK(hipMemPoolExportPointer(&data, p));
		OK(hipStreamSynchronize(NULL));
		OK(hipFree(p));
		OK(hipMalloc(&q, 8 << 20));
		CHECK(round || q == p || !sim_call("somasim_total_calls"));
		if (round == 1) /* as one that is named to others itself */
			OK(hipMemPoolExportPointer(&other, q));
		CHECK(hipMemPoolImportPointer(&r, pool, &data) != hipSuccess && !r);
		OK(hipFree(q));
		GIVES(hipErrorInvalidValue, hipFree(q));
	}
	OK(hipMemPoolDestroy(pool));
}

/* ---- after exit() -------------------------------------------------------- */

static void *left[BLOCKS];
static unsigned char *seen;

/* The runtime frees by whole allocations, and knows nothing of the blocks in one. */
static void frees_late(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		OK(hipMemcpyAsync(seen, left[i], BYTES, hipMemcpyDeviceToHost, NULL));
		if (i % 2) {
			OK(hipFreeAsync(left[i], NULL));
			OK(hipStreamSynchronize(NULL));
		} else {
			OK(hipFree(left[i])); /* and waits */
		}
		for (size_t k = 0; k < BYTES; k++)
			CHECK(seen[k] == 10 + i);
		CHECK(hipFree(left[i]) != hipSuccess);
	}
	tell(4, "", 1);
}

int late(void)
{
	struct order o;

	atexit(frees_late);
	open_all(&o, left);
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	return 0;
}

/* ---- a device that is never idle ------------------------------------------ */

static void *scratch;

/* By the time that the other thread's wait returns, there is work again. */
static void *works(void *stream)
{
	int (*holds_one)(void) = (int (*)(void))sim_must("somasim_holds");

	while (!holds_one())
		usleep(100);
	OK(hipMemsetAsync(scratch, 1, BYTES, stream));
	((void (*)(void))sim_must("somasim_let_go"))();
	return NULL;
}

/* Who waits for all of the device lets go of what was freed. */
int never_idle(void)
{
	int (*hold_next)(const char *, int) = (int (*)(const char *, int))sim_must("somasim_hold");
	struct order o;
	void *p[BLOCKS];
	hipMemPool_t pool = open_all(&o, p);
	hipStream_t busy;
	pthread_t t;

	OK(hipStreamCreateWithFlags(&busy, hipStreamNonBlocking));
	OK(hipMalloc(&scratch, BYTES));
	for (uint64_t round = 1; round <= 3; round++) {
		for (int i = 0; i < o.count; i++)
			OK(hipFreeAsync(p[i], NULL));
		stall(busy);
		hold_next("hipDeviceSynchronize", 1);
		CHECK(!pthread_create(&t, NULL, works, busy));
		OK(hipDeviceSynchronize());
		CHECK(sim_count("hipIpcCloseMemHandle") == round);
		CHECK(!pthread_join(t, NULL));
		release(busy);
		OK(hipStreamSynchronize(busy)); /* before it is held again */
		for (int i = 0; i < o.count; i++)
			OK(hipMemPoolImportPointer(&p[i], pool, &o.data[i]));
	}
	tell(4, "", 1);
	return 0;
}

/* ---- again and again ------------------------------------------------------ */

/* Exported bytes are not reused; so the segments they were in have to go back. */
void loop(void)
{
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int way = 0; way < 3; way++) {
		hipMemPool_t pool = shareable(0);
		size_t before, least, total;
		void *p;

		OK(hipDeviceSynchronize());
		OK(hipMemGetInfo(&before, &total));
		least = before;
		for (int i = 0; i < 600; i++) {
			size_t now;

			if (way)
				OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, s));
			else
				OK(hipMalloc(&p, 1 << 20));
			OK(hipMemsetAsync(p, i, 4096, s)); /* a part: each page costs a fault */
			if (way)
				OK(hipMemPoolExportPointer(&data, p));
			else
				OK(hipIpcGetMemHandle(&handle, p));
			if (way == 2)
				OK(hipFreeAsync(p, s));
			else
				OK(hipFree(p));
			OK(hipStreamSynchronize(s));
			OK(hipMemGetInfo(&now, &total));
			if (now < least)
				least = now;
		}
		CHECK(before - least <= 128u << 20);
		OK(hipDeviceSynchronize());
		OK(hipMemPoolDestroy(pool));
	}
	OK(hipStreamDestroy(s));
}

/* ---- arguments ----------------------------------------------------------- */

static void refused(void *handle)
{
	hipMemPool_t pool;

	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&pool, handle, POSIX_FD, 0));
}

/* Descriptors of all kinds, some of which would keep a reader waiting for ever. */
static void hostile_descriptors(hipMemPool_t pool)
{
	unsigned char card[8192];
	int fd = export_pool(pool), pipes[2], sockets[2], fds, m, bad = 1000000;
	ssize_t size = pread(fd, card, sizeof(card), 0);

	CHECK(size > 0);
	CHECK(pwrite(fd, card, 1, 0) < 0 && ftruncate(fd, 0) < 0); /* sealed */
	CHECK(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	fds = open_fds();
	refused(by_value(pipes[0]));
	refused(by_value(sockets[0]));
	refused(&pipes[1]);
	refused(by_value(bad));
	refused(&bad);
	refused((void *)8); /* closed, and nothing to read there */
	refused((void *)(~0ull - 64));
	m = open("/proc/self/exe", O_RDONLY);
	refused(by_value(m));
	close(m);
	m = open("/dev/zero", O_RDONLY);
	refused(by_value(m));
	close(m);
	/* All of it, but not sealed; sealed, but not all of it; a bit changed. */
	for (int i = -1; i < (int)size * 8 + 1; i += i < 512 ? 1 : 61) {
		size_t bytes = i == (int)size * 8 ? (size_t)size - 1 : (size_t)size;
		hipMemPool_t made;
		hipError_t err;

		m = memfd_create("test", MFD_ALLOW_SEALING);
		if (i >= 0 && i < (int)size * 8)
			card[i >> 3] ^= 1 << (i & 7);
		CHECK(write(m, card, bytes) == (ssize_t)bytes);
		if (i >= 0 && i < (int)size * 8)
			card[i >> 3] ^= 1 << (i & 7);
		if (i >= 0)
			CHECK(!fcntl(m, F_ADD_SEALS,
				     F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
		err = hipMemPoolImportFromShareableHandle(&made, by_value(m), POSIX_FD, 0);
		if (i < 128 || i == (int)size * 8) /* before that come magic and counts */
			CHECK(err == hipErrorInvalidValue || i >= 96);
		if (err == hipSuccess)
			OK(hipMemPoolDestroy(made));
		else
			CHECK(err == hipErrorInvalidValue || err == hipErrorInvalidDevice);
		close(m);
	}
	CHECK(open_fds() == fds);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(sockets[i]);
	}
	close(fd);
}

void arguments(void)
{
	hipMemPool_t pool = shareable(0), other;
	hipMemPoolPtrExportData data;
	int fd = export_pool(pool), fd2 = export_pool(pool);
	void *p, *q;

	CHECK(fd != fd2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd2); /* each is the caller's own */
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, NULL));
	OK(hipMemPoolExportPointer(&data, p));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(NULL, pool, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, NULL, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, pool, POSIX_FD, 1));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolExportToShareableHandle(&fd2, pool, hipMemHandleTypeNone, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(NULL, by_value(fd), POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&other, NULL, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&other, by_value(fd), hipMemHandleTypeNone, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&other, by_value(fd), POSIX_FD, 1));
	/* A handle of 64 bits, of which the lower were received. */
	OK(hipMemPoolImportFromShareableHandle(
		&other, (void *)((uintptr_t)fd | (uintptr_t)0x5555aaaa << 32), POSIX_FD, 0));
	OK(hipMemPoolDestroy(other));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(NULL, p));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, NULL));
	CHECK(hipMemPoolExportPointer(&data, &data) != hipSuccess);
	OK(hipMemPoolExportPointer(&data, p));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(NULL, pool, &data));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, NULL, &data));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, pool, NULL));
	/* A pool that was not made to be shared has no descriptor. */
	other = make_pool(0, hipMemHandleTypeNone);
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, other, POSIX_FD, 0));
	OK(hipMemPoolDestroy(other));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, other, POSIX_FD, 0));
	hostile_descriptors(pool);
	OK(hipFreeAsync(p, NULL));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, p));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(pool));
	close(fd);
}

/* Reuse flags travel with the descriptor, as in the runtime. */
void attributes(void)
{
	hipMemPool_t pool = shareable(0), copy;
	int off = 0, on = 1, fd;

	OK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &off));
	fd = export_pool(pool);
	copy = import_pool(fd);
	OK(hipMemPoolGetAttribute(copy, hipMemPoolReuseAllowOpportunistic, &on));
	CHECK(on == 0);
	OK(hipMemPoolGetAttribute(copy, hipMemPoolReuseFollowEventDependencies, &on));
	CHECK(on == 1);
	close(fd);
	OK(hipMemPoolDestroy(copy));
	OK(hipMemPoolDestroy(pool));
}

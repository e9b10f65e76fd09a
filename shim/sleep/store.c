/* SPDX-License-Identifier: MIT */
/*
 * Copies contents of device memory to a tape and back, through a pinned buffer. The buffer holds
 * a stretch of the tape, whatever the pieces in it. A second buffer, so that host and device copy
 * at the same time, brought nothing on a device that is a thread of the host (bench/sleep.c).
 *
 * Waits are for the stream, not for an event: on 7.2.4 over an emulated device
 * hipEventSynchronize returned before the end of copies to mapped memory that came before the
 * event (O10).
 *
 * The buffer lives for one sleep or one waking only, because a reset of the device would take
 * it. Copies are commands of the null stream, because a stream of our own might
 * take a queue, and with it memory of the device, for good.
 *
 * Locks: none.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config/limits.h"
#include "live/kernel_memory.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/sleep/store.h"
#include "shim/sleep/tape.h"

#define BUFFER (32ull << 20)
#define PORTABLE 1 /* hipHostMallocPortable: pinned for every device */

static const char refused[] = "the runtime refused a copy";
static const char disk[] = "the disk of the store's directory failed";

struct store {
	struct ss_sleep_store face; /* first */
	char *dir;                  /* NULL: anonymous memory */
	const char *root, *why;
	struct ss_tape tape;
	uint64_t bytes, at; /* of the tape; the buffer ends at `at` in it */
	char *buffer;       /* NULL: none yet */
	bool pinned;
	uint64_t size, filled; /* of the buffer */
	uint64_t busy;         /* devices with copies from or to it, a bit each */
	bool saving;
};

static bool failed(struct store *s, const char *why)
{
	s->why = why;
	return false;
}

/* ---- the buffer --------------------------------------------------------------------- */

/* Memory that is not pinned does as well, but slower. */
static bool make_buffer(struct store *s)
{
	void *p = NULL;

	if (s->buffer)
		return true;
	s->pinned = REAL(hipHostMalloc, &p, s->size, PORTABLE) == hipSuccess && p;
	if (!s->pinned) {
		p = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return failed(s, "the machine has no memory for a buffer");
	}
	s->buffer = p;
	return true;
}

static bool wait_for_device(int dev)
{
	struct ss_device_switch old;
	bool ok;

	if (!ss_device_switch(&old, dev))
		return false;
	ok = REAL(hipStreamSynchronize, NULL) == hipSuccess;
	ss_device_restore(&old);
	return ok;
}

/* Returns when no device uses the buffer any more. False: a copy failed. */
static bool wait_for_devices(struct store *s)
{
	bool ok = true;

	for (int dev = 0; s->busy; dev++)
		if (s->busy >> dev & 1) {
			ok &= wait_for_device(dev);
			s->busy &= ~(1ull << dev);
		}
	return ok || failed(s, refused);
}

/* The next series begins at the start of the tape. */
static void end_buffer(struct store *s)
{
	const char *why = s->why;

	(void)wait_for_devices(s);
	if (s->buffer && s->pinned)
		(void)REAL(hipHostFree, s->buffer);
	else if (s->buffer)
		munmap(s->buffer, s->size);
	s->buffer = NULL;
	s->filled = 0;
	s->at = 0;
	s->why = why;
}

/* ---- copies -------------------------------------------------------------------------- */

/* Empties the buffer. Bytes that a device copied into it are written to the tape. */
static bool drain(struct store *s)
{
	if (!wait_for_devices(s))
		return false;
	if (s->saving && s->filled &&
	    !ss_tape_write(&s->tape, s->at - s->filled, s->buffer, s->filled))
		return failed(s, disk);
	s->filled = 0;
	return true;
}

/* The calling thread's current device is `dev`. */
static bool copy(struct store *s, int dev, void *device, uint64_t size)
{
	char *host = s->buffer + s->filled;
	hipError_t err;

	if (!s->saving && !ss_tape_read(&s->tape, s->at, host, size))
		return failed(s, disk);
	s->busy |= 1ull << dev;
	err = s->saving ? REAL(hipMemcpyAsync, host, device, size, hipMemcpyDeviceToHost, NULL) :
			  REAL(hipMemcpyAsync, device, host, size, hipMemcpyHostToDevice, NULL);
	if (err != hipSuccess)
		return failed(s, refused);
	s->filled += size;
	s->at += size;
	return true;
}

static bool copy_piece(struct store *s, int dev, uint64_t va, uint64_t size)
{
	struct ss_device_switch old;
	uint64_t left = s->size - s->filled, part = size < left ? size : left;
	bool ok;

	if (!ss_device_switch(&old, dev))
		return failed(s, refused);
	ok = copy(s, dev, (void *)(uintptr_t)va, part);
	ss_device_restore(&old);
	return ok;
}

static bool copy_range(struct store *s, int dev, uint64_t va, uint64_t size)
{
	if (size > s->bytes - s->at)
		return failed(s, "more is copied than was asked for");
	if (!make_buffer(s))
		return false;
	while (size) {
		uint64_t before = s->at;

		if (s->filled == s->size && !drain(s))
			return false;
		if (!copy_piece(s, dev, va, size))
			return false;
		va += s->at - before;
		size -= s->at - before;
	}
	return true;
}

/* ---- the face ------------------------------------------------------------------------ */

static bool store_open(void *ctx, uint64_t bytes)
{
	struct store *s = ctx;

	s->why = NULL;
	s->bytes = bytes;
	s->saving = true;
	s->size = bytes < BUFFER ? (bytes + 4095) / 4096 * 4096 : BUFFER;
	return ss_tape_open(&s->tape, s->dir, bytes, s->size, s->root, &s->why);
}

static bool store_save(void *ctx, int dev, uint64_t va, uint64_t size)
{
	return copy_range(ctx, dev, va, size);
}

static bool store_restore(void *ctx, int dev, uint64_t va, uint64_t size)
{
	return copy_range(ctx, dev, va, size);
}

static bool store_flush(void *ctx)
{
	struct store *s = ctx;
	bool ok = drain(s);

	if (s->saving && ok && !ss_tape_sync(&s->tape))
		ok = failed(s, disk);
	end_buffer(s);
	s->saving = false;
	return ok;
}

static void store_close(void *ctx)
{
	struct store *s = ctx;

	end_buffer(s);
	ss_tape_close(&s->tape);
}

/* ---- its life ------------------------------------------------------------------------- */

const struct ss_sleep_store *ss_store_make(const char *dir, const char **why)
{
	struct store *s;

	if (dir && !ss_tape_dir_usable(dir, why))
		return NULL;
	s = calloc(1, sizeof(*s));
	/* The program may change its directory. */
	if (s && dir && !(s->dir = realpath(dir, NULL))) {
		free(s);
		s = NULL;
	}
	if (!s) {
		*why = "host memory is out";
		return NULL;
	}
	s->face = (struct ss_sleep_store){
		s, store_open, store_save, store_restore, store_flush, store_close,
	};
	s->root = ss_kernel_root();
	s->tape.fd = -1;
	return &s->face;
}

const char *ss_store_why(const struct ss_sleep_store *store)
{
	return ((const struct store *)store)->why;
}

void ss_store_set_root(const struct ss_sleep_store *store, const char *root)
{
	((struct store *)store->ctx)->root = root;
}

void ss_store_end(const struct ss_sleep_store *store)
{
	struct store *s = store ? store->ctx : NULL;

	if (!s)
		return;
	free(s->dir);
	free(s);
}

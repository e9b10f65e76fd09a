/* SPDX-License-Identifier: MIT */
/*
 * Copies contents of device memory to a tape and back. Pieces go through two pinned buffers: the
 * device copies one while the host copies the other. A buffer holds a stretch of the tape,
 * whatever the pieces in it.
 *
 * Buffers and events live for one sleep or one waking only, because a reset of the device
 * would take them. Copies are commands of the null stream, because a stream of our own might
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

struct buffer {
	char *host;
	bool pinned;
	uint64_t at, filled; /* the stretch of the tape */
	uint64_t busy;       /* devices with copies from or to it, a bit each */
};

struct store {
	struct ss_sleep_store face; /* first */
	char *dir;                  /* NULL: anonymous memory */
	const char *root, *why;
	struct ss_tape tape;
	uint64_t bytes, at; /* the tape's; where the current buffer ends in it */
	uint64_t buffer_size;
	struct buffer buffer[2];
	unsigned current;
	bool saving;
};

static bool failed(struct store *s, const char *why)
{
	s->why = why;
	return false;
}

/* ---- buffers ------------------------------------------------------------------------ */

/* Memory that is not pinned does as well, but slower. */
static bool make_buffer(struct store *s, struct buffer *b)
{
	void *p = NULL;

	b->pinned = REAL(hipHostMalloc, &p, s->buffer_size, PORTABLE) == hipSuccess && p;
	if (!b->pinned) {
		p = mmap(NULL, s->buffer_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
		if (p == MAP_FAILED)
			return failed(s, "the machine has no memory for a buffer");
	}
	b->host = p;
	return true;
}

static bool make_buffers(struct store *s)
{
	for (int i = 0; i < 2; i++)
		if (!s->buffer[i].host && !make_buffer(s, &s->buffer[i]))
			return false;
	return true;
}

/* For the stream, not for an event: on 7.2.4 over an emulated device hipEventSynchronize returned
 * before the end of copies to mapped memory that came before the event (O10). */
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
static bool wait_for(struct store *s, struct buffer *b)
{
	bool ok = true;

	for (int dev = 0; b->busy; dev++)
		if (b->busy >> dev & 1) {
			ok &= wait_for_device(dev);
			b->busy &= ~(1ull << dev);
		}
	return ok || failed(s, refused);
}

static void end_buffer(struct store *s, struct buffer *b)
{
	(void)wait_for(s, b);
	if (b->host && b->pinned)
		(void)REAL(hipHostFree, b->host);
	else if (b->host)
		munmap(b->host, s->buffer_size);
	*b = (struct buffer){0};
}

/* The next series begins at the start of the tape. */
static void end_buffers(struct store *s)
{
	const char *why = s->why;

	for (int i = 0; i < 2; i++)
		end_buffer(s, &s->buffer[i]);
	s->why = why;
	s->current = 0;
	s->at = 0;
}

/* ---- copies -------------------------------------------------------------------------- */

/* Writes the bytes that the device copied into b to the tape. */
static bool drain(struct store *s, struct buffer *b)
{
	if (!wait_for(s, b))
		return false;
	if (s->saving && b->filled && !ss_tape_write(&s->tape, b->at, b->host, b->filled))
		return failed(s, disk);
	b->filled = 0;
	return true;
}

/* The current buffer is full: the device goes on with it, and the host with the other. */
static bool next_buffer(struct store *s)
{
	struct buffer *b;

	s->current ^= 1;
	b = &s->buffer[s->current];
	if (!drain(s, b))
		return false;
	b->at = s->at;
	return true;
}

/* The calling thread's current device is `dev`. */
static bool copy(struct store *s, int dev, void *device, uint64_t size)
{
	struct buffer *b = &s->buffer[s->current];
	char *host = b->host + b->filled;
	hipError_t err;

	if (!s->saving && !ss_tape_read(&s->tape, s->at, host, size))
		return failed(s, disk);
	b->busy |= 1ull << dev;
	err = s->saving ? REAL(hipMemcpyAsync, host, device, size, hipMemcpyDeviceToHost, NULL) :
			  REAL(hipMemcpyAsync, device, host, size, hipMemcpyHostToDevice, NULL);
	if (err != hipSuccess)
		return failed(s, refused);
	b->filled += size;
	s->at += size;
	return true;
}

static bool copy_piece(struct store *s, int dev, uint64_t va, uint64_t size)
{
	struct ss_device_switch old;
	uint64_t left = s->buffer_size - s->buffer[s->current].filled,
		 part = size < left ? size : left;
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
	if (!make_buffers(s))
		return false;
	while (size) {
		uint64_t before = s->at;

		if (s->buffer[s->current].filled == s->buffer_size && !next_buffer(s))
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
	s->buffer_size = bytes < BUFFER ? (bytes + 4095) / 4096 * 4096 : BUFFER;
	return ss_tape_open(&s->tape, s->dir, bytes, 2 * s->buffer_size, s->root, &s->why);
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
	struct buffer *last = &s->buffer[s->current], *before = &s->buffer[s->current ^ 1];
	bool ok = drain(s, before);

	ok = drain(s, last) && ok;
	if (s->saving && ok && !ss_tape_sync(&s->tape))
		ok = failed(s, disk);
	end_buffers(s);
	s->saving = false;
	return ok;
}

static void store_close(void *ctx)
{
	struct store *s = ctx;

	end_buffers(s);
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

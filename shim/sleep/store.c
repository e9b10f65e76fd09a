/* SPDX-License-Identifier: MIT */
/*
 * A store in anonymous memory.
 *
 * Locks: none. The thread of shim/sleep/ alone uses it.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "shim/process/real.h"
#include "shim/sleep/store.h"

struct store {
	struct ss_sleep_store face;
	char *at;
	uint64_t bytes, next;
	bool restores; /* `next` counts restored bytes */
	const char *why;
};

static bool open_store(void *ctx, uint64_t bytes)
{
	struct store *s = ctx;

	s->next = 0;
	s->restores = false;
	s->bytes = bytes;
	s->why = NULL;
	s->at = NULL;
	if (!bytes)
		return true;
	s->at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->at == MAP_FAILED) {
		s->at = NULL;
		s->why = "there is not enough host memory for the contents";
		return false;
	}
	(void)madvise(s->at, bytes, MADV_DONTFORK);
	(void)madvise(s->at, bytes, MADV_DONTDUMP);
	return true;
}

static bool copied(struct store *s, hipError_t err)
{
	if (err != hipSuccess)
		s->why = "a copy of the contents failed";
	return err == hipSuccess;
}

static bool save(void *ctx, int dev, uint64_t va, uint64_t size)
{
	struct store *s = ctx;
	char *to = s->at + s->next;

	s->next += size;
	return copied(s, REAL(hipSetDevice, dev)) &&
	       copied(s, REAL(hipMemcpy, to, (void *)(uintptr_t)va, size, hipMemcpyDeviceToHost));
}

static bool restore(void *ctx, int dev, uint64_t va, uint64_t size)
{
	struct store *s = ctx;
	const char *from;

	if (!s->restores)
		s->next = 0;
	s->restores = true;
	from = s->at + s->next;
	s->next += size;
	return copied(s, REAL(hipSetDevice, dev)) &&
	       copied(s, REAL(hipMemcpy, (void *)(uintptr_t)va, from, size, hipMemcpyHostToDevice));
}

static bool flush(void *ctx)
{
	struct store *s = ctx;

	s->restores = false;
	return true;
}

static void close_store(void *ctx)
{
	struct store *s = ctx;

	if (s->at)
		munmap(s->at, s->bytes);
	s->at = NULL;
}

const struct ss_sleep_store *ss_store_make(const char *dir, const char **why)
{
	struct store *s = dir ? NULL : calloc(1, sizeof(*s));

	*why = NULL;
	if (!s) {
		*why = dir ? "contents cannot be kept in a directory yet" : "host memory is out";
		return NULL;
	}
	s->face = (struct ss_sleep_store){s, open_store, save, restore, flush, close_store};
	return &s->face;
}

const char *ss_store_why(const struct ss_sleep_store *store)
{
	return store ? ((const struct store *)store)->why : NULL;
}

void ss_store_end(const struct ss_sleep_store *store)
{
	free(store ? store->ctx : NULL);
}

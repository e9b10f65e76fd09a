/* SPDX-License-Identifier: MIT */
/* Who owns the memory, and which work must have ended before it is handed out again. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "concurrent.h"

#define GRAIN 256
#define BASE 0x100000000000ull /* where the fake device begins to give addresses */
#define GRAINS ((size_t)1 << 28)
#define EPOCHS 65536

/*
 * One word for each grain: 0 if it was never used or all use has ended; LIVE and the block's id;
 * EPOCH and the index of the positions of all streams; or a stream + 1 and the number of its
 * command. EXPORTED may be added.
 */
#define LIVE (1ull << 63)
#define EPOCH (1ull << 62)
#define EXPORTED (1ull << 61)
#define STREAM_SHIFT 48

static _Atomic uint64_t *shadow;
static uint64_t epoch[EPOCHS][STREAMS];
static atomic_uint epochs;

void shadow_create(void)
{
	shadow = mmap(NULL, GRAINS * sizeof(*shadow), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shadow == MAP_FAILED)
		wrong("no host memory for the shadow");
	epochs = 0;
}

void shadow_destroy(void)
{
	munmap((void *)shadow, GRAINS * sizeof(*shadow));
}

static size_t first_grain(const void *p, size_t size)
{
	uint64_t at = (uint64_t)(uintptr_t)p - BASE;

	if (at % GRAIN || at / GRAIN + size / GRAIN + 1 > GRAINS)
		wrong("%p is no address of the device, or not aligned", p);
	return at / GRAIN;
}

static size_t last_grain(const void *p, size_t size)
{
	return first_grain(p, size) + (size - 1) / GRAIN;
}

/* Has the use that the word stands for ended, or is it ordered before `stream`? */
static bool may_follow(uint64_t word, int stream)
{
	word &= ~EXPORTED;
	if (!word)
		return true;
	if (!(word & EPOCH))
		return is_before((int)(word >> STREAM_SHIFT) - 1,
				 word & ((1ull << STREAM_SHIFT) - 1), stream);
	for (int s = 0; s < STREAMS; s++)
		if (!is_before(s, epoch[word & (EPOCH - 1)][s], stream))
			return false;
	return true;
}

static void check_word(uint64_t word, const void *p, size_t size, int stream)
{
	if (word & LIVE)
		wrong("the block of %zu bytes at %p, for stream %d, has bytes of live block %llu",
		      size, p, stream, (unsigned long long)(word & ~LIVE));
	if (!may_follow(word, stream))
		wrong("the block of %zu bytes at %p, for stream %d, may still be in use: %llx",
		      size, p, stream, (unsigned long long)word);
}

void shadow_take(const void *p, size_t size, uint64_t id, int stream)
{
	uint64_t before = 0;

	if (!ss_fake_usable(fake, 0, p, size))
		wrong("a kernel cannot use the block of %zu bytes at %p", size, p);
	for (size_t g = first_grain(p, size); g <= last_grain(p, size); g++) {
		uint64_t word = atomic_exchange(&shadow[g], LIVE | id);

		if (word & EXPORTED)
			wrong("the block of %zu bytes at %p was exported before", size, p);
		if (word != before)
			check_word(word, p, size, stream);
		before = word;
	}
}

static void release(const void *p, size_t size, uint64_t id, uint64_t word, bool exported)
{
	word |= exported ? EXPORTED : 0;
	for (size_t g = first_grain(p, size); g <= last_grain(p, size); g++)
		if (atomic_exchange(&shadow[g], word) != (LIVE | id))
			wrong("somebody took bytes of the live block of %zu bytes at %p", size, p);
}

void shadow_free(const void *p, size_t size, uint64_t id, int stream, uint64_t n, bool exported)
{
	release(p, size, id, (uint64_t)(stream + 1) << STREAM_SHIFT | n, exported);
}

void shadow_free_unknown(const void *p, size_t size, uint64_t id, bool exported)
{
	unsigned e = atomic_fetch_add(&epochs, 1);

	if (e >= EPOCHS)
		wrong("too many calls of hipFree in one program");
	positions(epoch[e]);
	release(p, size, id, EPOCH | e, exported);
}

void shadow_free_done(const void *p, size_t size, uint64_t id, bool exported)
{
	release(p, size, id, 0, exported);
}

void shadow_gone(const void *p, size_t size)
{
	uint64_t before = 0;

	for (size_t g = first_grain(p, size); g <= last_grain(p, size); g++) {
		uint64_t word = atomic_exchange(&shadow[g], 0);

		if (word != before)
			check_word(word, p, size, NO_STREAM);
		before = word;
	}
}

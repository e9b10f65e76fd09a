/* SPDX-License-Identifier: MIT */
/*
 * The base of all parts of the fake device: its address space, its free memory, the requested
 * failures, and the end of the process on misuse.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/fake/internal.h"

#define VA_BASE 0x100000000000ull
#define VA_END 0x700000000000ull

void ss_fake_misuse(const char *fmt, ...)
{
	va_list args;

	fputs("fake device: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

static const char *const operations[SS_FAKE_OPS] = {
	[OP_DEVICE_COUNT] = "device_count",
	[OP_DEVICE_INFO] = "device_info",
	[OP_MEM_INFO] = "mem_info",
	[OP_SEGMENT_ALLOC] = "segment_alloc",
	[OP_SEGMENT_FREE] = "segment_free",
	[OP_SEGMENT_ACCESS] = "segment_access",
	[OP_VMM_RESERVE] = "vmm_reserve",
	[OP_VMM_UNRESERVE] = "vmm_unreserve",
	[OP_CHUNK_CREATE] = "chunk_create",
	[OP_CHUNK_RELEASE] = "chunk_release",
	[OP_MAP] = "map",
	[OP_UNMAP] = "unmap",
	[OP_SET_ACCESS] = "set_access",
	[OP_FENCE_RECORD] = "fence_record",
	[OP_FENCE_QUERY] = "fence_query",
	[OP_FENCE_WAIT] = "fence_wait",
	[OP_FENCE_RELEASE] = "fence_release",
};

enum ss_status ss_fake_enter(struct ss_fake *fake, enum ss_fake_op op)
{
	struct ss_fake_failure *f = &fake->fail[op];

	if (f->left == 0 || (f->left != UINT32_MAX && --f->left > 0))
		return SS_OK;
	return f->status;
}

void ss_fake_fail(struct ss_fake *fake, const char *operation, unsigned n, enum ss_status status)
{
	for (int op = 0; op < SS_FAKE_OPS; op++) {
		if (strcmp(operations[op], operation) == 0) {
			ss_fake_lock(fake);
			fake->fail[op] = (struct ss_fake_failure){n ? n : UINT32_MAX, status};
			ss_fake_unlock(fake);
			return;
		}
	}
	ss_fake_misuse("there is no operation %s", operation);
}

void ss_fake_fail_clear(struct ss_fake *fake)
{
	ss_fake_lock(fake);
	memset(fake->fail, 0, sizeof(fake->fail));
	ss_fake_unlock(fake);
}

/* ---- addresses ---------------------------------------------------------- */

/* Index of the first range that ends after `addr`. */
static size_t range_index(const struct ss_fake *fake, uint64_t addr)
{
	size_t lo = 0, hi = fake->range_count;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (fake->ranges[mid].base + fake->ranges[mid].size <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct ss_fake_range *ss_fake_range_find(struct ss_fake *fake, const void *ptr, size_t size)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	size_t i = range_index(fake, addr);

	if (i == fake->range_count || fake->ranges[i].base > addr ||
	    size > fake->ranges[i].base + fake->ranges[i].size - addr)
		return NULL;
	return &fake->ranges[i];
}

/* First fit from the bottom, so that addresses are used again soon. The core must not confuse
 * a new segment with an old one at the same address. */
struct ss_fake_range *ss_fake_range_add(struct ss_fake *fake, size_t size)
{
	uint64_t addr = VA_BASE;
	size_t i = 0;

	for (; i < fake->range_count && fake->ranges[i].base - addr < size; i++) {
		addr = fake->ranges[i].base + fake->ranges[i].size;
		addr = (addr + SS_FAKE_CHUNK - 1) / SS_FAKE_CHUNK * SS_FAKE_CHUNK;
	}
	if (addr + size > VA_END)
		return NULL;
	if (fake->range_count == fake->range_space) {
		size_t space = fake->range_space ? 2 * fake->range_space : 16;
		void *ranges = realloc(fake->ranges, space * sizeof(*fake->ranges));
		if (!ranges)
			return NULL;
		fake->ranges = ranges;
		fake->range_space = space;
	}
	memmove(&fake->ranges[i + 1], &fake->ranges[i],
		(fake->range_count - i) * sizeof(*fake->ranges));
	fake->range_count++;
	fake->ranges[i] = (struct ss_fake_range){.base = addr, .size = size};
	return &fake->ranges[i];
}

void ss_fake_range_remove(struct ss_fake *fake, struct ss_fake_range *r)
{
	size_t i = (size_t)(r - fake->ranges);
	free(r->slots);
	fake->range_count--;
	memmove(r, r + 1, (fake->range_count - i) * sizeof(*r));
}

void *ss_fake_range_ptr(const struct ss_fake_range *r)
{
	return (void *)(uintptr_t)r->base;
}

bool ss_fake_bad_device(const struct ss_fake *fake, int dev)
{
	return dev < 0 || dev >= fake->config.devices;
}

bool ss_fake_take(struct ss_fake *fake, int dev, size_t size)
{
	if (size > fake->config.vram - fake->reserved[dev])
		return false;
	fake->reserved[dev] += size;
	fake->counts.taken += size;
	if (fake->reserved[dev] > fake->reserved_high[dev])
		fake->reserved_high[dev] = fake->reserved[dev];
	return true;
}

void ss_fake_give(struct ss_fake *fake, int dev, size_t size)
{
	fake->reserved[dev] -= size;
	fake->counts.given += size;
}

/* SPDX-License-Identifier: MIT */
/*
 * The fake device: its address space, its segments and the failures asked for.
 * Memory is address arithmetic and never touched, so a device of any size costs
 * nothing. Misuse that a real runtime would answer with a crash or with silent
 * damage ends the process with a sentence.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/fake/internal.h"

#define VA_BASE 0x100000000000ull
#define VA_END 0x700000000000ull

void ss_fake_misuse(const char *fmt, ...) {
	va_list args;

	fputs("fake device: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

static const char *const operations[SS_FAKE_OPS] = {
	[OP_DEVICE_COUNT] = "device_count", [OP_DEVICE_INFO] = "device_info",
	[OP_MEM_INFO] = "mem_info", [OP_SEGMENT_ALLOC] = "segment_alloc",
	[OP_SEGMENT_FREE] = "segment_free", [OP_SEGMENT_ACCESS] = "segment_access",
	[OP_VMM_RESERVE] = "vmm_reserve", [OP_VMM_UNRESERVE] = "vmm_unreserve",
	[OP_CHUNK_CREATE] = "chunk_create", [OP_CHUNK_RELEASE] = "chunk_release",
	[OP_MAP] = "map", [OP_UNMAP] = "unmap", [OP_SET_ACCESS] = "set_access",
	[OP_FENCE_RECORD] = "fence_record", [OP_FENCE_QUERY] = "fence_query",
	[OP_FENCE_WAIT] = "fence_wait", [OP_FENCE_RELEASE] = "fence_release",
};

enum ss_status ss_fake_enter(struct ss_fake *fake, enum ss_fake_op op) {
	struct ss_fake_failure *f = &fake->fail[op];

	if (f->left == 0 || (f->left != UINT32_MAX && --f->left > 0)) {
		return SS_OK;
	}
	return f->status;
}

void ss_fake_fail(struct ss_fake *fake, const char *operation, unsigned n,
		enum ss_status status) {
	for (int op = 0; op < SS_FAKE_OPS; op++) {
		if (strcmp(operations[op], operation) == 0) {
			ss_fake_lock(fake);
			fake->fail[op] = (struct ss_fake_failure){ n ? n : UINT32_MAX, status };
			ss_fake_unlock(fake);
			return;
		}
	}
	ss_fake_misuse("there is no operation %s", operation);
}

void ss_fake_fail_clear(struct ss_fake *fake) {
	ss_fake_lock(fake);
	memset(fake->fail, 0, sizeof(fake->fail));
	ss_fake_unlock(fake);
}

/* ---- addresses ---------------------------------------------------------- */

/* Index of the first range that ends after `addr`. */
static size_t range_index(const struct ss_fake *fake, uint64_t addr) {
	size_t lo = 0, hi = fake->range_count;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (fake->ranges[mid].base + fake->ranges[mid].size <= addr) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

struct ss_fake_range *ss_fake_range_find(struct ss_fake *fake, const void *ptr, size_t size) {
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	size_t i = range_index(fake, addr);

	if (i == fake->range_count || fake->ranges[i].base > addr ||
			size > fake->ranges[i].base + fake->ranges[i].size - addr) {
		return NULL;
	}
	return &fake->ranges[i];
}

/* First fit from the bottom, so that the same addresses come back: the core
 * must not confuse a new segment with one it gave back. */
struct ss_fake_range *ss_fake_range_add(struct ss_fake *fake, size_t size) {
	uint64_t addr = VA_BASE;
	size_t i = 0;

	for (; i < fake->range_count && fake->ranges[i].base - addr < size; i++) {
		addr = fake->ranges[i].base + fake->ranges[i].size;
		addr = (addr + SS_FAKE_CHUNK - 1) / SS_FAKE_CHUNK * SS_FAKE_CHUNK;
	}
	if (addr + size > VA_END) {
		return NULL;
	}
	if (fake->range_count == fake->range_space) {
		size_t space = fake->range_space ? 2 * fake->range_space : 16;
		void *ranges = realloc(fake->ranges, space * sizeof(*fake->ranges));
		if (!ranges) {
			return NULL;
		}
		fake->ranges = ranges;
		fake->range_space = space;
	}
	memmove(&fake->ranges[i + 1], &fake->ranges[i],
		(fake->range_count - i) * sizeof(*fake->ranges));
	fake->range_count++;
	fake->ranges[i] = (struct ss_fake_range){ .base = addr, .size = size };
	return &fake->ranges[i];
}

void ss_fake_range_remove(struct ss_fake *fake, struct ss_fake_range *r) {
	size_t i = (size_t)(r - fake->ranges);
	free(r->slots);
	fake->range_count--;
	memmove(r, r + 1, (fake->range_count - i) * sizeof(*r));
}

void *ss_fake_range_ptr(const struct ss_fake_range *r) {
	return (void *)(uintptr_t)r->base;
}

bool ss_fake_bad_device(const struct ss_fake *fake, int dev) {
	return dev < 0 || dev >= fake->config.devices;
}

bool ss_fake_take(struct ss_fake *fake, int dev, size_t size) {
	if (size > fake->config.vram - fake->reserved[dev]) {
		return false;
	}
	fake->reserved[dev] += size;
	if (fake->reserved[dev] > fake->reserved_high[dev]) {
		fake->reserved_high[dev] = fake->reserved[dev];
	}
	return true;
}

/* ---- the device --------------------------------------------------------- */

static int device_count(void *ctx) {
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	enum ss_status st = ss_fake_enter(fake, OP_DEVICE_COUNT);
	ss_fake_unlock(fake);
	return st == SS_OK ? fake->config.devices : 0;
}

static enum ss_status device_info(void *ctx, int dev, struct ss_device_info *out) {
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	enum ss_status st = ss_fake_enter(fake, OP_DEVICE_INFO);
	ss_fake_unlock(fake);
	if (st != SS_OK || ss_fake_bad_device(fake, dev)) {
		return st != SS_OK ? st : SS_ERR_DEVICE;
	}
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "fake %d", dev);
	out->total_bytes = fake->config.vram;
	out->chunk_bytes = fake->config.vmm ? SS_FAKE_CHUNK : 0;
	out->release_waits[SS_BACKING_HIP] = fake->config.hip_release_waits;
	return SS_OK;
}

static enum ss_status mem_info(void *ctx, int dev, uint64_t *free_bytes,
		uint64_t *total_bytes) {
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	fake->counts.mem_info++;
	enum ss_status st = ss_fake_enter(fake, OP_MEM_INFO);
	if (st == SS_OK && ss_fake_bad_device(fake, dev)) {
		st = SS_ERR_DEVICE;
	}
	if (st == SS_OK && free_bytes) {
		*free_bytes = fake->config.vram - fake->reserved[dev];
	}
	if (st == SS_OK && total_bytes) {
		*total_bytes = fake->config.vram;
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
		uint64_t peers, void **ptr) {
	struct ss_fake *fake = ctx;

	if (ss_fake_bad_device(fake, dev)) {
		return SS_ERR_DEVICE;
	}
	if (size == 0 || size % SS_FAKE_CHUNK) {
		ss_fake_misuse("segment_alloc of %zu bytes", size);
	}
	ss_fake_lock(fake);
	fake->counts.segment_alloc++;
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_ALLOC);
	if (st == SS_OK && size > fake->config.vram - fake->reserved[dev]) {
		st = SS_ERR_NOMEM;
	}
	if (st == SS_OK) {
		struct ss_fake_range *r = ss_fake_range_add(fake, size);
		if (r && ss_fake_take(fake, dev, size)) {
			r->dev = dev;
			r->backing = backing;
			*ptr = ss_fake_range_ptr(r);
		} else {
			st = SS_ERR_NOMEM;
		}
	}
	ss_fake_unlock(fake);
	return st;
}

static struct ss_fake_range *segment_find(struct ss_fake *fake, const char *op, int dev,
		enum ss_backing backing, void *ptr, size_t size) {
	struct ss_fake_range *r = ss_fake_range_find(fake, ptr, size);
	if (!r || r->slots || ss_fake_range_ptr(r) != ptr || r->size != size || r->dev != dev ||
			r->backing != backing) {
		ss_fake_misuse("%s: %p + %zu is no such segment of device %d", op, ptr, size,
			dev);
	}
	return r;
}

static enum ss_status segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
		size_t size) {
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	fake->counts.segment_free++;
	struct ss_fake_range *r = segment_find(fake, "segment_free", dev, backing, ptr, size);
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_FREE);
	if (st == SS_OK) {
		ss_fake_range_remove(fake, r);
		fake->reserved[dev] -= size;
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
		size_t size, uint64_t peers) {
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	segment_find(fake, "segment_access", dev, backing, ptr, size);
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_ACCESS);
	ss_fake_unlock(fake);
	return st;
}

/* ---- life --------------------------------------------------------------- */

struct ss_fake *ss_fake_create(const struct ss_fake_config *config) {
	struct ss_fake *fake = calloc(1, sizeof(*fake));
	if (!fake) {
		return NULL;
	}
	fake->config = *config;
	if (fake->config.devices == 0) {
		fake->config.devices = 1;
	}
	if (fake->config.vram == 0) {
		fake->config.vram = 64ull << 30;
	}
	pthread_mutex_init(&fake->mutex, NULL);
	return fake;
}

void ss_fake_destroy(struct ss_fake *fake) {
	if (!fake) {
		return;
	}
	if (fake->range_count) {
		ss_fake_misuse("%zu segments or reservations leaked, the first is %p + %zu",
			fake->range_count, ss_fake_range_ptr(fake->ranges), fake->ranges->size);
	}
	if (fake->chunks) {
		ss_fake_misuse("%u chunks leaked", HASH_COUNT(fake->chunks));
	}
	ss_fake_streams_finish(fake);
	free(fake->ranges);
	pthread_mutex_destroy(&fake->mutex);
	free(fake);
}

struct ss_driver ss_fake_driver(struct ss_fake *fake) {
	struct ss_driver drv = {
		.ctx = fake,
		.device_count = device_count, .device_info = device_info,
		.mem_info = mem_info,
		.segment_alloc = segment_alloc, .segment_free = segment_free,
		.segment_access = segment_access,
	};
	ss_fake_vmm_ops(&drv);
	ss_fake_stream_ops(&drv);
	return drv;
}

struct ss_fake_counts ss_fake_counts(struct ss_fake *fake) {
	ss_fake_lock(fake);
	struct ss_fake_counts counts = fake->counts;
	ss_fake_unlock(fake);
	return counts;
}

static uint64_t read_locked(struct ss_fake *fake, const uint64_t *field) {
	ss_fake_lock(fake);
	uint64_t n = *field;
	ss_fake_unlock(fake);
	return n;
}

uint64_t ss_fake_reserved(struct ss_fake *fake, int dev) {
	return read_locked(fake, &fake->reserved[dev]);
}

uint64_t ss_fake_reserved_high(struct ss_fake *fake, int dev) {
	return read_locked(fake, &fake->reserved_high[dev]);
}

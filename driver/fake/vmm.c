/* SPDX-License-Identifier: MIT */
/*
 * The virtual memory of the fake device: reservations, chunks, and their mappings. This file
 * enforces every rule of core/driver.h.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/fake/internal.h"

static enum ss_status vmm_reserve(void *ctx, int dev, size_t size, void **va)
{
	struct ss_fake *fake = ctx;

	if (ss_fake_bad_device(fake, dev) || !fake->config.vmm)
		return fake->config.vmm ? SS_ERR_DEVICE : SS_ERR_UNSUPPORTED;
	if (size == 0 || size % SS_FAKE_CHUNK)
		ss_fake_misuse("vmm_reserve of %zu bytes", size);
	ss_fake_lock(fake);
	fake->counts.reserve++;
	enum ss_status st = ss_fake_enter(fake, OP_VMM_RESERVE);
	if (st == SS_OK) {
		void *slots = calloc(size / SS_FAKE_CHUNK, sizeof(struct ss_fake_slot));
		struct ss_fake_range *r = slots ? ss_fake_range_add(fake, size) : NULL;
		if (r) {
			r->dev = dev;
			r->backing = SS_BACKING_VMM;
			r->slots = slots;
			*va = ss_fake_range_ptr(r);
		} else {
			free(slots);
			st = SS_ERR_NOMEM;
		}
	}
	ss_fake_unlock(fake);
	return st;
}

/* The reservation that holds [va, va + size), which must be whole chunks. */
static struct ss_fake_range *reservation(struct ss_fake *fake, const char *op, int dev, void *va,
					 size_t size, struct ss_fake_slot **first, size_t *count)
{
	struct ss_fake_range *r = ss_fake_range_find(fake, va, size);
	uint64_t addr = (uint64_t)(uintptr_t)va;

	if (!r || !r->slots || r->dev != dev || size == 0 || addr % SS_FAKE_CHUNK ||
	    size % SS_FAKE_CHUNK)
		ss_fake_misuse("%s: %p + %zu is in no reservation of device %d", op, va, size, dev);
	*first = &r->slots[(addr - r->base) / SS_FAKE_CHUNK];
	*count = size / SS_FAKE_CHUNK;
	return r;
}

static enum ss_status vmm_unreserve(void *ctx, int dev, void *va, size_t size)
{
	struct ss_fake *fake = ctx;
	struct ss_fake_slot *slot;
	size_t count;

	ss_fake_lock(fake);
	fake->counts.unreserve++;
	struct ss_fake_range *r = reservation(fake, "vmm_unreserve", dev, va, size, &slot, &count);
	if (ss_fake_range_ptr(r) != va || r->size != size)
		ss_fake_misuse("vmm_unreserve: %p + %zu is a part of a reservation", va, size);
	if (r->mapped)
		ss_fake_misuse("vmm_unreserve: %zu chunks are still mapped", r->mapped);
	enum ss_status st = ss_fake_enter(fake, OP_VMM_UNRESERVE);
	if (st == SS_OK)
		ss_fake_range_remove(fake, r);
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status chunk_create(void *ctx, int dev, size_t size, void **chunk)
{
	struct ss_fake *fake = ctx;

	if (ss_fake_bad_device(fake, dev) || !fake->config.vmm)
		return fake->config.vmm ? SS_ERR_DEVICE : SS_ERR_UNSUPPORTED;
	if (size == 0 || size % SS_FAKE_CHUNK)
		ss_fake_misuse("chunk_create of %zu bytes", size);
	ss_fake_lock(fake);
	fake->counts.chunk_create++;
	ss_fake_clock_driver(fake, fake->config.chunk_ns);
	enum ss_status st = ss_fake_enter(fake, OP_CHUNK_CREATE);
	if (st == SS_OK) {
		struct ss_fake_chunk *c = calloc(1, sizeof(*c));
		if (c && ss_fake_take(fake, dev, size)) {
			*c = (struct ss_fake_chunk){.self = c, .size = size, .dev = dev};
			HASH_ADD_PTR(fake->chunks, self, c);
			*chunk = c;
		} else {
			free(c);
			st = SS_ERR_NOMEM;
		}
	}
	ss_fake_unlock(fake);
	return st;
}

static struct ss_fake_chunk *chunk_find(struct ss_fake *fake, const char *op, int dev, void *chunk,
					size_t size)
{
	struct ss_fake_chunk *c = NULL;
	HASH_FIND_PTR(fake->chunks, &chunk, c);
	if (!c || c->dev != dev || c->size != size) {
		ss_fake_misuse("%s: %p is no chunk of %zu bytes of device %d", op, chunk, size,
			       dev);
	}
	return c;
}

static enum ss_status chunk_release(void *ctx, int dev, void *chunk, size_t size)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	fake->counts.chunk_release++;
	ss_fake_clock_driver(fake, fake->config.chunk_ns);
	struct ss_fake_chunk *c = chunk_find(fake, "chunk_release", dev, chunk, size);
	if (c->mapped) {
		ss_fake_misuse("chunk_release: %p is still mapped at 0x%llx", chunk,
			       (unsigned long long)c->mapped);
	}
	enum ss_status st = ss_fake_enter(fake, OP_CHUNK_RELEASE);
	if (st == SS_OK) {
		HASH_DEL(fake->chunks, c);
		free(c);
		ss_fake_give(fake, dev, size);
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status map(void *ctx, int dev, void *va, size_t size, void *chunk)
{
	struct ss_fake *fake = ctx;
	struct ss_fake_slot *slot;
	size_t count;

	ss_fake_lock(fake);
	fake->counts.map++;
	ss_fake_clock_driver(fake, fake->config.chunk_ns);
	struct ss_fake_range *r = reservation(fake, "map", dev, va, size, &slot, &count);
	struct ss_fake_chunk *c = chunk_find(fake, "map", dev, chunk, size);
	if (c->mapped) {
		ss_fake_misuse("map: chunk %p is mapped at 0x%llx already", chunk,
			       (unsigned long long)c->mapped);
	}
	for (size_t i = 0; i < count; i++)
		if (slot[i].chunk)
			ss_fake_misuse("map: something is mapped in %p + %zu", va, size);
	enum ss_status st = ss_fake_enter(fake, OP_MAP);
	if (st == SS_OK) {
		c->mapped = (uint64_t)(uintptr_t)va;
		for (size_t i = 0; i < count; i++)
			slot[i] = (struct ss_fake_slot){.chunk = c};
		r->mapped++;
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status unmap(void *ctx, int dev, void *va, size_t size)
{
	struct ss_fake *fake = ctx;
	struct ss_fake_slot *slot;
	size_t count;

	ss_fake_lock(fake);
	fake->counts.unmap++;
	struct ss_fake_range *r = reservation(fake, "unmap", dev, va, size, &slot, &count);
	struct ss_fake_chunk *c = slot->chunk;
	if (!c || c->mapped != (uint64_t)(uintptr_t)va || c->size != size)
		ss_fake_misuse("unmap: %p + %zu is not exactly one mapped chunk", va, size);
	enum ss_status st = ss_fake_enter(fake, OP_UNMAP);
	if (st == SS_OK && fake->config.vmm_release_waits)
		ss_fake_clock_drain(fake);
	ss_fake_clock_driver(fake, fake->config.chunk_ns);
	if (st == SS_OK) {
		c->mapped = 0;
		memset(slot, 0, count * sizeof(*slot));
		r->mapped--;
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status set_access(void *ctx, int dev, void *va, size_t size, uint64_t peers)
{
	struct ss_fake *fake = ctx;
	struct ss_fake_slot *slot;
	size_t count;

	ss_fake_lock(fake);
	fake->counts.set_access++;
	ss_fake_clock_driver(fake, fake->config.chunk_ns);
	struct ss_fake_range *r = reservation(fake, "set_access", dev, va, size, &slot, &count);
	for (size_t i = 0; i < count; i++)
		if (!slot[i].chunk)
			ss_fake_misuse("set_access: %p + %zu is not all mapped", va, size);
	enum ss_status st = ss_fake_enter(fake, OP_SET_ACCESS);
	if (st == SS_OK && fake->config.access_prefix && ss_fake_range_ptr(r) != va)
		st = SS_ERR_INVALID;
	for (size_t i = 0; st == SS_OK && i < count; i++)
		slot[i].access = true;
	ss_fake_unlock(fake);
	return st;
}

bool ss_fake_usable(struct ss_fake *fake, int dev, const void *ptr, size_t size)
{
	ss_fake_lock(fake);
	struct ss_fake_range *r = ss_fake_range_find(fake, ptr, size);
	bool usable = r && r->dev == dev;
	if (usable && r->slots && size) {
		uint64_t first = (uint64_t)(uintptr_t)ptr - r->base, last = first + size - 1;
		for (uint64_t i = first / SS_FAKE_CHUNK; i <= last / SS_FAKE_CHUNK; i++)
			usable &= r->slots[i].chunk && r->slots[i].access;
	}
	ss_fake_unlock(fake);
	return usable;
}

void ss_fake_access(struct ss_fake *fake, int dev, const void *ptr, size_t size)
{
	if (!ss_fake_usable(fake, dev, ptr, size))
		ss_fake_misuse("device %d has no access to %p + %zu", dev, ptr, size);
}

void ss_fake_vmm_ops(struct ss_driver *drv)
{
	drv->vmm_reserve = vmm_reserve;
	drv->vmm_unreserve = vmm_unreserve;
	drv->chunk_create = chunk_create;
	drv->chunk_release = chunk_release;
	drv->map = map;
	drv->unmap = unmap;
	drv->set_access = set_access;
}

/* SPDX-License-Identifier: MIT */
/* The devices themselves and their whole segments. */
#include <stdio.h>
#include <string.h>

#include "driver/fake/internal.h"

static int device_count(void *ctx)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	enum ss_status st = ss_fake_enter(fake, OP_DEVICE_COUNT);
	ss_fake_unlock(fake);
	return st == SS_OK ? fake->config.devices : 0;
}

static enum ss_status device_info(void *ctx, int dev, struct ss_device_info *out)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	enum ss_status st = ss_fake_enter(fake, OP_DEVICE_INFO);
	ss_fake_unlock(fake);
	if (st != SS_OK || ss_fake_bad_device(fake, dev))
		return st != SS_OK ? st : SS_ERR_DEVICE;
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "fake %d", dev);
	out->total_bytes = fake->config.vram;
	out->chunk_bytes = fake->config.vmm ? SS_FAKE_CHUNK : 0;
	out->access_prefix = fake->config.access_prefix;
	out->release_waits[SS_BACKING_HIP] = fake->config.hip_release_waits;
	out->release_waits[SS_BACKING_VMM] = fake->config.vmm_release_waits;
	return SS_OK;
}

static enum ss_status mem_info(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	fake->counts.mem_info++;
	enum ss_status st = ss_fake_enter(fake, OP_MEM_INFO);
	if (st == SS_OK && ss_fake_bad_device(fake, dev))
		st = SS_ERR_DEVICE;
	if (st == SS_OK && free_bytes)
		*free_bytes = fake->config.vram - fake->reserved[dev];
	if (st == SS_OK && total_bytes)
		*total_bytes = fake->config.vram;
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
				    uint64_t peers, void **ptr)
{
	struct ss_fake *fake = ctx;

	if (ss_fake_bad_device(fake, dev))
		return SS_ERR_DEVICE;
	if (size == 0 || size % SS_FAKE_CHUNK)
		ss_fake_misuse("segment_alloc of %zu bytes", size);
	ss_fake_lock(fake);
	fake->counts.segment_alloc++;
	ss_fake_clock_driver(fake, fake->config.segment_ns);
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_ALLOC);
	if (st == SS_OK && size > fake->config.vram - fake->reserved[dev])
		st = SS_ERR_NOMEM;
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
					  enum ss_backing backing, void *ptr, size_t size)
{
	struct ss_fake_range *r = ss_fake_range_find(fake, ptr, size);
	if (!r || r->slots || ss_fake_range_ptr(r) != ptr || r->size != size || r->dev != dev ||
	    r->backing != backing)
		ss_fake_misuse("%s: %p + %zu is no such segment of device %d", op, ptr, size, dev);
	return r;
}

static enum ss_status segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				   size_t size)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	fake->counts.segment_free++;
	struct ss_fake_range *r = segment_find(fake, "segment_free", dev, backing, ptr, size);
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_FREE);
	if (st == SS_OK && backing == SS_BACKING_HIP && fake->config.hip_release_waits)
		ss_fake_clock_drain(fake);
	ss_fake_clock_driver(fake, fake->config.segment_ns);
	if (st == SS_OK) {
		ss_fake_range_remove(fake, r);
		ss_fake_give(fake, dev, size);
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
				     size_t size, uint64_t peers)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	segment_find(fake, "segment_access", dev, backing, ptr, size);
	enum ss_status st = ss_fake_enter(fake, OP_SEGMENT_ACCESS);
	ss_fake_unlock(fake);
	return st;
}

void ss_fake_segment_ops(struct ss_driver *drv)
{
	drv->device_count = device_count;
	drv->device_info = device_info;
	drv->mem_info = mem_info;
	drv->segment_alloc = segment_alloc;
	drv->segment_free = segment_free;
	drv->segment_access = segment_access;
}

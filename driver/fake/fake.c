/* SPDX-License-Identifier: MIT */
/*
 * The fake device as a whole: creation, its operations, its counters. Memory is address
 * arithmetic and never touched, so a device of any size costs nothing. Misuse that a real
 * runtime would answer with a crash or with silent damage ends the process with a message.
 */
#include <stdlib.h>

#include "driver/fake/internal.h"

struct ss_fake *ss_fake_create(const struct ss_fake_config *config)
{
	struct ss_fake *fake = calloc(1, sizeof(*fake));
	if (!fake)
		return NULL;
	fake->config = *config;
	if (fake->config.devices == 0)
		fake->config.devices = 1;
	if (fake->config.vram == 0)
		fake->config.vram = 64ull << 30;
	if (!ss_fake_clock_init(fake)) {
		free(fake);
		return NULL;
	}
	pthread_mutex_init(&fake->mutex, NULL);
	return fake;
}

void ss_fake_destroy(struct ss_fake *fake)
{
	if (!fake)
		return;
	for (size_t i = 0; i < fake->range_count; i++) {
		const struct ss_fake_range *r = &fake->ranges[i];

		if (!r->slots || !fake->config.may_leave)
			ss_fake_misuse("%zu segments or reservations leaked, one is %p + %zu",
				       fake->range_count, ss_fake_range_ptr(r), r->size);
	}
	if (fake->chunks && !fake->config.may_leave)
		ss_fake_misuse("%u chunks leaked", HASH_COUNT(fake->chunks));
	ss_fake_streams_finish(fake);
	free(fake->ranges);
	free(fake->clock.queue);
	pthread_mutex_destroy(&fake->mutex);
	free(fake);
}

struct ss_driver ss_fake_driver(struct ss_fake *fake)
{
	struct ss_driver drv = {.ctx = fake};

	ss_fake_segment_ops(&drv);
	ss_fake_vmm_ops(&drv);
	ss_fake_stream_ops(&drv);
	ss_fake_clock_ops(&drv, fake);
	return drv;
}

struct ss_fake_counts ss_fake_counts(struct ss_fake *fake)
{
	ss_fake_lock(fake);
	struct ss_fake_counts counts = fake->counts;
	ss_fake_unlock(fake);
	return counts;
}

static uint64_t read_locked(struct ss_fake *fake, const uint64_t *field)
{
	ss_fake_lock(fake);
	uint64_t n = *field;
	ss_fake_unlock(fake);
	return n;
}

uint64_t ss_fake_reserved(struct ss_fake *fake, int dev)
{
	return read_locked(fake, &fake->reserved[dev]);
}

uint64_t ss_fake_reserved_high(struct ss_fake *fake, int dev)
{
	return read_locked(fake, &fake->reserved_high[dev]);
}

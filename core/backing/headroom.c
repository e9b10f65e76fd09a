/* SPDX-License-Identifier: MIT */
/*
 * Device memory that the runtime needs for itself. It takes some where no call can report that
 * there is none: for a queue, for the code of a kernel at its first launch, for graphs (7.2.4
 * crashes then, or goes on without). Without this library, memory that the application has freed
 * is there for it; with it, that memory may lie idle in a pool.
 *
 * Locks: none is held.
 */
#include "core/backing/device_memory.h"

#define LOW_PART 64            /* this part of the device is left free, */
#define LOW_MOST (64ull << 20) /* but no more than this */
#define WAKE_PART 4            /* the null stream gets its queue when this part is used */
#define NEARLY_FULL_PART 16    /* frees record fences when less than this part is left */
/* While more than this part was left lately, nobody asks how much it is: the call takes as long as
 * one that takes memory. */
#define FAR_PART 4
#define LATELY_MS 10 /* other processes take memory, and so does the runtime by itself */

static uint64_t low_water(uint64_t total)
{
	return ss_min(total / LOW_PART, LOW_MOST);
}

/* The queue of a stream is made with the stream, but that of the null stream when somebody first
 * asks for it: perhaps ourselves, whether it is idle, when the device is full. So ask early. */
static void wake_null(struct ss_memory *m, uint64_t used)
{
	struct ss_core *core = m->core;
	struct ss_device_memory *d = ss_device_memory(core, m->dev);

	if (used < core->info[m->dev].total_bytes / WAKE_PART || atomic_load(&d->woken))
		return;
	if (m->wake_null && m->wake_null(core, m->dev))
		atomic_store(&d->woken, true);
}

static bool left_of(struct ss_memory *m, uint64_t *left, uint64_t *total)
{
	struct ss_core *core = m->core;
	struct ss_device_memory *d = ss_device_memory(core, m->dev);

	*left = *total = 0;
	if (SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, m->dev, left, total)) != SS_OK)
		return false;
	atomic_store(&d->room, *left + atomic_load(&d->taken));
	atomic_store(&d->room_until, ss_now_ms(core) + LATELY_MS);
	return true;
}

/* Was so much left lately that what the pools took since does not matter? */
static bool is_far_from_full(const struct ss_memory *m)
{
	struct ss_core *core = m->core;
	struct ss_device_memory *d = ss_device_memory(core, m->dev);
	uint64_t used = atomic_load(&d->taken) + core->info[m->dev].total_bytes / FAR_PART;

	return atomic_load(&d->room) > used && ss_now_ms(core) < atomic_load(&d->room_until);
}

void ss_device_room_changed(struct ss_core *core)
{
	for (int dev = 0; dev < core->devices; dev++)
		atomic_store(&ss_device_memory(core, dev)->room_until, 0);
}

void ss_headroom_before(struct ss_memory *m, uint64_t more)
{
	wake_null(m, atomic_load(&ss_device_memory(m->core, m->dev)->taken) + more);
}

void ss_headroom_after(struct ss_memory *m)
{
	uint64_t left, total;

	if (is_far_from_full(m) || !left_of(m, &left, &total))
		return;
	wake_null(m, total - left); /* other processes use it as well */
	/* What ReuseAllowInternalDependencies can wait for is a fence of the free itself. */
	ss_nearly_full_set(m->core, m->dev, left < total / NEARLY_FULL_PART);
	if (left < low_water(total))
		atomic_store(&ss_device_memory(m->core, m->dev)->low, true);
}

void ss_headroom_restore(struct ss_memory *m)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);
	uint64_t left, total, reserved = atomic_load(&m->reserved), missing, given;

	if (!atomic_load(&d->low) || !left_of(m, &left, &total))
		return;
	if (left < low_water(total)) {
		missing = low_water(total) - left;
		given = ss_memory_release(m, ss_minus(reserved, missing), UINT64_MAX);
		if (given)
			ss_trace_trim(SS_TRACE_TRIM_OOM, given, atomic_load(&m->reserved), m->dev,
				      m->handle);
	} else {
		atomic_store(&d->low, false);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Device memory that the runtime needs for itself. The runtime takes memory at points that cannot
 * report a failure: for a queue, for the code of a kernel at its first launch, for graphs (7.2.4
 * crashes then, or goes on without). Without this library the runtime could take memory that the
 * application has freed; with it, that memory may lie idle in a pool.
 *
 * Locks: none is held.
 */
#include "core/backing/device_memory.h"

#define LOW_PART 64            /* one part in so many of the device is left free, */
#define LOW_MOST (64ull << 20) /* but no more than this */
#define WAKE_PART 4            /* the null stream gets its queue when one part in so many is used */
#define NEARLY_FULL_PART 16    /* frees record fences when less than one part in so many is left */

static uint64_t low_water(uint64_t total)
{
	return ss_min(total / LOW_PART, LOW_MOST);
}

/* The queue of a stream is made with the stream. That of the null stream is made at the first
 * question about it; perhaps our own question whether it is idle, when the device is full. So
 * ask early. */
static void wake_null(struct ss_memory *m, uint64_t used)
{
	struct ss_core *core = m->core;
	struct ss_device_memory *d = ss_device_memory(core, m->dev);

	if (used < core->info[m->dev].total_bytes / WAKE_PART || atomic_load(&d->woken))
		return;
	if (m->wake_null && m->wake_null(core, m->dev))
		atomic_store(&d->woken, true);
}

uint64_t ss_headroom_before(struct ss_memory *m, uint64_t more)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);

	wake_null(m, atomic_load(&d->taken) + more);
	return atomic_load(&d->room_asked);
}

void ss_headroom_after(struct ss_memory *m, uint64_t asked)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);
	uint64_t left, total = m->core->info[m->dev].total_bytes;

	if (ss_device_roomy(m->core, m->dev, 0))
		return;
	/* The growth itself has asked the device. */
	if (atomic_load(&d->room_asked) != asked)
		left = ss_minus(atomic_load(&d->room), atomic_load(&d->taken));
	else if (!ss_device_left(m->core, m->dev, &left))
		return;
	wake_null(m, ss_minus(total, left)); /* other processes use the device as well */
	/* ReuseAllowInternalDependencies can wait only for fences of single frees. */
	ss_nearly_full_set(m->core, m->dev, left < total / NEARLY_FULL_PART);
	if (left < low_water(total))
		atomic_store(&d->low, true);
}

void ss_headroom_restore(struct ss_memory *m)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);
	uint64_t left, low = low_water(m->core->info[m->dev].total_bytes), given;

	if (!atomic_load(&d->low) || !ss_device_left(m->core, m->dev, &left))
		return;
	if (left < low) {
		given = ss_memory_release(m, ss_minus(atomic_load(&m->reserved), low - left),
					  UINT64_MAX);
		if (given)
			ss_trace_trim(SS_TRACE_TRIM_OOM, given, atomic_load(&m->reserved), m->dev,
				      m->handle);
	} else {
		atomic_store(&d->low, false);
	}
}

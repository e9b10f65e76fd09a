/* SPDX-License-Identifier: MIT */
/*
 * Addresses of guarded segments whose memory was released: they stay reserved, so that they are not
 * used again, and the device faults there.
 *
 * Locks: `guards->lock`, a leaf, not held across a driver call.
 */
#include "core/backing/device_memory.h"
#include "core/core.h"

/* The most that a process keeps; the oldest are released first. */
#define MOST_BYTES (64ull << 30)
#define MOST_COUNT 4096u

void ss_unmapped_add(struct ss_core *core, int dev, void *va, uint64_t size)
{
	struct ss_guards *k = &core->backing->guards;
	struct ss_gone *g = ss_host_alloc(core, sizeof(*g)), *old;

	if (!g) {
		core->drv.vmm_unreserve(core->drv.ctx, dev, va, size);
		return;
	}
	*g = (struct ss_gone){.va = va, .size = size, .dev = dev};

	pthread_mutex_lock(&k->lock);
	*k->newest = g;
	k->newest = &g->next;
	k->bytes += g->size;
	k->count++;
	while ((old = k->oldest) && (k->bytes > MOST_BYTES || k->count > MOST_COUNT)) {
		k->oldest = old->next;
		if (!k->oldest)
			k->newest = &k->oldest;
		k->bytes -= old->size;
		k->count--;
		pthread_mutex_unlock(&k->lock);
		core->drv.vmm_unreserve(core->drv.ctx, old->dev, old->va, old->size);
		ss_host_free(core, old, sizeof(*old));
		pthread_mutex_lock(&k->lock);
	}
	pthread_mutex_unlock(&k->lock);
}

bool ss_unmapped(struct ss_core *core, const void *ptr)
{
	struct ss_guards *k = &core->backing->guards;
	const struct ss_gone *g;

	pthread_mutex_lock(&k->lock);
	for (g = k->oldest; g && (uintptr_t)ptr - (uintptr_t)g->va >= g->size; g = g->next)
		;
	pthread_mutex_unlock(&k->lock);
	return g != NULL;
}

void ss_guards_init(struct ss_guards *k)
{
	pthread_mutex_init(&k->lock, NULL);
	k->newest = &k->oldest;
}

void ss_guards_finish(struct ss_core *core)
{
	struct ss_guards *k = &core->backing->guards;
	struct ss_gone *g;

	while ((g = k->oldest)) {
		k->oldest = g->next;
		core->drv.vmm_unreserve(core->drv.ctx, g->dev, g->va, g->size);
		ss_host_free(core, g, sizeof(*g));
	}
	pthread_mutex_destroy(&k->lock);
}

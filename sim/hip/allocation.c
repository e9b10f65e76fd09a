/* SPDX-License-Identifier: MIT */
/* Device memory as HIP knows it, allocated through HSA. */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hip/hip_runtime_api.h>

#include "device/calls.h"
#include "hip/allocation.h"
#include "hip/peer.h"
#include "hsa/memory_pool.h"

bool hip_find(const void *p, struct sim_alloc *a)
{
	if (!p || !sim_find(p, a))
		return false;
	if ((a->kind == SIM_LOCKED || a->kind == SIM_MAPPED) && !a->hip)
		return false;
	return a->kind != SIM_LOCKED || (uintptr_t)p - a->r.base < a->size;
}

bool host_pageable(const void *p)
{
	struct sim_alloc a;

	return !hip_find(p, &a);
}

struct adoption {
	size_t size;
	unsigned flags;
	uint32_t access;
};

static void adopt(struct sim_alloc *a, void *arg)
{
	struct adoption *d = arg;

	a->hip = true;
	a->size = d->size;
	a->flags = d->flags;
	a->access |= d->access;
}

void hip_adopt(void *p, size_t size, unsigned flags, uint32_t access)
{
	sim_update(p, adopt, &(struct adoption){size, flags, access});
}

void *hip_device_alloc(int device, size_t size, unsigned flags)
{
	hsa_amd_memory_pool_t pool = {sim_pool_handle(device, flags == hipDeviceMallocFinegrained)};
	struct sim_thread *t = sim_self();
	void *p = NULL;
	hsa_status_t s;

	t->depth++; /* the program has not called HSA */
	s = hsa_amd_memory_pool_allocate(pool, size, 0, &p);
	t->depth--;
	if (s != HSA_STATUS_SUCCESS)
		return NULL;
	hip_adopt(p, size, flags, (uint32_t)peer_mask(device));
	return p;
}

void hip_device_free(void *base)
{
	struct sim_thread *t = sim_self();

	t->depth++;
	hsa_amd_memory_pool_free(base);
	t->depth--;
}

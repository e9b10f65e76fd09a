/* SPDX-License-Identifier: MIT */
/*
 * Segments from ROCr, below HIP, and the HSA agent of each HIP device.
 *
 * HIP_VISIBLE_DEVICES changes the numbers of HIP's devices, and ROCR_VISIBLE_DEVICES those of
 * ROCr's agents, but both name the PCI function of a GPU. Partitions of one GPU share a function:
 * they are matched by their order, if HIP and ROCr see the same number of them.
 *
 * No locks: everything but `peers_of` is written once by ss_rocm_hsa_start(), before the
 * core exists.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rocm/hsa.h"

#define MAX_AGENTS 64

/* UCX watches these two functions by patching every relocation of them (ucm/rocm/rocmmem.c), so we
 * must call them through a relocation. The reference is weak because a process may have no ROCr, or
 * only in the scope of a plugin. */
#pragma weak hsa_amd_memory_pool_allocate
#pragma weak hsa_amd_memory_pool_free

/* The devices that HIP gave access to each device's memory (hipDeviceEnablePeerAccess). */
static _Atomic uint64_t peers_of[SS_MAX_DEVICES];

struct agent {
	hsa_agent_t agent;
	uint32_t bdf, domain;
	char name[64];
	hsa_amd_memory_pool_t pool;
	bool has_pool, taken;
};

struct walk {
	const struct ss_rocm *r;
	struct agent list[MAX_AGENTS];
	int count;
};

static hsa_status_t each_pool(hsa_amd_memory_pool_t pool, void *arg)
{
	struct walk *w = arg;
	struct agent *a = &w->list[w->count];
	hsa_amd_segment_t segment;
	uint32_t flags = 0;
	bool may_alloc = false;

	if (w->r->f.hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
						 &segment) != HSA_STATUS_SUCCESS ||
	    segment != HSA_AMD_SEGMENT_GLOBAL)
		return HSA_STATUS_SUCCESS;
	w->r->f.hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
	w->r->f.hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
					     &may_alloc);
	/* hipMalloc takes its memory from the coarse-grained pool too. */
	if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) && may_alloc && !a->has_pool) {
		a->pool = pool;
		a->has_pool = true;
	}
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t each_agent(hsa_agent_t agent, void *arg)
{
	struct walk *w = arg;
	hsa_device_type_t type;
	struct agent *a;

	if (w->count == MAX_AGENTS ||
	    w->r->f.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) != HSA_STATUS_SUCCESS ||
	    type != HSA_DEVICE_TYPE_GPU)
		return HSA_STATUS_SUCCESS;
	a = &w->list[w->count];
	a->agent = agent;
	w->r->f.hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, a->name);
	w->r->f.hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_BDFID, &a->bdf);
	w->r->f.hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_DOMAIN, &a->domain);
	w->r->f.hsa_amd_agent_iterate_memory_pools(agent, each_pool, w);
	w->count++;
	return HSA_STATUS_SUCCESS;
}

/* The agent at the device's PCI function, if there is exactly one. */
static struct agent *by_pci(struct walk *w, int dev)
{
	unsigned domain, bus, device, function;
	struct agent *found = NULL;
	char id[64] = "";

	if (!w->r->f.hipDeviceGetPCIBusId ||
	    w->r->f.hipDeviceGetPCIBusId(id, (int)sizeof(id), dev) != hipSuccess ||
	    sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return NULL;
	for (int i = 0; i < w->count; i++) {
		if (w->list[i].domain != domain ||
		    w->list[i].bdf != (bus << 8 | device << 3 | function))
			continue;
		if (found)
			return NULL;
		found = &w->list[i];
	}
	return found && !found->taken ? found : NULL;
}

/* The signal functions do not count, because fence.c works without them. */
static bool have_all(const struct ss_rocm *r)
{
	return r->f.hsa_iterate_agents && r->f.hsa_agent_get_info &&
	       r->f.hsa_amd_agent_iterate_memory_pools && r->f.hsa_amd_memory_pool_get_info &&
	       r->f.hsa_amd_memory_pool_allocate && r->f.hsa_amd_memory_pool_free &&
	       r->f.hsa_amd_agents_allow_access;
}

void ss_rocm_hsa_start(struct ss_rocm *r, int devices)
{
	struct walk *w;

	/* HIP has called hsa_init already, so we need not. */
	if (!have_all(r))
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	if (r->f.hsa_iterate_agents(each_agent, w) != HSA_STATUS_SUCCESS)
		w->count = 0;
	for (int i = 0; i < devices; i++) {
		struct agent *a = by_pci(w, i);

		if (!a && w->count == devices && !w->list[i].taken)
			a = &w->list[i];
		if (!a)
			continue;
		a->taken = true;
		r->hsa[i].known = true;
		r->hsa[i].agent = a->agent;
		r->hsa[i].has_pool = a->has_pool;
		r->hsa[i].pool = a->pool;
		memcpy(r->hsa[i].arch, a->name, sizeof(a->name));
	}
	free(w);
}

bool ss_rocm_hsa_ready(int dev)
{
	return ss_rocm.hsa[dev].has_pool;
}

const char *ss_rocm_arch(int dev)
{
	return dev >= 0 && dev < SS_MAX_DEVICES && ss_rocm.hsa[dev].known ? ss_rocm.hsa[dev].arch :
									    NULL;
}

static enum ss_status status(hsa_status_t s)
{
	if (s == HSA_STATUS_SUCCESS)
		return SS_OK;
	/* INVALID_ALLOCATION: more than one allocation may have. */
	return s == HSA_STATUS_ERROR_OUT_OF_RESOURCES || s == HSA_STATUS_ERROR_INVALID_ALLOCATION ?
		       SS_ERR_NOMEM :
		       SS_ERR_FAILED;
}

/* The call replaces the set of agents that have access, so the peers that HIP enabled must
 * be in the list again. */
enum ss_status ss_rocm_hsa_access(int dev, void *ptr, uint64_t peers)
{
	hsa_agent_t list[SS_MAX_DEVICES];
	hsa_status_t s;
	uint32_t n = 0;

	if (!ss_rocm.hsa[dev].known || !ss_rocm.f.hsa_amd_agents_allow_access)
		return SS_ERR_UNSUPPORTED;
	peers |= atomic_load(&peers_of[dev]) | 1ull << dev;
	for (int i = 0; i < ss_rocm_devices; i++)
		if (peers >> i & 1) {
			if (!ss_rocm.hsa[i].known)
				return SS_ERR_UNSUPPORTED;
			list[n++] = ss_rocm.hsa[i].agent;
		}
	ss_enter();
	s = ss_rocm.f.hsa_amd_agents_allow_access(n, list, NULL, ptr);
	ss_leave();
	return status(s);
}

void ss_rocm_hsa_add_peers(int dev, uint64_t peers)
{
	atomic_fetch_or(&peers_of[dev], peers);
}

enum ss_status ss_rocm_hsa_alloc(int dev, size_t size, uint64_t peers, void **ptr)
{
	enum ss_status s;
	void *p = NULL;

	if (!ss_rocm_hsa_ready(dev))
		return SS_ERR_UNSUPPORTED;
	ss_enter();
	s = status((hsa_amd_memory_pool_allocate ? hsa_amd_memory_pool_allocate :
						   ss_rocm.f.hsa_amd_memory_pool_allocate)(
		ss_rocm.hsa[dev].pool, size, 0, &p));
	ss_leave();
	if (s != SS_OK)
		return s;
	*ptr = p;
	return ss_rocm_hsa_access(dev, p, peers);
}

enum ss_status ss_rocm_hsa_free(void *ptr)
{
	hsa_status_t s;

	ss_enter();
	s = (hsa_amd_memory_pool_free ? hsa_amd_memory_pool_free :
					ss_rocm.f.hsa_amd_memory_pool_free)(ptr);
	ss_leave();
	return status(s);
}

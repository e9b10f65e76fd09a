/* SPDX-License-Identifier: MIT */
/*
 * HSA's own device work: copies, signal handlers and functions. Each is a short-lived thread,
 * since no queue orders them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/host_access.h"
#include "device/signal.h"
#include "device/virtual_memory.h"
#include "hsa/agent.h"
#include "hsa/entry_points.h"

struct job {
	enum { J_COPY, J_RECT, J_HANDLER, J_FUNCTION } kind;
	void *dst;
	const void *src;
	size_t size, dpitch, dslice, spitch, sslice;
	hsa_dim3_t range;
	uint32_t n;
	hsa_signal_t *deps, done, sig;
	hsa_signal_condition_t cond;
	hsa_signal_value_t value;
	hsa_amd_signal_handler handler;
	void (*fn)(void *arg);
	void *arg;
};

static void *run(void *arg)
{
	struct job *j = arg;

	switch (j->kind) {
	case J_HANDLER:
		do {
			j->value = sim_signal_wait(j->sig.handle, (enum sim_condition)j->cond,
						   j->value, UINT64_MAX);
		} while (j->handler(j->value, j->arg));
		break;
	case J_FUNCTION: j->fn(j->arg); break;
	default:
		for (uint32_t i = 0; i < j->n; i++)
			sim_signal_wait(j->deps[i].handle, SIM_EQUAL, 0, UINT64_MAX);
		sim_vmm_settle();
		sim_work_begin("an HSA copy");
		if (j->kind == J_COPY)
			memmove(j->dst, j->src, j->size);
		else
			for (uint32_t z = 0; z < j->range.z; z++)
				for (uint32_t y = 0; y < j->range.y; y++)
					memmove((char *)j->dst + z * j->dslice + y * j->dpitch,
						(const char *)j->src + z * j->sslice +
							y * j->spitch,
						j->range.x);
		sim_work_end();
		if (j->done.handle)
			sim_signal_op(j->done.handle, SIG_SUB, 1, 0);
	}
	free(j->deps);
	free(j);
	return NULL;
}

static hsa_status_t start(struct job *j, const hsa_signal_t *deps)
{
	pthread_attr_t attr;
	pthread_t th;
	int e;

	if (j->n) {
		j->deps = malloc(j->n * sizeof *deps);
		if (j->deps)
			memcpy(j->deps, deps, j->n * sizeof *deps);
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	e = (j->n && !j->deps) ? ENOMEM : pthread_create(&th, &attr, run, j);
	pthread_attr_destroy(&attr);
	if (!e)
		return HSA_STATUS_SUCCESS;
	free(j->deps);
	free(j);
	return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

static struct job *job(int kind)
{
	struct job *j = calloc(1, sizeof *j);

	if (!j)
		abort();
	j->kind = kind;
	return j;
}

hsa_status_t i_hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src,
					 hsa_agent_t src_agent, size_t size, uint32_t n,
					 const hsa_signal_t *deps, hsa_signal_t completion)
{
	struct job *j;

	if (!dst || !src || (n && !deps))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (hsa_agent_device(dst_agent) < -1 || hsa_agent_device(src_agent) < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	j = job(J_COPY);
	j->dst = dst;
	j->src = src;
	j->size = size;
	j->n = n;
	j->done = completion;
	return start(j, deps);
}

hsa_status_t i_hsa_amd_memory_async_copy_on_engine(void *dst, hsa_agent_t dst_agent,
						   const void *src, hsa_agent_t src_agent,
						   size_t size, uint32_t n,
						   const hsa_signal_t *deps,
						   hsa_signal_t completion, int engine, _Bool force)
{
	return i_hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, n, deps,
					   completion);
}

hsa_status_t i_hsa_amd_memory_async_copy_rect(
	const hsa_pitched_ptr_t *dst, const hsa_dim3_t *dst_offset, const hsa_pitched_ptr_t *src,
	const hsa_dim3_t *src_offset, const hsa_dim3_t *range, hsa_agent_t agent,
	hsa_amd_copy_direction_t dir, uint32_t n, const hsa_signal_t *deps, hsa_signal_t completion)
{
	struct job *j;

	if (!dst || !src || !range || !dst_offset || !src_offset)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	j = job(J_RECT);
	j->dst = (char *)dst->base + dst_offset->z * dst->slice + dst_offset->y * dst->pitch +
		 dst_offset->x;
	j->src = (char *)src->base + src_offset->z * src->slice + src_offset->y * src->pitch +
		 src_offset->x;
	j->dpitch = dst->pitch;
	j->dslice = dst->slice;
	j->spitch = src->pitch;
	j->sslice = src->slice;
	j->range = *range;
	j->n = n;
	j->done = completion;
	return start(j, deps);
}

hsa_status_t i_hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond,
					    hsa_signal_value_t value,
					    hsa_amd_signal_handler handler, void *arg)
{
	struct job *j;

	if (!handler || !signal.handle)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	j = job(J_HANDLER);
	j->sig = signal;
	j->cond = cond;
	j->value = value;
	j->handler = handler;
	j->arg = arg;
	return start(j, NULL);
}

hsa_status_t i_hsa_amd_async_function(void (*callback)(void *arg), void *arg)
{
	struct job *j;

	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	j = job(J_FUNCTION);
	j->fn = callback;
	j->arg = arg;
	return start(j, NULL);
}

hsa_status_t i_hsa_memory_copy(void *dst, const void *src, size_t size)
{
	if (!dst || !src)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	memmove(dst, src, size);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count)
{
	uint32_t *w = ptr;

	if (!ptr || (uintptr_t)ptr % 4)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (size_t i = 0; i < count; i++)
		w[i] = value;
	return HSA_STATUS_SUCCESS;
}

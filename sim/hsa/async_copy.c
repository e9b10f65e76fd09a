/* SPDX-License-Identifier: MIT */
/*
 * HSA's own device work (copies, handlers), locked host memory, IPC, and
 * dmabuf export. Each asynchronous operation is a short-lived thread: raw HSA
 * copies have no queue that would order them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hsa_sim.h"

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
			j->value = sim_signal_wait(j->sig, j->cond, j->value, UINT64_MAX);
		} while (j->handler(j->value, j->arg));
		break;
	case J_FUNCTION:
		j->fn(j->arg);
		break;
	default:
		for (uint32_t i = 0; i < j->n; i++)
			sim_signal_wait(j->deps[i], HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX);
		sim_vmm_settle();
		sim_device_work = "an HSA copy";
		if (j->kind == J_COPY)
			memmove(j->dst, j->src, j->size);
		else
			for (uint32_t z = 0; z < j->range.z; z++)
				for (uint32_t y = 0; y < j->range.y; y++)
					memmove((char *)j->dst + z * j->dslice + y * j->dpitch,
						(const char *)j->src + z * j->sslice + y * j->spitch,
						j->range.x);
		sim_device_work = NULL;
		if (j->done.handle)
			sim_signal_op(j->done, SIG_SUB, 1, 0);
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

hsa_status_t i_hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size, uint32_t n, const hsa_signal_t *deps, hsa_signal_t completion)
{
	struct job *j;

	if (!dst || !src || (n && !deps))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (sim_agent_device(dst_agent) < -1 || sim_agent_device(src_agent) < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	j = job(J_COPY);
	j->dst = dst;
	j->src = src;
	j->size = size;
	j->n = n;
	j->done = completion;
	return start(j, deps);
}

hsa_status_t i_hsa_amd_memory_async_copy_on_engine(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size, uint32_t n, const hsa_signal_t *deps, hsa_signal_t completion, int engine, _Bool force)
{
	return i_hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, n, deps, completion);
}

hsa_status_t i_hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t *dst, const hsa_dim3_t *dst_offset, const hsa_pitched_ptr_t *src, const hsa_dim3_t *src_offset, const hsa_dim3_t *range, hsa_agent_t agent, hsa_amd_copy_direction_t dir, uint32_t n, const hsa_signal_t *deps, hsa_signal_t completion)
{
	struct job *j;

	if (!dst || !src || !range || !dst_offset || !src_offset)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	j = job(J_RECT);
	j->dst = (char *)dst->base + dst_offset->z * dst->slice + dst_offset->y * dst->pitch + dst_offset->x;
	j->src = (char *)src->base + src_offset->z * src->slice + src_offset->y * src->pitch + src_offset->x;
	j->dpitch = dst->pitch;
	j->dslice = dst->slice;
	j->spitch = src->pitch;
	j->sslice = src->slice;
	j->range = *range;
	j->n = n;
	j->done = completion;
	return start(j, deps);
}

hsa_status_t i_hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond, hsa_signal_value_t value, hsa_amd_signal_handler handler, void *arg)
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

/* ---- locked host memory ---- */

hsa_status_t i_hsa_amd_memory_lock(void *host, size_t size, hsa_agent_t *agents, int n, void **agent_ptr)
{
	struct sim_alloc a = { .kind = SIM_LOCKED, .device = -1, .access = ~0u, .slot = -1 };

	if (!host || !size || !agent_ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	a.r.base = (uintptr_t)host;
	a.r.size = a.size = size;
	a.id = sim_next_id();
	a.alias = host;
	*agent_ptr = NULL;
	if (!sim_map_add(&a))
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*agent_ptr = host;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_lock_to_pool(void *host, size_t size, hsa_agent_t *agents, int n, hsa_amd_memory_pool_t pool, uint32_t flags, void **agent_ptr)
{
	return i_hsa_amd_memory_lock(host, size, agents, n, agent_ptr);
}

hsa_status_t i_hsa_amd_memory_unlock(void *host)
{
	struct sim_alloc a;

	if (!sim_find(host, &a) || a.kind != SIM_LOCKED)
		return HSA_STATUS_SUCCESS;
	sim_map_remove(host, &a);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_memory_register(void *ptr, size_t size)
{
	void *p;

	return i_hsa_amd_memory_lock(ptr, size, NULL, 0, &p);
}

hsa_status_t i_hsa_memory_deregister(void *ptr, size_t size)
{
	return i_hsa_amd_memory_unlock(ptr);
}

hsa_status_t i_hsa_memory_assign_agent(void *ptr, hsa_agent_t agent, hsa_access_permission_t access)
{
	return ptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* ---- sharing ---- */

_Static_assert(sizeof(struct sim_ipc_handle) == sizeof(hsa_amd_ipc_memory_t), "32 bytes");

hsa_status_t i_hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle)
{
	struct sim_alloc a;

	if (!ptr || !handle || !sim_find(ptr, &a))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (a.kind == SIM_MAPPED && sim_opt.quirk[SIM_Q_IPC_VMM]) {
		/* A kernel BUG and lost VRAM on the real thing: make it loud. */
		fprintf(stderr, "somasim: VMM address %p reached hsa_amd_ipc_memory_create\n", ptr);
		abort();
	}
	if (a.kind != SIM_DEVICE || a.r.base != (uintptr_t)ptr || (len != a.r.size && len != a.size))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return sim_ipc_export(&a, (struct sim_ipc_handle *)handle) ?
		HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t n, const hsa_agent_t *list, void **ptr)
{
	void *p;

	if (!handle || !ptr || !len)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	p = sim_ipc_import((const struct sim_ipc_handle *)handle, len, 0, false);
	if (!p)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*ptr = p;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_ipc_memory_detach(void *ptr)
{
	return sim_ipc_close(ptr, false) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	struct sim_alloc a;

	if (!ptr || !fd || !offset || !size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sim_find(ptr, &a) || a.kind != SIM_DEVICE)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	if ((uintptr_t)ptr + size > a.r.base + a.r.size)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	*fd = fcntl(sim_devices[a.device].fd, F_DUPFD_CLOEXEC, 3);
	*offset = (uintptr_t)ptr - (uintptr_t)sim_devices[a.device].arena;
	return *fd < 0 ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd, uint64_t *offset, uint64_t flags)
{
	return i_hsa_amd_portable_export_dmabuf(ptr, size, fd, offset);
}

hsa_status_t i_hsa_amd_portable_close_dmabuf(int fd)
{
	return close(fd) ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_interop_map_buffer(uint32_t n, hsa_agent_t *list, int fd, uint32_t flags, size_t *size, void **ptr, size_t *metasize, const void **meta)
{
	return HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_interop_unmap_buffer(void *ptr)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* ---- accepted, of no consequence on this device ---- */

hsa_status_t i_hsa_amd_coherency_get_type(hsa_agent_t agent, hsa_amd_coherency_type_t *type)
{
	*type = HSA_AMD_COHERENCY_TYPE_COHERENT;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t type)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_profiling_async_copy_enable(_Bool enable)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal, hsa_amd_profiling_async_copy_time_t *time)
{
	return HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_register_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback, void *data)
{
	struct sim_alloc a;

	return sim_find(ptr, &a) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t i_hsa_amd_deregister_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void *data)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_attributes_set(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *list, size_t count)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_attributes_get(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i].value = 0;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t n, const hsa_signal_t *deps, hsa_signal_t completion)
{
	if (completion.handle)
		sim_signal_op(completion, SIG_SUB, 1, 0);
	return HSA_STATUS_SUCCESS;
}

/* The device has no user-mode queues; HIP streams are its only queues. */
hsa_status_t i_hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type, void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data), void *data, uint32_t priv, uint32_t group, hsa_queue_t **queue)
{
	return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t i_hsa_soft_queue_create(hsa_region_t region, uint32_t size, hsa_queue_type32_t type, uint32_t features, hsa_signal_t doorbell, hsa_queue_t **queue)
{
	return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

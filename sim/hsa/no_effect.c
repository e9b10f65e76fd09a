/* SPDX-License-Identifier: MIT */
/* Calls that this device accepts without doing anything, and calls that it always refuses. */
#include "device/address_map.h"
#include "device/signal.h"
#include "hsa/entry_points.h"

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

hsa_status_t i_hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
						     hsa_amd_profiling_async_copy_time_t *time)
{
	return HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_register_deallocation_callback(void *ptr,
						      hsa_amd_deallocation_callback_t callback,
						      void *data)
{
	struct sim_alloc a;

	return sim_find(ptr, &a) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t i_hsa_amd_deregister_deallocation_callback(void *ptr,
							hsa_amd_deallocation_callback_t callback)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_attributes_set(void *ptr, size_t size,
					  hsa_amd_svm_attribute_pair_t *list, size_t count)
{
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_attributes_get(void *ptr, size_t size,
					  hsa_amd_svm_attribute_pair_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i].value = 0;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t n,
					  const hsa_signal_t *deps, hsa_signal_t completion)
{
	if (completion.handle)
		sim_signal_op(completion.handle, SIG_SUB, 1, 0);
	return HSA_STATUS_SUCCESS;
}

/* The device has no user-mode queues: its only queues are those of HIP streams. */
hsa_status_t i_hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
				void (*callback)(hsa_status_t status, hsa_queue_t *source,
						 void *data),
				void *data, uint32_t priv, uint32_t group, hsa_queue_t **queue)
{
	return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t i_hsa_soft_queue_create(hsa_region_t region, uint32_t size, hsa_queue_type32_t type,
				     uint32_t features, hsa_signal_t doorbell, hsa_queue_t **queue)
{
	return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

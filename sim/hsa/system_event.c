/* SPDX-License-Identifier: MIT */
/* Page faults are told to the program's handler; there is one per process. */
#include <stdatomic.h>

#include "device/fault.h"
#include "hsa/entry_points.h"

static atomic_flag taken = ATOMIC_FLAG_INIT;
static hsa_amd_system_event_callback_t handler;
static void *handler_data;

static bool tell(const void *addr)
{
	/* As on a device, only the page is known. */
	hsa_amd_event_t event = {.event_type = HSA_AMD_GPU_MEMORY_FAULT_EVENT};

	event.memory_fault.virtual_address = (uintptr_t)addr & ~(uintptr_t)4095;
	event.memory_fault.fault_reason_mask = HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT;
	return handler(&event, handler_data) == HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback,
						     void *data)
{
	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (atomic_flag_test_and_set(&taken))
		return HSA_STATUS_ERROR;
	handler = callback;
	handler_data = data;
	sim_fault_tell(tell);
	return HSA_STATUS_SUCCESS;
}

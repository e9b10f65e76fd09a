/* SPDX-License-Identifier: MIT */
/* Start and stop of HSA, the system, and its agents. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device/arena.h"
#include "device/clock.h"
#include "device/options.h"
#include "hsa/agent.h"
#include "hsa/entry_points.h"

/* The handle of an agent is an address in here: the CPU comes first, then the devices. */
static int agents[SIM_MAX_DEVICES + 1];
static int isas[SIM_MAX_DEVICES];

static atomic_int users; /* hsa_init minus hsa_shut_down */

hsa_status_t i_hsa_init(void)
{
	if (!sim_arena_init())
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	atomic_fetch_add(&users, 1);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_shut_down(void)
{
	if (atomic_load(&users) <= 0)
		return HSA_STATUS_ERROR_NOT_INITIALIZED;
	atomic_fetch_sub(&users, 1);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_status_string(hsa_status_t status, const char **out)
{
	if (!out)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	switch ((int)status) {
	case HSA_STATUS_SUCCESS:
		*out = "HSA_STATUS_SUCCESS: The function has been executed successfully.";
		break;
	case HSA_STATUS_INFO_BREAK: *out = "HSA_STATUS_INFO_BREAK"; break;
	case HSA_STATUS_ERROR: *out = "HSA_STATUS_ERROR: A generic error has occurred."; break;
	case HSA_STATUS_ERROR_INVALID_ARGUMENT:
		*out = "HSA_STATUS_ERROR_INVALID_ARGUMENT: One of the actual arguments does not "
		       "meet a precondition stated in the documentation of the corresponding "
		       "formal argument.";
		break;
	case HSA_STATUS_ERROR_INVALID_ALLOCATION:
		*out = "HSA_STATUS_ERROR_INVALID_ALLOCATION: The requested allocation is not "
		       "valid.";
		break;
	case HSA_STATUS_ERROR_INVALID_AGENT:
		*out = "HSA_STATUS_ERROR_INVALID_AGENT: The agent is invalid.";
		break;
	case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
		*out = "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the "
		       "necessary resources. This error may also occur when the core runtime "
		       "library needs to spawn threads or create internal OS-specific events.";
		break;
	case HSA_STATUS_ERROR_NOT_INITIALIZED:
		*out = "HSA_STATUS_ERROR_NOT_INITIALIZED: An API other than hsa_init has been "
		       "invoked while the reference count of the HSA runtime is zero.";
		break;
	case HSA_STATUS_ERROR_INVALID_SIGNAL:
		*out = "HSA_STATUS_ERROR_INVALID_SIGNAL: The signal is invalid.";
		break;
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

int hsa_agent_device(hsa_agent_t a)
{
	int *p = (int *)(uintptr_t)a.handle;

	if (p < agents || p > agents + sim_opt.devices)
		return -2;
	return (int)(p - agents) - 1;
}

hsa_agent_t hsa_device_agent(int device)
{
	return (hsa_agent_t){(uint64_t)(uintptr_t)&agents[device + 1]};
}

hsa_status_t i_hsa_system_get_info(hsa_system_info_t attribute, void *value)
{
	switch ((int)attribute) {
	case HSA_SYSTEM_INFO_VERSION_MAJOR: *(uint16_t *)value = 1; break;
	case HSA_SYSTEM_INFO_VERSION_MINOR: *(uint16_t *)value = 1; break;
	case HSA_SYSTEM_INFO_TIMESTAMP: *(uint64_t *)value = sim_now_ns(); break;
	case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: *(uint64_t *)value = 1000000000; break;
	case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT: *(uint64_t *)value = UINT64_MAX; break;
	case HSA_SYSTEM_INFO_ENDIANNESS: *(hsa_endianness_t *)value = HSA_ENDIANNESS_LITTLE; break;
	case HSA_SYSTEM_INFO_MACHINE_MODEL:
		*(hsa_machine_model_t *)value = HSA_MACHINE_MODEL_LARGE;
		break;
	case HSA_SYSTEM_INFO_EXTENSIONS: memset(value, 0, 128); break;
	case 0x201: *(bool *)value = true; break;  /* SVM supported */
	case 0x202: *(bool *)value = false; break; /* SVM accessible by default */
	case 0x204: *(bool *)value = !sim_opt.quirk[SIM_Q_NO_VMM]; break; /* vmem */
	case 0x206: *(bool *)value = true; break;                         /* dmabuf */
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_extension_supported(uint16_t extension, uint16_t major, uint16_t minor,
					      _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_major_extension_supported(uint16_t extension, uint16_t major,
						    uint16_t *minor, _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_get_extension_table(uint16_t extension, uint16_t major, uint16_t minor,
					      void *table)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_system_get_major_extension_table(uint16_t extension, uint16_t major,
						    size_t length, void *table)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data),
				  void *data)
{
	int n = sim_opt.no_device ? 0 : sim_opt.devices;

	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (int i = -1; i < n; i++) {
		hsa_status_t s = callback(hsa_device_agent(i), data);

		if (s != HSA_STATUS_SUCCESS)
			return s;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value)
{
	int dev = hsa_agent_device(agent);
	bool gpu = dev >= 0;

	if (dev < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	if (!value)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	switch ((int)attribute) {
	case HSA_AGENT_INFO_NAME:
		memset(value, 0, 64);
		strncpy(value, gpu ? sim_opt.arch : "CPU", 63);
		break;
	case HSA_AGENT_INFO_VENDOR_NAME:
		memset(value, 0, 64);
		strcpy(value, gpu ? "AMD" : "CPU");
		break;
	case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
		memset(value, 0, 64);
		strcpy(value, gpu ? "somasim software device" : "CPU");
		break;
	case HSA_AGENT_INFO_FEATURE:
		*(hsa_agent_feature_t *)value = gpu ? HSA_AGENT_FEATURE_KERNEL_DISPATCH : 0;
		break;
	case HSA_AGENT_INFO_DEVICE:
		*(hsa_device_type_t *)value = gpu ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU;
		break;
	case HSA_AGENT_INFO_PROFILE:
		*(hsa_profile_t *)value = gpu ? HSA_PROFILE_BASE : HSA_PROFILE_FULL;
		break;
	case HSA_AGENT_INFO_MACHINE_MODEL:
		*(hsa_machine_model_t *)value = HSA_MACHINE_MODEL_LARGE;
		break;
	case HSA_AGENT_INFO_WAVEFRONT_SIZE: *(uint32_t *)value = gpu ? 64 : 0; break;
	case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: *(uint32_t *)value = gpu ? 1024 : 0; break;
	case HSA_AGENT_INFO_NODE: *(uint32_t *)value = (uint32_t)(dev + 1); break;
	case HSA_AGENT_INFO_QUEUES_MAX: *(uint32_t *)value = gpu ? 128 : 0; break;
	case HSA_AGENT_INFO_QUEUE_MIN_SIZE: *(uint32_t *)value = 64; break;
	case HSA_AGENT_INFO_QUEUE_MAX_SIZE: *(uint32_t *)value = 131072; break;
	case HSA_AGENT_INFO_VERSION_MAJOR: *(uint16_t *)value = 1; break;
	case HSA_AGENT_INFO_VERSION_MINOR: *(uint16_t *)value = 1; break;
	case HSA_AGENT_INFO_ISA:
		*(hsa_isa_t *)value = (hsa_isa_t){gpu ? (uint64_t)(uintptr_t)&isas[dev] : 0};
		break;
	case HSA_AGENT_INFO_EXTENSIONS: memset(value, 0, 128); break;
	case HSA_AMD_AGENT_INFO_CHIP_ID: *(uint32_t *)value = gpu ? 0x74a1 : 0; break;
	case HSA_AMD_AGENT_INFO_CACHELINE_SIZE: *(uint32_t *)value = 64; break;
	case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: *(uint32_t *)value = gpu ? 304 : 2; break;
	case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY: *(uint32_t *)value = 2100; break;
	case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: *(uint32_t *)value = (uint32_t)(dev + 1); break;
	case HSA_AMD_AGENT_INFO_BDFID:
		*(uint32_t *)value = gpu ? (uint32_t)(dev + 1) << 8 : 0;
		break;
	case HSA_AMD_AGENT_INFO_MEMORY_WIDTH: *(uint32_t *)value = 8192; break;
	case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY: *(uint32_t *)value = 1300; break;
	case HSA_AMD_AGENT_INFO_DOMAIN: *(uint32_t *)value = 0; break;
	case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES: *(bool *)value = gpu; break;
	case HSA_AMD_AGENT_INFO_UUID: snprintf(value, 21, "GPU-%016x", dev + 1); break;
	case HSA_AMD_AGENT_INFO_ASIC_REVISION: *(uint32_t *)value = 1; break;
	case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS: *(bool *)value = sim_opt.integrated; break;
	case 0xA016:
		*(uint64_t *)value = gpu ? sim_free_bytes(dev) : 0;
		break; /* MEMORY_AVAIL */
	/* TIMESTAMP_FREQUENCY */
	case 0xA107: *(uint64_t *)value = 1000000000; break;
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_agent_iterate_isas(hsa_agent_t agent,
				      hsa_status_t (*callback)(hsa_isa_t isa, void *data),
				      void *data)
{
	int dev = hsa_agent_device(agent);

	return dev < 0 ? HSA_STATUS_ERROR_INVALID_AGENT :
			 callback((hsa_isa_t){(uint64_t)(uintptr_t)&isas[dev]}, data);
}

hsa_status_t i_hsa_agent_iterate_caches(hsa_agent_t agent,
					hsa_status_t (*callback)(hsa_cache_t cache, void *data),
					void *data)
{
	return hsa_agent_device(agent) < -1 ? HSA_STATUS_ERROR_INVALID_AGENT : HSA_STATUS_SUCCESS;
}

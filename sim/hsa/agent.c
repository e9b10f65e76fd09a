/* SPDX-License-Identifier: MIT */
/* HSA agents, memory pools, and what can be asked about a pointer. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hsa_sim.h"

/* Handles are addresses of these; the content is the index. */
static int agents[SIM_MAX_DEVICES + 1];       /* [0] = the CPU */
enum { P_COARSE, P_FINE, P_GROUP, P_KINDS };
static int pools[SIM_MAX_DEVICES + 1][P_KINDS];
static int isas[SIM_MAX_DEVICES];
static atomic_int up;

bool sim_hsa_up(void)
{
	return atomic_load(&up) > 0;
}

int sim_agent_device(hsa_agent_t a)
{
	int *p = (int *)(uintptr_t)a.handle;

	if (p < agents || p > agents + sim_opt.devices)
		return -2;
	return (int)(p - agents) - 1;
}

hsa_agent_t sim_device_agent(int device)
{
	return (hsa_agent_t){ (uint64_t)(uintptr_t)&agents[device + 1] };
}

static hsa_amd_memory_pool_t pool_of(int device, int kind)
{
	return (hsa_amd_memory_pool_t){ (uint64_t)(uintptr_t)&pools[device + 1][kind] };
}

static bool pool_split(hsa_amd_memory_pool_t pool, int *device, int *kind)
{
	int *p = (int *)(uintptr_t)pool.handle;
	int *first = &pools[0][0];

	if (p < first || p >= first + (sim_opt.devices + 1) * P_KINDS)
		return false;
	*device = (int)(p - first) / P_KINDS - 1;
	*kind = (int)(p - first) % P_KINDS;
	return true;
}

hsa_status_t i_hsa_init(void)
{
	if (sim_opt.no_device && !sim_memory_init())
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	if (!sim_memory_init())
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	atomic_fetch_add(&up, 1);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_shut_down(void)
{
	if (atomic_load(&up) <= 0)
		return HSA_STATUS_ERROR_NOT_INITIALIZED;
	atomic_fetch_sub(&up, 1);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_status_string(hsa_status_t status, const char **out)
{
	if (!out)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	switch ((int)status) {
	case HSA_STATUS_SUCCESS: *out = "HSA_STATUS_SUCCESS: The function has been executed successfully."; break;
	case HSA_STATUS_INFO_BREAK: *out = "HSA_STATUS_INFO_BREAK"; break;
	case HSA_STATUS_ERROR: *out = "HSA_STATUS_ERROR: A generic error has occurred."; break;
	case HSA_STATUS_ERROR_INVALID_ARGUMENT: *out = "HSA_STATUS_ERROR_INVALID_ARGUMENT: One of the actual arguments does not meet a precondition stated in the documentation of the corresponding formal argument."; break;
	case HSA_STATUS_ERROR_INVALID_ALLOCATION: *out = "HSA_STATUS_ERROR_INVALID_ALLOCATION: The requested allocation is not valid."; break;
	case HSA_STATUS_ERROR_INVALID_AGENT: *out = "HSA_STATUS_ERROR_INVALID_AGENT: The agent is invalid."; break;
	case HSA_STATUS_ERROR_OUT_OF_RESOURCES: *out = "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. This error may also occur when the core runtime library needs to spawn threads or create internal OS-specific events."; break;
	case HSA_STATUS_ERROR_NOT_INITIALIZED: *out = "HSA_STATUS_ERROR_NOT_INITIALIZED: An API other than hsa_init has been invoked while the reference count of the HSA runtime is zero."; break;
	case HSA_STATUS_ERROR_INVALID_SIGNAL: *out = "HSA_STATUS_ERROR_INVALID_SIGNAL: The signal is invalid."; break;
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

hsa_status_t i_hsa_system_get_info(hsa_system_info_t attribute, void *value)
{
	switch ((int)attribute) {
	case HSA_SYSTEM_INFO_VERSION_MAJOR: *(uint16_t *)value = 1; break;
	case HSA_SYSTEM_INFO_VERSION_MINOR: *(uint16_t *)value = 1; break;
	case HSA_SYSTEM_INFO_TIMESTAMP: *(uint64_t *)value = clock_ns(); break;
	case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: *(uint64_t *)value = 1000000000; break;
	case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT: *(uint64_t *)value = UINT64_MAX; break;
	case HSA_SYSTEM_INFO_ENDIANNESS: *(hsa_endianness_t *)value = HSA_ENDIANNESS_LITTLE; break;
	case HSA_SYSTEM_INFO_MACHINE_MODEL: *(hsa_machine_model_t *)value = HSA_MACHINE_MODEL_LARGE; break;
	case HSA_SYSTEM_INFO_EXTENSIONS: memset(value, 0, 128); break;
	case 0x201: *(bool *)value = true; break;     /* SVM supported */
	case 0x202: *(bool *)value = false; break;    /* SVM accessible by default */
	case 0x204: *(bool *)value = !sim_opt.quirk[SIM_Q_NO_VMM]; break; /* vmem */
	case 0x206: *(bool *)value = true; break;     /* dmabuf */
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_extension_supported(uint16_t extension, uint16_t major, uint16_t minor, _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_major_extension_supported(uint16_t extension, uint16_t major, uint16_t *minor, _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_system_get_extension_table(uint16_t extension, uint16_t major, uint16_t minor, void *table)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_system_get_major_extension_table(uint16_t extension, uint16_t major, size_t length, void *table)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data)
{
	int n = sim_opt.no_device ? 0 : sim_opt.devices;

	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (int i = -1; i < n; i++) {
		hsa_status_t s = callback(sim_device_agent(i), data);

		if (s != HSA_STATUS_SUCCESS)
			return s;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value)
{
	int dev = sim_agent_device(agent);
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
	case HSA_AGENT_INFO_FEATURE: *(hsa_agent_feature_t *)value = gpu ? HSA_AGENT_FEATURE_KERNEL_DISPATCH : 0; break;
	case HSA_AGENT_INFO_DEVICE: *(hsa_device_type_t *)value = gpu ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU; break;
	case HSA_AGENT_INFO_PROFILE: *(hsa_profile_t *)value = gpu ? HSA_PROFILE_BASE : HSA_PROFILE_FULL; break;
	case HSA_AGENT_INFO_MACHINE_MODEL: *(hsa_machine_model_t *)value = HSA_MACHINE_MODEL_LARGE; break;
	case HSA_AGENT_INFO_WAVEFRONT_SIZE: *(uint32_t *)value = gpu ? 64 : 0; break;
	case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: *(uint32_t *)value = gpu ? 1024 : 0; break;
	case HSA_AGENT_INFO_NODE: *(uint32_t *)value = (uint32_t)(dev + 1); break;
	case HSA_AGENT_INFO_QUEUES_MAX: *(uint32_t *)value = gpu ? 128 : 0; break;
	case HSA_AGENT_INFO_QUEUE_MIN_SIZE: *(uint32_t *)value = 64; break;
	case HSA_AGENT_INFO_QUEUE_MAX_SIZE: *(uint32_t *)value = 131072; break;
	case HSA_AGENT_INFO_VERSION_MAJOR: *(uint16_t *)value = 1; break;
	case HSA_AGENT_INFO_VERSION_MINOR: *(uint16_t *)value = 1; break;
	case HSA_AGENT_INFO_ISA: *(hsa_isa_t *)value = (hsa_isa_t){ gpu ? (uint64_t)(uintptr_t)&isas[dev] : 0 }; break;
	case HSA_AGENT_INFO_EXTENSIONS: memset(value, 0, 128); break;
	case HSA_AMD_AGENT_INFO_CHIP_ID: *(uint32_t *)value = gpu ? 0x74a1 : 0; break;
	case HSA_AMD_AGENT_INFO_CACHELINE_SIZE: *(uint32_t *)value = 64; break;
	case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: *(uint32_t *)value = gpu ? 304 : 2; break;
	case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY: *(uint32_t *)value = 2100; break;
	case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: *(uint32_t *)value = (uint32_t)(dev + 1); break;
	case HSA_AMD_AGENT_INFO_BDFID: *(uint32_t *)value = gpu ? (uint32_t)(dev + 1) << 8 : 0; break;
	case HSA_AMD_AGENT_INFO_MEMORY_WIDTH: *(uint32_t *)value = 8192; break;
	case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY: *(uint32_t *)value = 1300; break;
	case HSA_AMD_AGENT_INFO_DOMAIN: *(uint32_t *)value = 0; break;
	case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES: *(bool *)value = gpu; break;
	case HSA_AMD_AGENT_INFO_UUID: snprintf(value, 21, "GPU-%016x", dev + 1); break;
	case HSA_AMD_AGENT_INFO_ASIC_REVISION: *(uint32_t *)value = 1; break;
	case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS: *(bool *)value = sim_opt.integrated; break;
	case 0xA016: *(uint64_t *)value = gpu ? sim_free_bytes(dev) : 0; break; /* MEMORY_AVAIL */
	case 0xA107: *(uint64_t *)value = 1000000000; break;                 /* TIMESTAMP_FREQUENCY */
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void *data), void *data)
{
	int dev = sim_agent_device(agent);

	return dev < 0 ? HSA_STATUS_ERROR_INVALID_AGENT :
		callback((hsa_isa_t){ (uint64_t)(uintptr_t)&isas[dev] }, data);
}

hsa_status_t i_hsa_agent_iterate_caches(hsa_agent_t agent, hsa_status_t (*callback)(hsa_cache_t cache, void *data), void *data)
{
	return sim_agent_device(agent) < -1 ? HSA_STATUS_ERROR_INVALID_AGENT : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_agent_iterate_regions(hsa_agent_t agent, hsa_status_t (*callback)(hsa_region_t region, void *data), void *data)
{
	int dev = sim_agent_device(agent);

	if (dev < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	return callback((hsa_region_t){ pool_of(dev, P_COARSE).handle }, data);
}

hsa_status_t i_hsa_region_get_info(hsa_region_t region, hsa_region_info_t attribute, void *value)
{
	hsa_amd_memory_pool_t p = { region.handle };

	switch ((int)attribute) {
	case HSA_REGION_INFO_SEGMENT:
		*(hsa_region_segment_t *)value = HSA_REGION_SEGMENT_GLOBAL;
		return HSA_STATUS_SUCCESS;
	case HSA_REGION_INFO_GLOBAL_FLAGS:
		return i_hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, value);
	case HSA_REGION_INFO_SIZE:
	case HSA_REGION_INFO_ALLOC_MAX_SIZE:
		return i_hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SIZE, value);
	case HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED:
		*(bool *)value = true;
		return HSA_STATUS_SUCCESS;
	case HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE:
	case HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT:
		*(size_t *)value = SIM_PAGE;
		return HSA_STATUS_SUCCESS;
	}
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute, void *value)
{
	int dev, kind;

	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	if (!value)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	switch ((int)attribute) {
	case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
		*(hsa_amd_segment_t *)value = kind == P_GROUP ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
		*(uint32_t *)value = kind == P_COARSE ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED :
			kind == P_FINE ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED |
				(dev < 0 ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT : 0) : 0;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_SIZE:
	case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
		*(size_t *)value = kind == P_GROUP ? 65536 :
			dev < 0 ? (size_t)sysconf(_SC_PHYS_PAGES) * SIM_PAGE : (size_t)sim_opt.vram;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: *(bool *)value = kind != P_GROUP; break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE: *(size_t *)value = kind == P_GROUP ? 0 : SIM_PAGE; break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT: *(size_t *)value = kind == P_GROUP ? 0 : SIM_PAGE; break;
	case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL: *(bool *)value = dev < 0; break;
	case 17: *(int *)value = dev < 0 ? 1 : 2; break;  /* LOCATION */
	case 18: *(size_t *)value = SIM_BIG; break;       /* RUNTIME_ALLOC_REC_GRANULE */
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t pool, void *data), void *data)
{
	int dev = sim_agent_device(agent);

	if (dev < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (int k = 0; k < P_KINDS; k++) {
		hsa_status_t s;

		if (dev < 0 && k == P_GROUP)
			continue;
		s = callback(pool_of(dev, k), data);
		if (s != HSA_STATUS_SUCCESS)
			return s;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **ptr)
{
	int dev, kind;
	void *p;

	if (!ptr || !size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	if (kind == P_GROUP)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	p = dev < 0 ? sim_host_alloc(size, 0, SIM_HOST, -1) : sim_device_alloc(dev, size, kind == P_FINE);
	if (!p)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*ptr = p;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_pool_free(void *ptr)
{
	if (!ptr)
		return HSA_STATUS_SUCCESS;
	return sim_free(ptr, false) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t i_hsa_memory_allocate(hsa_region_t region, size_t size, void **ptr)
{
	return i_hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){ region.handle }, size, 0, ptr);
}

hsa_status_t i_hsa_memory_free(void *ptr)
{
	return i_hsa_amd_memory_pool_free(ptr);
}

hsa_status_t i_hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src, hsa_amd_memory_pool_t dst, _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool, hsa_amd_agent_memory_pool_info_t attribute, void *value)
{
	int dev, kind, who = sim_agent_device(agent);

	if (who < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	switch ((int)attribute) {
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
		*(hsa_amd_memory_pool_access_t *)value = who == dev || dev < 0 ?
			HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT :
			HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT;
		return HSA_STATUS_SUCCESS;
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
		*(uint32_t *)value = who == dev ? 0 : 1;
		return HSA_STATUS_SUCCESS;
	}
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

struct access_arg {
	uint32_t mask;
};

/* Who is not in the list loses what it had, as in the runtime. */
static void be_accessible(struct sim_alloc *a, void *arg)
{
	a->access = ((struct access_arg *)arg)->mask;
	if (a->device >= 0)
		a->access |= 1u << a->device;
}

hsa_status_t i_hsa_amd_agents_allow_access(uint32_t n, const hsa_agent_t *list, const uint32_t *flags, const void *ptr)
{
	struct access_arg a = { 0 };

	if (!n || !list || flags || !ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < n; i++) {
		int dev = sim_agent_device(list[i]);

		if (dev < -1)
			return HSA_STATUS_ERROR_INVALID_AGENT;
		if (dev >= 0)
			a.mask |= 1u << dev;
	}
	return sim_update(ptr, be_accessible, &a) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_pointer_info(const void *ptr, hsa_amd_pointer_info_t *info, void *(*alloc)(size_t), uint32_t *n, hsa_agent_t **accessible)
{
	static const int types[] = {
		[SIM_DEVICE] = HSA_EXT_POINTER_TYPE_HSA, [SIM_HOST] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_LOCKED] = HSA_EXT_POINTER_TYPE_LOCKED, [SIM_MANAGED] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_SIGNAL] = HSA_EXT_POINTER_TYPE_HSA, [SIM_IMPORT] = HSA_EXT_POINTER_TYPE_IPC,
		[SIM_MAPPED] = 6,
	};
	hsa_amd_pointer_info_t r = { .size = sizeof r, .type = HSA_EXT_POINTER_TYPE_UNKNOWN };
	struct sim_alloc a;
	uint32_t size;
	bool found;

	if (!ptr || !info)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	found = sim_find(ptr, &a);
	if (found) {
		r.type = (hsa_amd_pointer_type_t)types[a.kind];
		r.agentBaseAddress = (void *)a.r.base;
		r.hostBaseAddress = a.alias ? a.alias : (void *)a.r.base;
		r.sizeInBytes = a.kind == SIM_LOCKED ? a.size : a.r.size;
		r.userData = a.userdata;
		r.agentOwner = sim_device_agent(a.kind == SIM_DEVICE || a.kind == SIM_IMPORT || a.kind == SIM_MAPPED ? a.device : -1);
		r.global_flags = a.kind == SIM_DEVICE && !a.flags ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED :
			HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
	} else if (sim_vmm_reserved(ptr)) {
		r.type = (hsa_amd_pointer_type_t)5;
	}
	size = info->size < sizeof r && info->size ? info->size : (uint32_t)sizeof r;
	memcpy(info, &r, size);
	info->size = size;
	if (n && accessible && alloc) {
		int count = 0;
		hsa_agent_t *list = alloc((size_t)(sim_opt.devices + 1) * sizeof *list);

		if (!list)
			return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
		for (int i = 0; found && i < sim_opt.devices; i++)
			if (a.access & 1u << i)
				list[count++] = sim_device_agent(i);
		*n = (uint32_t)count;
		*accessible = list;
	}
	return HSA_STATUS_SUCCESS;
}

static void set_userdata(struct sim_alloc *a, void *arg)
{
	a->userdata = arg;
}

hsa_status_t i_hsa_amd_pointer_info_set_userdata(const void *ptr, void *userdata)
{
	if (!ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return sim_update(ptr, set_userdata, userdata) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

int sim_pool_device(hsa_amd_memory_pool_t pool)
{
	int dev, kind;

	return pool_split(pool, &dev, &kind) ? dev : -2;
}

uint64_t sim_pool_handle(int device, bool fine)
{
	return pool_of(device, fine ? P_FINE : P_COARSE).handle;
}

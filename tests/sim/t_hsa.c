/* SPDX-License-Identifier: MIT */
/* HSA memory and signals, and how HIP treats memory that HSA allocated. */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "test.h"

static hsa_agent_t gpu;
static hsa_amd_memory_pool_t pool;

static hsa_status_t on_agent(hsa_agent_t a, void *data)
{
	hsa_device_type_t type;

	OK(hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type));
	if (type == HSA_DEVICE_TYPE_GPU && !gpu.handle)
		gpu = a;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t on_pool(hsa_amd_memory_pool_t p, void *data)
{
	hsa_amd_segment_t seg;
	uint32_t flags;

	OK(hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &seg));
	if (seg != HSA_AMD_SEGMENT_GLOBAL)
		return HSA_STATUS_SUCCESS;
	OK(hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
	if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
		pool = p;
	return HSA_STATUS_SUCCESS;
}

int main(void)
{
	hsa_amd_pointer_info_t info = {.size = sizeof info};
	hsa_amd_ipc_memory_t ipc;
	hipPointerAttribute_t attr;
	hipIpcMemHandle_t h;
	hipDeviceptr_t base;
	hipStream_t s;
	hsa_signal_t sig;
	char *p, *q, back[64], name[64];
	size_t size, f0, f1, t;
	void *mark;

	OK(hsa_init());
	OK(hsa_iterate_agents(on_agent, NULL));
	CHECK(gpu.handle);
	OK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_NAME, name));
	CHECK(!strcmp(name, "gfx942"));
	OK(hsa_amd_agent_iterate_memory_pools(gpu, on_pool, NULL));
	OK(hipMemGetInfo(&f0, &t));
	OK(hsa_amd_memory_pool_allocate(pool, 8 << 20, 0, (void **)&p));
	OK(hipMemGetInfo(&f1, &t));
	CHECK(f0 - f1 == 8 << 20);
	OK(hsa_amd_agents_allow_access(1, &gpu, NULL, p));
	OK(hsa_amd_pointer_info_set_userdata(p, name));
	OK(hsa_amd_pointer_info(p + 100, &info, NULL, NULL, NULL));
	CHECK(info.type == HSA_EXT_POINTER_TYPE_HSA && info.agentBaseAddress == p &&
	      info.sizeInBytes == 8 << 20 && info.userData == name);
	int local;
	OK(hsa_amd_pointer_info(&local, &info, NULL, NULL, NULL));
	CHECK(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN);

	/* HIP can use it, but knows neither its device nor its bounds. */
	OK(hipMemset(p + 4096, 6, 4096));
	CHECK(p[4096] == 6); /* hipMemset waits: not HIP's own memory */
	OK(hipMemcpy(back, p + 4096, 64, hipMemcpyDeviceToHost));
	CHECK(back[63] == 6);
	OK(hipPointerGetAttributes(&attr, p + 1));
	CHECK(attr.device == 0);
	OK(hipMemGetAddressRange(&base, &size, p));
	CHECK(base == (void *)0x100 && size == SIZE_MAX);
	EXPECT(hipIpcGetMemHandle(&h, p), hipErrorInvalidValue);
	OK(hipFree(p + 4096));
	OK(hipFree(p));
	CHECK(p[4096] == 6);

	/* An IPC handle is made only for an exact base and size. */
	EXPECT(hsa_amd_ipc_memory_create(p + 4096, 4096, &ipc), HSA_STATUS_ERROR_INVALID_ARGUMENT);
	EXPECT(hsa_amd_ipc_memory_create(p, 4096, &ipc), HSA_STATUS_ERROR_INVALID_ARGUMENT);
	OK(hsa_amd_ipc_memory_create(p, 8 << 20, &ipc));

	/* A free by HSA does not wait for a stream. */
	OK(hipStreamCreate(&s));
	OK(hipMalloc((void **)&q, 4096));
	stall(s);
	OK(hipMemsetAsync(q, 1, 1, s));
	OK(hsa_amd_memory_pool_free(p));
	EXPECT(hsa_amd_memory_pool_free(p), HSA_STATUS_ERROR_INVALID_ALLOCATION);
	EXPECT(hipStreamQuery(s), hipErrorNotReady);
	release(s);

	/* The value of a signal is 8 bytes behind the handle, and streams can write it. */
	OK(hsa_signal_create(3, 0, NULL, &sig));
	volatile hsa_signal_value_t *v;
	OK(hsa_amd_signal_value_pointer(sig, &v));
	CHECK((uintptr_t)v == sig.handle + 8 && *v == 3);
	OK(hipStreamWriteValue64(s, (void *)(uintptr_t)v, 9, 0));
	CHECK(hsa_signal_wait_scacquire(sig, HSA_SIGNAL_CONDITION_EQ, 9, UINT64_MAX,
					HSA_WAIT_STATE_BLOCKED) == 9);
	hsa_signal_subtract_screlease(sig, 8);
	CHECK(hsa_signal_load_relaxed(sig) == 1);
	OK(hsa_amd_memory_async_copy(q + 64, gpu, q, gpu, 64, 0, NULL, sig));
	CHECK(hsa_signal_wait_acquire(sig, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
				      HSA_WAIT_STATE_ACTIVE) == 0);
	CHECK(hsa_signal_wait_relaxed(sig, HSA_SIGNAL_CONDITION_GTE, 5, 1000000,
				      HSA_WAIT_STATE_ACTIVE) == 0);
	CHECK(q[64] == 1);
	OK(hsa_signal_destroy(sig));

	OK(hsa_amd_memory_lock(back, sizeof back, NULL, 0, &mark));
	CHECK(mark == back);
	OK(hsa_amd_memory_unlock(back));
	OK(hipFree(q));
	OK(hsa_shut_down());
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The driver's calls of the runtime: the functions that the driver uses, and the scope of a
 * call. */
#ifndef SS_ROCM_CALLS_H
#define SS_ROCM_CALLS_H

#include <hip/hip_runtime_api.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "driver/rocm/rocm.h"

/* Every HIP function that the driver calls. All exist since 5.2.3. */
#define SS_HIP_FUNCTIONS(X) \
	X(hipDeviceCanAccessPeer) \
	X(hipDeviceEnablePeerAccess) \
	X(hipDeviceGetAttribute) \
	X(hipDeviceGetName) \
	X(hipDeviceGetPCIBusId) \
	X(hipDeviceTotalMem) \
	X(hipEventCreateWithFlags) \
	X(hipEventDestroy) \
	X(hipEventQuery) \
	X(hipEventRecord) \
	X(hipExtMallocWithFlags) \
	X(hipFree) \
	X(hipGetDevice) \
	X(hipGetDeviceCount) \
	X(hipGetLastError) \
	X(hipHostMalloc) \
	X(hipMemAddressFree) \
	X(hipMemAddressReserve) \
	X(hipMemCreate) \
	X(hipMemGetAllocationGranularity) \
	X(hipMemGetInfo) \
	X(hipMemMap) \
	X(hipMemRelease) \
	X(hipMemSetAccess) \
	X(hipMemUnmap) \
	X(hipMemcpyAsync) \
	X(hipPeekAtLastError) \
	X(hipSetDevice) \
	X(hipStreamCreateWithFlags) \
	X(hipStreamDestroy) \
	X(hipStreamQuery) \
	X(hipStreamSynchronize) \
	X(hipStreamWaitEvent) \
	X(hipStreamWriteValue64) \
	X(hipThreadExchangeStreamCaptureMode)

#define SS_HSA_FUNCTIONS(X) \
	X(hsa_agent_get_info) \
	X(hsa_amd_agent_iterate_memory_pools) \
	X(hsa_amd_agents_allow_access) \
	X(hsa_amd_memory_pool_allocate) \
	X(hsa_amd_memory_pool_free) \
	X(hsa_amd_memory_pool_get_info) \
	X(hsa_amd_signal_create) \
	X(hsa_amd_signal_value_pointer) \
	X(hsa_iterate_agents) \
	X(hsa_signal_destroy) \
	X(hsa_signal_load_scacquire)

struct ss_rocm {
	enum ss_fence_kind fence;        /* never SS_FENCE_AUTO */
	char pci[SS_MAX_DEVICES][16];    /* addresses; "": the runtime reports none */
	unsigned quirks[SS_MAX_DEVICES]; /* flags of enum ss_quirk_flag */
	struct {
		hsa_agent_t agent;
		hsa_amd_memory_pool_t pool;
		bool known, has_pool;
		char arch[64];
	} hsa[SS_MAX_DEVICES];
	struct { /* NULL: the runtime lacks the function */
#define X(name) __typeof__(name) *name;
		SS_HIP_FUNCTIONS(X)
		SS_HSA_FUNCTIONS(X)
#undef X
	} f;
};

/* Written once by ss_rocm_start(), before the core exists. */
extern struct ss_rocm ss_rocm __attribute__((visibility("hidden")));

/* Calls a HIP function so that the application's last error stays as it was. */
#define SS_HIP(name, ...) __extension__({ \
	int ss_earlier = ss_rocm_error_earlier(); \
	hipError_t ss_err = ss_rocm.f.name ? ss_rocm.f.name(__VA_ARGS__) \
					   : hipErrorNotSupported; \
	ss_err == hipSuccess ? ss_err : ss_rocm_error_restore(ss_earlier, ss_err); })

/* While a scope is open, `dev` is the current device of the thread, and calls into HIP pass
 * the shim unseen. */
struct ss_scope {
	int old;
	bool switched;
};
/* False if the device cannot be made current; the scope is then not open. */
bool ss_scope_open(struct ss_scope *s, int dev);
void ss_scope_close(struct ss_scope *s);

/* The core's status for an error of HIP. */
enum ss_status ss_rocm_status(hipError_t err);

#endif

/* SPDX-License-Identifier: MIT */
/* driver.h on a real ROCm: what the shim starts and the driver's files share. */
#ifndef SS_DRIVER_ROCM_H
#define SS_DRIVER_ROCM_H

#include <hip/hip_runtime_api.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "core/driver.h"
#include "core/options.h"
#include "driver/rocm/guard.h"
#include "driver/rocm/quirks.h"
#include "driver/rocm/resolve.h"

/* ---- for the shim ------------------------------------------------------- */

/* Resolves everything and asks how many devices there are (which starts the
 * runtime). Any thread, any number of times; the result is the same. 0: none. */
int ss_rocm_start(const struct ss_options *opt);
struct ss_driver ss_rocm_driver(void);
/* `dev`'s memory is mapped for the devices in `peers` by the runtime itself. */
void ss_rocm_add_peers(int dev, uint64_t peers);
/* Before the real hipDeviceReset: events of the device are about to vanish. */
void ss_rocm_device_reset(int dev);
/* Before the real hipStreamDestroy: the handle may come back as another. */
void ss_rocm_stream_gone(void *native);
enum ss_fence_kind ss_rocm_fence_kind(void);
const char *ss_rocm_arch(int dev);
/* What a self-test found; tells ss_rocm_best(). */
void ss_rocm_tried(int dev, enum ss_backing backing, bool passed);
/* Can the device be had with that backing at all? If not, *why in a few words. */
bool ss_rocm_usable(int dev, enum ss_backing backing, const char **why);
/* The best backing of stream-ordered pools as far as there is evidence, which
 * SOMASHIM_BACKING=auto takes; *why in a few words. */
enum ss_backing ss_rocm_best(int dev, const char **why);

/* ---- shared by the driver's files --------------------------------------- */

/* Every HIP function that the driver calls; all are in 5.2.3 already. */
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
	int devices;
	int fence; /* enum ss_fence_kind, resolved */
	unsigned quirks[SS_MAX_DEVICES];
	struct {
		hsa_agent_t agent;
		hsa_amd_memory_pool_t pool;
		bool known, has_pool;
		char arch[64];
	} hsa[SS_MAX_DEVICES];
	struct {
#define X(name) __typeof__(name) *name;
		SS_HIP_FUNCTIONS(X)
		SS_HSA_FUNCTIONS(X)
#undef X
	} f;
};

/* Written once, before the core exists; the peers change. */
extern struct ss_rocm ss_rocm __attribute__((visibility("hidden")));
extern _Atomic uint64_t ss_rocm_peers[SS_MAX_DEVICES];

/* A call that the application did not ask for must leave the application's last
 * error as it would be without it. Up to 6.x every call overwrites it, so an
 * error of ours must only be taken back; from 7.0 on errors stay until they are
 * read, so the earlier one is put aside in ss_tls.error (hip_internal.hpp). */
int ss_rocm_peek(void);
hipError_t ss_rocm_settle(int earlier, hipError_t err);
#define SS_HIP(name, ...) __extension__({ \
	int ss_earlier = ss_rocm_peek(); \
	hipError_t ss_err = ss_rocm.f.name ? ss_rocm.f.name(__VA_ARGS__) \
					   : hipErrorNotSupported; \
	ss_err == hipSuccess ? ss_err : ss_rocm_settle(ss_earlier, ss_err); })

/* Inside a scope the device is current and no call of ours is seen as the
 * application's. */
struct ss_scope {
	int old;
	bool switched;
};
bool ss_scope_open(struct ss_scope *s, int dev);
void ss_scope_close(struct ss_scope *s);
enum ss_status ss_rocm_status(hipError_t err);

/* hsa.c */
void ss_rocm_hsa_start(struct ss_rocm *r);
bool ss_rocm_hsa_ready(int dev);
enum ss_status ss_rocm_hsa_alloc(int dev, size_t size, uint64_t peers, void **ptr);
enum ss_status ss_rocm_hsa_free(void *ptr);
enum ss_status ss_rocm_hsa_access(int dev, void *ptr, uint64_t peers);

/* hip.c */
enum ss_status ss_rocm_segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
				    uint64_t peers, void **ptr);
enum ss_status ss_rocm_segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				   size_t size);
enum ss_status ss_rocm_segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
				     size_t size, uint64_t peers);

/* backing.c */
enum ss_verdict { SS_UNTRIED, SS_PASSED, SS_FAILED };

/* vmm.c */
/* The smallest chunk in bytes: a power of two, or a multiple of 2 MiB; 0: none that we could use.
 * In the scope of dev. */
#define SS_LEAST_CHUNK (256ull << 10)
uint64_t ss_rocm_vmm_least(int dev);
enum ss_status ss_rocm_vmm_reserve(void *ctx, int dev, size_t size, void **va);
enum ss_status ss_rocm_vmm_unreserve(void *ctx, int dev, void *va, size_t size);
enum ss_status ss_rocm_vmm_create(void *ctx, int dev, size_t size, void **chunk);
enum ss_status ss_rocm_vmm_release(void *ctx, int dev, void *chunk, size_t size);
enum ss_status ss_rocm_vmm_map(void *ctx, int dev, void *va, size_t size, void *chunk);
enum ss_status ss_rocm_vmm_unmap(void *ctx, int dev, void *va, size_t size);
enum ss_status ss_rocm_vmm_access(void *ctx, int dev, void *va, size_t size, uint64_t peers);

/* settle.c */
enum ss_status ss_rocm_vmm_settle(void *ctx, int dev, void *va, size_t size);
/* Does no trial run in [va, va + size) any more? In the scope of the device. */
bool ss_rocm_settle_ended(int dev, void *va, size_t size);
void ss_rocm_settle_reset(int dev);

/* limits.c: after a call that failed. Was a soft limit in the way, and is it raised
 * now? Is a limit in the way still? */
bool ss_limit_raised(void);
bool ss_limit_hit(void);
bool ss_rocm_limit(void *ctx, char *out, size_t size);

/* fence.c */
enum ss_status ss_rocm_fence_record(void *ctx, int dev, void *native, struct ss_fence *out);
enum ss_status ss_rocm_stream_idle(void *ctx, int dev, void *native);
enum ss_status ss_rocm_fence_query(void *ctx, const struct ss_fence *fence);
enum ss_status ss_rocm_fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence);
void ss_rocm_fence_release(void *ctx, struct ss_fence *fence);
void ss_rocm_fence_reset(int dev);
void ss_rocm_fence_forget(void *native);

#endif

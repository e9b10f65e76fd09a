/* SPDX-License-Identifier: MIT */
/*
 * Devices, contexts, peers, versions, reset.
 *
 * Locks: peer_lock (peer table).
 */
#include <stdlib.h>
#include <string.h>

#include "hip.h"

static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;
static bool peers[SIM_MAX_DEVICES][SIM_MAX_DEVICES];  /* [owner][who may touch] */
static _Atomic unsigned device_flags[SIM_MAX_DEVICES];

/* Contexts are names of devices; 0 is "none". */
#define CTX(d) ((hipCtx_t)(uintptr_t)(0x1000 + (d)))
#define CTX_DEVICE(c) ((int)((uintptr_t)(c) - 0x1000))
static __thread hipCtx_t ctx_stack[16];
static __thread int ctx_depth;

hipError_t check_device(int d)
{
	return d < 0 || d >= sim_opt.devices ? hipErrorInvalidDevice : hipSuccess;
}

hipError_t i_hipInit(unsigned flags)
{
	if (flags)
		return hipErrorInvalidValue;
	return sim_memory_init() ? hipSuccess : hipErrorOutOfMemory;
}

static int version(void)
{
	return V7 ? 70253211 : V6 ? 60443484 : V57 ? 50731921 : 50221153;
}

hipError_t i_hipRuntimeGetVersion(int *v)
{
	if (!v)
		return hipErrorInvalidValue;
	*v = version();
	return hipSuccess;
}

hipError_t i_hipDriverGetVersion(int *v)
{
	return i_hipRuntimeGetVersion(v);
}

hipError_t i_hipGetDeviceCount(int *n)
{
	if (!n)
		return hipErrorInvalidValue;
	*n = sim_opt.devices;
	return hipSuccess;
}

hipError_t i_hipGetDevice(int *d)
{
	if (!d)
		return hipErrorInvalidValue;
	*d = cur_device();
	return hipSuccess;
}

hipError_t i_hipSetDevice(int d)
{
	hipError_t e = check_device(d);

	if (!e)
		sim_self()->device = d;
	return e;
}

hipError_t i_hipSetValidDevices(int *list, int n)
{
	return hipSuccess;
}

hipError_t i_hipDeviceGet(hipDevice_t *d, int ordinal)
{
	if (!d)
		return hipErrorInvalidValue;
	if (check_device(ordinal))
		return hipErrorInvalidDevice;
	*d = ordinal;
	return hipSuccess;
}

hipError_t i_hipDeviceGetName(char *name, int len, hipDevice_t d)
{
	if (!name || len <= 0)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	snprintf(name, (size_t)len, "somasim software device");
	return hipSuccess;
}

hipError_t i_hipDeviceGetUuid(hipUUID *u, hipDevice_t d)
{
	if (!u)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	memset(u, 0, sizeof *u);
	memcpy(u, "somasim", 7);
	((char *)u)[15] = (char)d;
	return hipSuccess;
}

hipError_t i_hipDeviceComputeCapability(int *major, int *minor, hipDevice_t d)
{
	if (!major || !minor)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	*major = 9;
	*minor = 4;
	return hipSuccess;
}

hipError_t i_hipDeviceTotalMem(size_t *n, hipDevice_t d)
{
	if (!n)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	*n = sim_opt.vram;
	return hipSuccess;
}

hipError_t i_hipDeviceGetPCIBusId(char *id, int len, int d)
{
	if (!id || len <= 0)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	snprintf(id, (size_t)len, "0000:%02x:00.0", d + 1);
	return hipSuccess;
}

hipError_t i_hipDeviceGetByPCIBusId(int *d, const char *id)
{
	unsigned domain, bus;

	if (!d || !id || sscanf(id, "%x:%x", &domain, &bus) != 2)
		return hipErrorInvalidValue;
	if (domain || bus < 1 || (int)bus > sim_opt.devices)
		return hipErrorInvalidValue;
	*d = (int)bus - 1;
	return hipSuccess;
}

hipError_t i_hipDeviceSynchronize(void)
{
	hipError_t e = guard_device_sync();

	if (e)
		return e;
	device_drain(cur_device());
	pools_release(cur_device());
	return hipSuccess;
}

/* Everything of the device goes: pools, streams, allocations. */
hipError_t i_hipDeviceReset(void)
{
	int d = cur_device();
	uintptr_t at = 0;
	struct sim_alloc a;

	pools_reset(d);
	streams_reset(d);
	device_drop_queues(d);
	while (sim_map_each(&at, &a)) {
		if (!a.hip || a.device != d || (a.kind != SIM_DEVICE && a.kind != SIM_HOST && a.kind != SIM_MANAGED))
			continue;
		if (a.kind == SIM_DEVICE)
			hip_device_release((void *)a.r.base);
		else
			sim_free((void *)a.r.base, false);
	}
	pthread_mutex_lock(&peer_lock);
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		peers[d][i] = peers[i][d] = false;
	pthread_mutex_unlock(&peer_lock);
	return hipSuccess;
}

/* ---- peers ---- */

int peer_mask(int device)
{
	int m = 0;

	for (int i = 0; i < sim_opt.devices; i++)
		if (__atomic_load_n(&peers[device][i], __ATOMIC_RELAXED))
			m |= 1 << i;
	return m;
}

static void allow(struct sim_alloc *a, void *arg)
{
	a->access |= *(uint32_t *)arg;
}

hipError_t i_hipDeviceCanAccessPeer(int *can, int d, int peer)
{
	if (!can)
		return hipErrorInvalidValue;
	if (check_device(d) || check_device(peer))
		return hipErrorInvalidDevice;
	*can = d != peer;
	return hipSuccess;
}

hipError_t i_hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	int d = cur_device();
	uint32_t bit = 1u << d;
	uintptr_t at = 0;
	struct sim_alloc a;
	bool had;

	if (flags)
		return hipErrorInvalidValue;
	if (check_device(peer) || peer == d)
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&peer_lock);
	had = peers[peer][d];
	__atomic_store_n(&peers[peer][d], true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&peer_lock);
	if (had)
		return hipErrorPeerAccessAlreadyEnabled;
	/* What HIP allocated on the peer; raw HSA memory is not reached. */
	while (sim_map_each(&at, &a))
		if (a.kind == SIM_DEVICE && a.hip && a.device == peer)
			sim_update((void *)a.r.base, allow, &bit);
	return hipSuccess;
}

hipError_t i_hipDeviceDisablePeerAccess(int peer)
{
	int d = cur_device();
	bool had;

	if (check_device(peer) || peer == d)
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&peer_lock);
	had = peers[peer][d];
	__atomic_store_n(&peers[peer][d], false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&peer_lock);
	return had ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

hipError_t i_hipDeviceGetP2PAttribute(int *v, hipDeviceP2PAttr attr, int a, int b)
{
	if (!v || a == b)
		return hipErrorInvalidValue;
	if (check_device(a) || check_device(b))
		return hipErrorInvalidDevice;
	*v = attr != hipDevP2PAttrHipArrayAccessSupported;
	return hipSuccess;
}

hipError_t i_hipExtGetLinkTypeAndHopCount(int a, int b, uint32_t *type, uint32_t *hops)
{
	if (!type || !hops)
		return hipErrorInvalidValue;
	if (check_device(a) || check_device(b) || a == b)
		return hipErrorInvalidDevice;
	*type = 4;                            /* XGMI */
	*hops = 1;
	return hipSuccess;
}

/* ---- flags, limits, caches: accepted and remembered ---- */

hipError_t i_hipSetDeviceFlags(unsigned flags)
{
	if (flags & ~(unsigned)(hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax))
		return hipErrorInvalidValue;
	device_flags[cur_device()] = flags;
	return hipSuccess;
}

hipError_t i_hipGetDeviceFlags(unsigned *flags)
{
	if (!flags)
		return hipErrorInvalidValue;
	*flags = device_flags[cur_device()];
	return hipSuccess;
}

hipError_t i_hipDeviceGetLimit(size_t *v, enum hipLimit_t limit)
{
	if (!v)
		return hipErrorInvalidValue;
	if (limit != hipLimitMallocHeapSize && limit != hipLimitPrintfFifoSize)
		return hipErrorUnsupportedLimit;
	*v = limit == hipLimitMallocHeapSize ? 8u << 20 : 1u << 20;
	return hipSuccess;
}

/* Kernels here have no heap. */
hipError_t i_hipDeviceSetLimit(enum hipLimit_t limit, size_t v)
{
	return limit == hipLimitMallocHeapSize || limit == hipLimitPrintfFifoSize ?
	       hipSuccess : hipErrorUnsupportedLimit;
}

hipError_t i_hipDeviceSetCacheConfig(hipFuncCache_t c) { return hipSuccess; }
hipError_t i_hipDeviceSetSharedMemConfig(hipSharedMemConfig c) { return hipSuccess; }
hipError_t i_hipCtxSetCacheConfig(hipFuncCache_t c) { return hipSuccess; }
hipError_t i_hipCtxSetSharedMemConfig(hipSharedMemConfig c) { return hipSuccess; }

hipError_t i_hipDeviceGetCacheConfig(hipFuncCache_t *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = hipFuncCachePreferNone;
	return hipSuccess;
}

hipError_t i_hipDeviceGetSharedMemConfig(hipSharedMemConfig *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = hipSharedMemBankSizeFourByte;
	return hipSuccess;
}

hipError_t i_hipCtxGetCacheConfig(hipFuncCache_t *c) { return i_hipDeviceGetCacheConfig(c); }
hipError_t i_hipCtxGetSharedMemConfig(hipSharedMemConfig *c) { return i_hipDeviceGetSharedMemConfig(c); }

/* ---- contexts ---- */

hipError_t i_hipCtxCreate(hipCtx_t *c, unsigned flags, hipDevice_t d)
{
	if (!c)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	*c = CTX(d);
	return i_hipCtxPushCurrent(*c);
}

hipError_t i_hipCtxDestroy(hipCtx_t c)
{
	if (!c || check_device(CTX_DEVICE(c)))
		return hipErrorInvalidValue;
	if (ctx_depth && ctx_stack[ctx_depth - 1] == c)
		ctx_depth--;
	return hipSuccess;
}

hipError_t i_hipCtxPushCurrent(hipCtx_t c)
{
	if (!c || check_device(CTX_DEVICE(c)))
		return hipErrorInvalidContext;
	if (ctx_depth < 16)
		ctx_stack[ctx_depth++] = c;
	sim_self()->device = CTX_DEVICE(c);
	return hipSuccess;
}

hipError_t i_hipCtxPopCurrent(hipCtx_t *c)
{
	if (!ctx_depth)
		return hipErrorInvalidContext;
	ctx_depth--;
	if (c)
		*c = ctx_stack[ctx_depth];
	if (ctx_depth)
		sim_self()->device = CTX_DEVICE(ctx_stack[ctx_depth - 1]);
	return hipSuccess;
}

hipError_t i_hipCtxSetCurrent(hipCtx_t c)
{
	if (!c) {
		if (ctx_depth)
			ctx_depth--;
		return hipSuccess;
	}
	if (check_device(CTX_DEVICE(c)))
		return hipErrorInvalidContext;
	if (ctx_depth)
		ctx_stack[ctx_depth - 1] = c;
	else
		ctx_stack[ctx_depth++] = c;
	sim_self()->device = CTX_DEVICE(c);
	return hipSuccess;
}

hipError_t i_hipCtxGetCurrent(hipCtx_t *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = CTX(cur_device());
	return hipSuccess;
}

hipError_t i_hipCtxGetDevice(hipDevice_t *d)
{
	if (!d)
		return hipErrorInvalidValue;
	*d = cur_device();
	return hipSuccess;
}

hipError_t i_hipCtxGetApiVersion(hipCtx_t c, int *v)
{
	if (!v)
		return hipErrorInvalidValue;
	*v = 4;
	return hipSuccess;
}

hipError_t i_hipCtxGetFlags(unsigned *flags) { return i_hipGetDeviceFlags(flags); }
hipError_t i_hipCtxSynchronize(void) { return i_hipDeviceSynchronize(); }

hipError_t i_hipCtxEnablePeerAccess(hipCtx_t c, unsigned flags)
{
	return i_hipDeviceEnablePeerAccess(CTX_DEVICE(c), flags);
}

hipError_t i_hipCtxDisablePeerAccess(hipCtx_t c)
{
	return i_hipDeviceDisablePeerAccess(CTX_DEVICE(c));
}

hipError_t i_hipDevicePrimaryCtxGetState(hipDevice_t d, unsigned *flags, int *active)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (flags)
		*flags = device_flags[d];
	if (active)
		*active = d == cur_device();
	return hipSuccess;
}

hipError_t i_hipDevicePrimaryCtxRetain(hipCtx_t *c, hipDevice_t d)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (!c)
		return hipErrorInvalidValue;
	*c = CTX(d);
	return hipSuccess;
}

hipError_t i_hipDevicePrimaryCtxRelease(hipDevice_t d) { return check_device(d); }

hipError_t i_hipDevicePrimaryCtxReset(hipDevice_t d)
{
	int was = cur_device();
	hipError_t e = check_device(d);

	if (e)
		return e;
	sim_self()->device = d;
	e = i_hipDeviceReset();
	sim_self()->device = was;
	return e;
}

hipError_t i_hipDevicePrimaryCtxSetFlags(hipDevice_t d, unsigned flags)
{
	return check_device(d) ? hipErrorInvalidDevice : hipErrorContextAlreadyInUse;
}

hipError_t i_hipProfilerStart(void) { return hipSuccess; }
hipError_t i_hipProfilerStop(void) { return hipSuccess; }

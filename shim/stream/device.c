/* SPDX-License-Identifier: MIT */
/* Calls about a device as a whole: synchronize, reset, current device, peers. No lock. */
#include "driver/rocm/rocm.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/process/outside.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/decay_thread.h"
#include "shim/process/real.h"
#include "shim/process/submit_gate.h"
#include "shim/stream/capture.h"
#include "shim/stream/real_wait.h"
#include "shim/stream/sync_watch.h"
#include "trace/writer.h"

static struct ss_token device_begin(void)
{
	int dev = ss_current_device(NULL);

	if (dev >= 0)
		ss_sync_before_device(dev);
	return dev < 0 ? (struct ss_token){0} : ss_device_sync_begin(ss_core, dev);
}

static hipError_t call_of_none(void *real)
{
	hipError_t (*call)(void) = *(hipError_t(*const *)(void))real;

	return call ? call() : ss_real_missing();
}

#define RETURN_DEVICE_SYNC(name) do { \
	struct ss_token t_ = device_begin(); \
	uint64_t begin_ = ss_trace_wait_begin(); \
	hipError_t e_ = ss_real_wait(call_of_none, (void *)&ss_real.name, &t_, 1); \
	ss_trace_wait_end(begin_, SS_TRACE_WAIT_DEVICE, t_.dev, NULL); \
	if (unlikely(ss_checking) && e_ == hipSuccess) \
		ss_check_device_reached(t_.dev); \
	ss_sync_end(ss_core, &t_, e_ == hipSuccess, true); \
	ss_sync_after(true); \
	return ss_result(e_); \
} while (0)

hipError_t do_hipDeviceSynchronize(void)
{
	RETURN_DEVICE_SYNC(hipDeviceSynchronize);
}

hipError_t do_hipCtxSynchronize(void)
{
	RETURN_DEVICE_SYNC(hipCtxSynchronize);
}

/* Waits for these devices (a bit each). False: the wait for a device failed. */
static bool wait_for(uint64_t devices)
{
	bool idle = true;

	for (int dev = 0; dev < ss_device_count() && idle; dev++) {
		struct ss_device_switch s;

		if (!(devices >> dev & 1))
			continue;
		idle = ss_device_switch(&s, dev);
		if (!idle)
			break;
		idle = REAL(hipDeviceSynchronize) == hipSuccess;
		ss_device_restore(&s);
	}
	return idle;
}

/* The real call frees all memory and streams of the current device without waiting. A small block
 * of the runtime lies in a slab that stays mapped. Our blocks lie in segments that are unmapped,
 * and on the real 7.2.4 a pending memset faulted there. So this function waits.
 *
 * The real call does not know raw HSA memory, chunks and reservations as allocations, so the core
 * releases them here once no running work may use them. If the wait for that work fails, the memory
 * is lost.
 *
 * A process that sleeps wakes first, and does not fall asleep meanwhile. If the devices have no
 * room for that, nothing is reset. */
hipError_t do_hipDeviceReset(void)
{
	enum ss_gate gate = ss_gate_enter();
	hipError_t err;
	int dev;

	if (unlikely(gate < SS_GATE_OPEN))
		return ss_gate_error(gate);
	dev = ss_current_device(&err);
	ss_decay_thread_pause(); /* the reset frees the memory that the thread would release */
	if (dev >= 0) {
		ss_capture_drop_device(dev);
		ss_device_reset_begin(ss_core, dev, wait_for(ss_reset_waits_for(ss_core, dev)));
		ss_limit_reset(dev);
		ss_outside_reset(dev);
		ss_pool_native_reset(dev);
		ss_sync_before_reset(dev);
		ss_rocm_device_reset(dev);
	}
	err = REAL(hipDeviceReset);
	if (dev >= 0)
		ss_device_reset_end(ss_core, dev);
	if (unlikely(ss_checking))
		ss_check_reset();
	ss_decay_thread_resume();
	ss_gate_leave(gate);
	return ss_result(err);
}

/* ---- which device is current -------------------------------------------- */

hipError_t do_hipSetDevice(int dev)
{
	if (dev >= 0 && dev < ss_device_count() && dev < SS_MAX_DEVICES)
		ss_device_used(dev);
	return ss_result(REAL(hipSetDevice, dev));
}

/* A context is a device. */
#define CONTEXT(name, params, args) \
	hipError_t do_##name params \
	{ \
		hipError_t err = REAL(name, RAW args); \
		int dev = ss_current_device(NULL); \
		if (dev >= 0 && dev < SS_MAX_DEVICES) \
			ss_device_used(dev); \
		return ss_result(err); \
	}
#define RAW(...) __VA_ARGS__

CONTEXT(hipCtxCreate, (hipCtx_t * ctx, unsigned int flags, hipDevice_t dev_), (ctx, flags, dev_))
CONTEXT(hipCtxPopCurrent, (hipCtx_t * ctx), (ctx))
CONTEXT(hipCtxPushCurrent, (hipCtx_t ctx), (ctx))
CONTEXT(hipCtxSetCurrent, (hipCtx_t ctx), (ctx))

/* ---- peers --------------------------------------------------------------- */

/* The calling device may access all memory of `peer` from now on. Disabling the access only stops
 * future mappings (device.cpp), so hipDeviceDisablePeerAccess needs no handler. */
hipError_t do_hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	hipError_t err;
	int dev = ss_current_device(NULL);
	enum ss_status s;

	ss_observer_add(-1, SS_OBSERVER_PEER);
	err = REAL(hipDeviceEnablePeerAccess, peer, flags);

	if ((err != hipSuccess && err != hipErrorPeerAccessAlreadyEnabled) || dev < 0 || peer < 0 ||
	    peer >= SS_MAX_DEVICES)
		return ss_result(err);
	ss_rocm_add_peers(peer, 1ull << dev);
	s = ss_device_add_peers(ss_core, peer, 1ull << dev);
	return s == SS_OK ? ss_result(err) : ss_fail(ss_status_error(s));
}

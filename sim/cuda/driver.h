/* SPDX-License-Identifier: MIT */
/*
 * CUDA's driver: the table of its calls, its contexts, and HIP's numbers for its errors. The
 * library is loaded at the first call that needs a device. All functions are thread-safe.
 */
#ifndef SIM_CUDA_DRIVER_H
#define SIM_CUDA_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#include "cuda/driver_types.h"
#include "device/macros.h"

struct driver {
#define C(name, version, params) CUresult(*name) params;
#include "cuda/driver_calls.h"
#undef C
};
extern struct driver driver;

enum driver_call {
#define C(name, version, params) CALL_##name,
#include "cuda/driver_calls.h"
#undef C
	DRIVER_CALLS
};

extern bool driver_counts; /* SOMACUDA_STATS */
extern _Atomic uint64_t driver_calls[DRIVER_CALLS];

/* Calls the driver. CUDA_ERROR_NOT_SUPPORTED: this driver has no such call. */
#define CU(name, ...) \
	((unlikely(driver_counts) ? (void)atomic_fetch_add_explicit( \
					    &driver_calls[CALL_##name], 1, memory_order_relaxed) : \
				    (void)0), \
	 likely(driver.name) ? driver.name(__VA_ARGS__) : (CUresult)CUDA_ERROR_NOT_SUPPORTED)

/* Loads the driver and counts the devices, once. No context is made. */
hipError_t driver_start(void);

/* Makes the context of the thread's current device current in the driver. */
hipError_t context_enter_slow(void);

/* The primary context of a device, which is made at its first use. NULL: that failed. */
CUcontext context_of(int device);

/* Has fn called with each context that is made, while it is current. Only constructors call
 * this. */
void context_when_made(void (*fn)(int device));

/* The context to which a thread is bound. Each call compares it with the current device and
 * turn. */
struct context_binding {
	int device;    /* the device of that context, plus 1; 0: none */
	unsigned turn; /* of hipDeviceReset, at the binding */
};
extern __thread struct context_binding context_bound;
extern _Atomic unsigned context_turn;

/* The number of HIP for a result of CUDA. Both are the same if HIP has a number. */
hipError_t to_hip(CUresult r);

static inline CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static inline void *pointer(CUdeviceptr d)
{
	return (void *)(uintptr_t)d;
}

/* The end of an allocation: stores the address if the allocation succeeded. */
static inline hipError_t given(void **out, const CUdeviceptr *d, CUresult r)
{
	if (!r)
		*out = pointer(*d);
	return to_hip(r);
}

#endif

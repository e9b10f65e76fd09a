/* SPDX-License-Identifier: MIT */
/*
 * The driver on a real ROCm, as the shim sees it. All functions may be called from any
 * thread unless they say otherwise.
 */
#ifndef SS_DRIVER_ROCM_H
#define SS_DRIVER_ROCM_H

#include <hip/hip_runtime_api.h>

#include "core/driver.h"
#include "config/options.h"
#include "driver/rocm/guard.h"
#include "driver/rocm/quirks.h"
#include "driver/rocm/resolve.h"

/* Finds every function of the runtime and counts the devices, which starts the runtime.
 * May be called again and by several threads at once; the answer stays the same. Returns
 * the number of devices, 0 if there is none or no runtime. */
int ss_rocm_start(const struct ss_options *opt);
/* The number of devices. Written once by ss_rocm_start(). */
extern int ss_rocm_devices __attribute__((visibility("hidden")));
/* The operations of core/driver.h. Valid after ss_rocm_start(). */
struct ss_driver ss_rocm_driver(void);

/* The runtime has given the devices in `peers` (one bit each) access to the memory of `dev`,
 * as hipDeviceEnablePeerAccess does. */
void ss_rocm_add_peers(int dev, uint64_t peers);
/* The process uses that device: memory of any device that is mapped from now on is opened to it.
 * True: the device is new, so the caller must open existing mappings to it. */
bool ss_rocm_use_device(int dev);
/* Has the process used the device? A synchronization of one that was not used would begin to. */
bool ss_rocm_uses_device(int dev);
/* Call before the real hipDeviceReset, which destroys the events of the device. */
void ss_rocm_device_reset(int dev);
/* Call before the real hipStreamDestroy, since a new stream may get the same handle. */
void ss_rocm_stream_destroyed(void *native);

/* The kind of fences: an event or a signal, as chosen at the start. */
enum ss_fence_kind ss_rocm_fence_kind(void);
/* "gfx90a" and the like; NULL if unknown. The string is static. */
const char *ss_rocm_arch(int dev);
/* The PCI address of a device, as 0000:c1:00.0; "" if the runtime reports none. Static. */
const char *ss_rocm_pci(int dev);

/* Sets whether verdicts of earlier processes are trusted, and new ones stored. Call it before the
 * two calls below. */
void ss_rocm_remember(bool on);
/* Keeps the result of the self-test for ss_rocm_best(), and if `holds` stores it for later
 * processes. 0, or an errno: it could not be stored. */
int ss_rocm_selftest_result(int dev, enum ss_backing backing, bool passed, bool holds);
/* Would a self-test of vmm give a new result that can be stored? */
bool ss_rocm_untried(int dev);
/* Can the device have that backing at all? If not, *why gives the reason in a few words. */
bool ss_rocm_usable(int dev, enum ss_backing backing, const char **why);
/* Is a library loaded that reads device memory on the host, which fails on vmm? */
bool ss_rocm_host_loads_fail(int dev);
/* The best backing of stream-ordered pools for which there is evidence, which SOMASHIM_BACKING=auto
 * uses. *why gives the reason in a few words, or is NULL. */
enum ss_backing ss_rocm_best(int dev, const char **why);

/* A call that the application did not make must not change the application's hipGetLastError. Up to
 * 6.x every call overwrites the last error, so ours must be cleared. From 7.0 on an error stays
 * until it is read, so the driver first reads the earlier error and keeps it in ss_tls.error
 * (hip_internal.hpp). Take the earlier error before the call, and restore it if the call failed.
 * ss_rocm_error_restore() returns `err`. */
int ss_rocm_error_earlier(void);
hipError_t ss_rocm_error_restore(int earlier, hipError_t err);

#endif

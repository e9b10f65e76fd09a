/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes memory of other processes, from a handle (hipIpcOpenMemHandle) or into a pool
 * (hipMemPoolImportPointer). mappings.c has the table of open blocks. No lock.
 */
#include <string.h>
#include <unistd.h>

#include "driver/rocm/resolve.h"
#include "shim/alloc/device_wait.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/observers.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/exit.h"
#include "shim/process/real.h"
#include "shim/share/import.h"
#include "shim/share/mappings.h"
#include "shim/share/pool_pointer.h"
#include "shim/stream/sync_watch.h"

/* ---- what a close waits for --------------------------------------------- */

/* The real close waits for the device before it unmaps. Programs rely on this wait: they report to
 * their peer when the close returns. */
static hipError_t only_wait(int dev)
{
	struct ss_device_switch s;
	hipError_t err;

	if (ss_exiting() && !ss_exit_waits())
		return hipSuccess;
	if (ss_exiting() || ss_capture_live())
		return ss_wait_in_runtime(dev);
	if (!ss_device_switch(&s, dev))
		return hipSuccess;
	err = ss_wait_streams(dev);
	ss_device_restore(&s);
	return err != hipSuccess && ss_capture_live() ? ss_wait_in_runtime(dev) : err;
}

/* The real close waits for one device only (since 7.0 the one that opened the mapping
 * last), but the memory may be in use on others that opened it. */
static hipError_t wait_for(uint64_t devices)
{
	hipError_t err = hipSuccess, one;

	for (int dev = 0; dev < ss_device_count(); dev++) {
		if (!(devices >> dev & 1))
			continue;
		one = only_wait(dev);
		if (err == hipSuccess)
			err = one;
	}
	return err;
}

/* The real close waits for the null stream of the current device, which may be busy with
 * other work. So make dev current. */
static hipError_t close_on(int dev, void *base)
{
	struct ss_device_switch s;
	bool open = !ss_exiting() && ss_device_switch(&s, dev);
	hipError_t err = REAL(hipIpcCloseMemHandle, base);

	if (open)
		ss_device_restore(&s);
	return err;
}

/* Closes a mapping that has left our table; no thread may open it meanwhile. If the runtime refuses
 * and reports that it still has the mapping, then nothing was closed, and the program may try
 * again. */
static hipError_t close_released(const struct ss_mapping_close *d)
{
	hipError_t err = close_on(d->dev, d->close);
	hipDeviceptr_t start = NULL;
	size_t size = 0;

	if (err != hipSuccess && !ss_exiting() &&
	    REAL(hipMemGetAddressRange, &start, &size, d->base) == hipSuccess && start == d->base)
		ss_mapping_restore(d);
	return err;
}

/* ---- open --------------------------------------------------------------- */

/* Is the range that the runtime mapped as large as the handle says? */
static bool covers(void *base, uint64_t size)
{
	hipDeviceptr_t start = NULL;
	size_t real = 0;

	return REAL(hipMemGetAddressRange, &start, &real, base) != hipSuccess ||
	       (start == base && real >= size);
}

/* dev is current. */
static hipError_t map_once(const struct ss_handle *h, bool ours, enum ss_via via, int dev,
			   unsigned flags, void **ptr, void **base)
{
	void *close = NULL;
	hipIpcMemHandle_t real;
	hipError_t err;

	ss_import_watch();
	memcpy(&real, h->real, sizeof(real));
	/* The real hipMemPoolImportPointer does not check the owner's device. */
	if (via == SS_VIA_POOL)
		ss_handle_renumber(&real, (uint32_t)ss_device_count(), (uint32_t)dev);
	err = REAL(hipIpcOpenMemHandle, base, real, flags);
	if (err != hipSuccess)
		return err;
	if (h->serial && !covers(*base, h->segment_size)) {
		close = *base;
		err = hipErrorInvalidValue;
	} else {
		err = ss_mapping_add(h, ours, via, *base, dev, flags, ptr, &close);
	}
	if (close)
		(void)REAL(hipIpcCloseMemHandle, close);
	return err;
}

/* Memory that this process freed without a wait may still be mapped, while its owner has another
 * segment at the same address. Since 7.0 the runtime confuses the two segments. Then close the old
 * mapping. */
static hipError_t map(const struct ss_handle *h, bool ours, enum ss_via via, int dev,
		      unsigned flags, void **ptr)
{
	void *base = NULL;
	hipError_t err = map_once(h, ours, via, dev, flags, ptr, &base);
	struct ss_mapping_close old = {0};

	if (err == hipErrorInvalidValue && base)
		old = ss_mapping_replaced(h, base);
	if (!old.opens)
		return err;
	(void)wait_for(old.devices);
	while (old.opens--)
		(void)close_on(old.dev, old.close);
	return map_once(h, ours, via, dev, flags, ptr, &base);
}

hipError_t do_hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned int flags)
{
	enum ss_handle_kind kind;
	struct ss_handle h;
	hipError_t err;
	bool ours, any;
	int dev;

	ss_observer_add(-1, SS_OBSERVER_IPC);
	kind = ss_handle_parse(&handle, &h);
	dev = ss_current_device(&err);
	if (kind == SS_HANDLE_BAD)
		return ss_fail(hipErrorInvalidValue);
	if (!ptr || dev < 0)
		return ss_result(REAL(hipIpcOpenMemHandle, ptr, handle, flags));
	ours = kind == SS_HANDLE_OURS;
	/* hipIpcMemLazyEnablePeerAccess is 1 but was 0 at first, and 5.x accepts both. */
	any = ss_runtime()->major < 6 && flags <= 1;
	if (ours && h.pid == (uint32_t)getpid())
		return ss_fail(any || flags == 1 ? hipErrorInvalidContext : hipErrorInvalidValue);
	if (!ss_mapping_reopen(&h, ours, SS_VIA_HANDLE, dev, any ? -1 : (int)flags, ptr, &err))
		err = map(&h, ours, SS_VIA_HANDLE, dev, flags, ptr);
	return err == hipSuccess ? ss_result(err) : ss_fail(err);
}

hipError_t ss_import_pointer(const struct ss_handle *h, int dev, void **ptr)
{
	struct ss_device_switch s;
	hipError_t err;

	if (ss_mapping_reopen(h, true, SS_VIA_POOL, dev, -1, ptr, &err))
		return err;
	if (!ss_device_switch(&s, dev))
		return hipErrorInvalidDevice;
	err = map(h, true, SS_VIA_POOL, dev, 1, ptr);
	if (err == hipErrorInvalidValue && ss_runtime()->major < 6)
		err = map(h, true, SS_VIA_POOL, dev, 0, ptr);
	ss_device_restore(&s);
	return err;
}

/* ---- close -------------------------------------------------------------- */

/* The real close also waits for the null stream of the current device. */
static hipError_t wait_for_null(uint64_t devices_done)
{
	int dev = ss_current_device(NULL);
	struct ss_waiting waiting;
	hipError_t err;

	if (dev < 0 || devices_done >> dev & 1 || ss_exiting())
		return hipSuccess;
	if (ss_capture_live())
		return ss_wait_in_runtime(dev);
	waiting = ss_waiting_begin(ss_core, ss_timeline_null(ss_core, dev));
	err = REAL(hipStreamSynchronize, NULL);
	ss_waiting_end(ss_core, &waiting);
	return err;
}

hipError_t do_hipIpcCloseMemHandle(void *ptr)
{
	struct ss_mapping_close d = ss_mapping_release(ptr, SS_VIA_HANDLE, -1);
	hipError_t err, null;

	if (!d.known)
		return ss_result(REAL(hipIpcCloseMemHandle, ptr));
	if (!d.open)
		return ss_fail(hipErrorInvalidValue);
	err = wait_for(d.devices);
	null = wait_for_null(d.devices);
	if (d.close)
		err = close_released(&d);
	else if (err == hipSuccess)
		err = null;
	return ss_result(err);
}

/* For hipFree of imported memory. Like the real call it waits for the memory's devices, and not for
 * the current device's null stream. */
static hipError_t close_now(const struct ss_mapping_close *d)
{
	hipError_t err = wait_for(d->devices);

	return d->close ? close_released(d) : err;
}

bool ss_import_free(void *ptr, hipError_t *err)
{
	struct ss_mapping_close d = ss_mapping_release(ptr, SS_VIA_POOL, -1);

	if (d.open)
		*err = ss_result(close_now(&d));
	else if (d.shared)
		/* The real hipFree would unmap other open blocks of the segment as well. */
		*err = ss_fail(hipErrorInvalidValue);
	return d.open || d.shared;
}

/* hipFreeAsync does not wait. The mapping is closed when its devices are found idle. */
bool ss_import_free_async(void *ptr, int dev, hipError_t *err)
{
	struct ss_mapping_close d = ss_mapping_release(ptr, SS_VIA_POOL, dev);

	if (d.open)
		*err = ss_result(hipSuccess);
	else if (d.shared)
		*err = ss_fail(hipErrorInvalidValue);
	return d.open || d.shared;
}

static void close_idle(bool joins_null)
{
	uint64_t waits, asked, idle = 0;
	void *base;
	int dev;

	if (ss_capture_live() || ss_exiting())
		return;
	waits = ss_mappings_waiting(&asked);
	for (dev = 0; dev < ss_device_count(); dev++)
		if (waits >> dev & 1 && ss_device_record_and_ask(ss_core, dev, joins_null))
			idle |= 1ull << dev;
	while (idle && (base = ss_mapping_take_idle(idle, asked, &dev)))
		(void)close_on(dev, base);
}

/* Called before a call that waits for the device, because closing a mapping waits no longer than
 * that call. This closes mappings of devices on which a stream is always busy, so that no look
 * finds the device idle. Only one mapping per call is closed, because the next close would also
 * wait for work that was enqueued meanwhile. */
static void close_one(int dev)
{
	uint64_t asked;
	void *base;

	if (ss_capture_live() || ss_exiting())
		return;
	(void)ss_mappings_waiting(&asked);
	base = ss_mapping_take_idle(1ull << dev, asked, &dev);
	if (base)
		(void)close_on(dev, base);
}

static void before_reset(int dev)
{
	ss_import_reset(dev);
	ss_pool_pointer_reset(dev);
}

void ss_import_watch(void)
{
	static const struct ss_sync_watch watch = {close_one, close_idle, before_reset};

	ss_sync_watch_set(&watch);
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory of other processes, from a handle (hipIpcOpenMemHandle) or into a pool
 * (hipMemPoolImportPointer). The table of it is mappings.c. No lock.
 */
#include <string.h>
#include <unistd.h>

#include "shim/share/import.h"
#include "shim/share/mappings.h"

/* ---- what a close waits for --------------------------------------------- */

/* The real call waits for the device before it unmaps, and programs tell their
 * peer that they are done when it returns. */
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
	return err;
}

/* The runtime waits for one device when it closes, since 7.0 for that which opened the mapping
 * last, and nothing in it may be in use on any other. */
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

/* The real call begins with the null stream of whatever device is current, which may be at work
 * for long on something else. The mapping has left the table: should the runtime refuse, it
 * stays. */
static hipError_t close_on(int dev, void *base)
{
	struct ss_device_switch s;
	bool open = !ss_exiting() && ss_device_switch(&s, dev);
	hipError_t err = REAL(hipIpcCloseMemHandle, base);

	if (open)
		ss_device_restore(&s);
	return err;
}

/* ---- open --------------------------------------------------------------- */

/* Is what the runtime mapped as large as the handle says? */
static bool covers(void *base, uint64_t size)
{
	hipDeviceptr_t start = NULL;
	size_t real = 0;

	return REAL(hipMemGetAddressRange, &start, &real, base) != hipSuccess ||
	       (start == base && real >= size);
}

/* On the current device, which is `dev`. */
static hipError_t map_once(const struct ss_handle *h, bool ours, enum ss_via via, int dev,
			   unsigned flags, void **ptr, void **base)
{
	void *close = NULL;
	hipIpcMemHandle_t real;
	hipError_t err;

	memcpy(&real, h->real, sizeof(real));
	/* hipMemPoolImportPointer does not ask who the owner is. */
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

/* What was freed here without a wait may still be mapped where its segment's successor is to be
 * found over there; since 7.0 the runtime takes one for the other. */
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
	/* hipIpcMemLazyEnablePeerAccess, 1, was 0 at first, and either did. */
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

/* ---- close --------------------------------------------------------------- */

/* What the program's own call of it waits for, too. */
static hipError_t wait_for_null(uint64_t devices_done)
{
	hipError_t err;
	int dev = ss_current_device(&err);

	if (dev < 0 || devices_done >> dev & 1 || ss_exiting())
		return hipSuccess;
	return ss_capture_live() ? ss_wait_in_runtime(dev) : REAL(hipStreamSynchronize, NULL);
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
		err = close_on(d.dev, d.close);
	else if (err == hipSuccess)
		err = null;
	return ss_result(err);
}

/* As hipFree, which waits for the memory's device and no other. */
static hipError_t leave(const struct ss_mapping_close *d)
{
	hipError_t err = wait_for(d->devices);

	return d->close ? close_on(d->dev, d->close) : err;
}

bool ss_import_free(void *ptr, hipError_t *err)
{
	struct ss_mapping_close d = ss_mapping_release(ptr, SS_VIA_POOL, -1);

	if (d.open)
		*err = ss_result(leave(&d));
	else if (d.shared)
		/* The runtime would unmap all that others opened beside it. */
		*err = ss_fail(hipErrorInvalidValue);
	return d.open || d.shared;
}

/* Nothing waits here: the mapping goes when its device is seen idle. */
bool ss_import_free_async(void *ptr, int dev, hipError_t *err)
{
	struct ss_mapping_close d = ss_mapping_release(ptr, SS_VIA_POOL, dev);

	if (d.open)
		*err = ss_result(hipSuccess);
	else if (d.shared)
		*err = ss_fail(hipErrorInvalidValue);
	return d.open || d.shared;
}

void ss_import_settle_slow(bool joins_null)
{
	uint64_t waits, asked, idle = 0;
	void *base;
	int dev;

	if (ss_capture_live() || ss_exiting())
		return;
	waits = ss_mappings_waiting(&asked);
	for (dev = 0; dev < ss_device_count(); dev++)
		if (waits >> dev & 1 && ss_device_idle(ss_core, dev, joins_null))
			idle |= 1ull << dev;
	while (idle && (base = ss_mapping_take_idle(idle, asked, &dev)))
		(void)close_on(dev, base);
}

/* A device on which some stream is always at work is never seen idle. To close waits for no
 * more than the call in front of which it is done, but the next close would wait for what
 * was enqueued meanwhile, and that may be for the caller: so one at a time. */
void ss_import_close_one(int dev)
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

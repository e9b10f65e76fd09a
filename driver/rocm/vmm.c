/* SPDX-License-Identifier: MIT */
/* Virtual ranges and the chunks mapped into them. No locks, no state. */
#include "driver/rocm/rocm.h"

/* The layout since 5.3 (driver_types.h). 5.2's header, which this may be compiled
 * against, has another order; no VMM there. */
struct prop {
	int type, handle_type;
	struct { int type, id; } location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
};

#define UNIT (2ull << 20)
#define ACCESS_TRIES 8

static struct prop prop_of(int dev)
{
	return (struct prop){
		.type = hipMemAllocationTypePinned,
		.location = { hipMemLocationTypeDevice, dev },
	};
}

/* The runtimes ask for 4 KiB, or for 2 MiB (gfx1201). Page tables like 2 MiB, but where blocks are
 * smaller than that it is the memory between them that counts. */
uint64_t ss_rocm_vmm_least(int dev)
{
	struct prop prop = prop_of(dev);
	size_t least = 0;
	uint64_t size = SS_LEAST_CHUNK;

	if (SS_HIP(hipMemGetAllocationGranularity, &least, (const hipMemAllocationProp *)&prop,
		   hipMemAllocationGranularityMinimum) != hipSuccess || !least)
		return UNIT;
	while (size < least && size < UNIT)
		size *= 2;
	return size % least == 0 ? size : least % UNIT == 0 ? least : 0;
}

enum ss_status ss_rocm_vmm_reserve(void *ctx, int dev, size_t size, void **va)
{
	struct ss_scope s;
	void *p = NULL;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemAddressReserve, &p, size, UNIT, NULL, 0);
	ss_scope_close(&s);
	if (err != hipSuccess)
		return ss_rocm_status(err);
	*va = p;
	/* 5.7 says success and gives NULL. */
	return p ? SS_OK : SS_ERR_UNSUPPORTED;
}

enum ss_status ss_rocm_vmm_unreserve(void *ctx, int dev, void *va, size_t size)
{
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemAddressFree, va, size);
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

enum ss_status ss_rocm_vmm_create(void *ctx, int dev, size_t size, void **chunk)
{
	struct prop prop = prop_of(dev);
	hipMemGenericAllocationHandle_t h = 0;
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	do
		err = SS_HIP(hipMemCreate, &h, size, (const hipMemAllocationProp *)&prop, 0);
	while (err != hipSuccess && ss_limit_raised());
	ss_scope_close(&s);
	if (err == hipSuccess)
		*chunk = (void *)h;
	return err != hipSuccess && ss_limit_hit() ? SS_ERR_NOMEM : ss_rocm_status(err);
}

enum ss_status ss_rocm_vmm_release(void *ctx, int dev, void *chunk, size_t size)
{
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	(void)size;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemRelease, (hipMemGenericAllocationHandle_t)chunk);
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

enum ss_status ss_rocm_vmm_map(void *ctx, int dev, void *va, size_t size, void *chunk)
{
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	/* 6.4 runs it on the null stream, which joins a stream that captures. */
	if ((ss_rocm.quirks[dev] & SS_Q_MAP_WAITS) && atomic_load(&ss_captures_blocking))
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	do
		err = SS_HIP(hipMemMap, va, size, 0, (hipMemGenericAllocationHandle_t)chunk, 0);
	while (err != hipSuccess && ss_limit_raised());
	ss_scope_close(&s);
	return err != hipSuccess && ss_limit_hit() ? SS_ERR_NOMEM : ss_rocm_status(err);
}

enum ss_status ss_rocm_vmm_unmap(void *ctx, int dev, void *va, size_t size)
{
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (ss_capture_live())
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = ss_rocm_settle_ended(dev, va, size) ? SS_HIP(hipMemUnmap, va, size)
						  : hipErrorUnknown;
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

enum ss_status ss_rocm_vmm_access(void *ctx, int dev, void *va, size_t size, uint64_t peers)
{
	hipMemAccessDesc desc[SS_MAX_DEVICES];
	struct ss_scope s;
	hipError_t err;
	int tries = 0;
	size_t n = 0;

	(void)ctx;
	/* The owner last: a peer after it corrupts the mapping (xla#46576). */
	for (int i = 0; i <= ss_rocm.devices; i++) {
		int d = i == ss_rocm.devices ? dev : i;

		if ((d == dev) != (i == ss_rocm.devices) || (d != dev && !(peers >> d & 1)))
			continue;
		desc[n].location.type = hipMemLocationTypeDevice;
		desc[n].location.id = d;
		desc[n++].flags = hipMemAccessFlagsProtReadWrite;
	}
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	/* 7.1 refuses now and then what it takes the next time (rocm-systems#2667). */
	do
		err = SS_HIP(hipMemSetAccess, va, size, desc, n);
	while (err == hipErrorInvalidValue && ++tries < ACCESS_TRIES);
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

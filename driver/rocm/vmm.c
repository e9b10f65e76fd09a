/* SPDX-License-Identifier: MIT */
/* Reservations of virtual addresses, and the chunks mapped into them. No locks, no state. */
#include "driver/rocm/access_probe.h"
#include "driver/rocm/calls.h"
#include "driver/rocm/left_mapping.h"
#include "driver/rocm/map_turn.h"
#include "driver/rocm/mapping_check.h"
#include "driver/rocm/process_limits.h"
#include "driver/rocm/verdict.h"
#include "driver/rocm/vmm.h"

/* hipMemAllocationProp as it is since 5.3 (driver_types.h). The header of 5.2, which this may
 * be compiled with, has the fields in another order, and its runtime has no VMM. */
struct prop {
	int type, handle_type;
	struct {
		int type, id;
	} location;
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
		.location = {hipMemLocationTypeDevice, dev},
	};
}

/* Runtimes require a granularity of 4 KiB, or 2 MiB on gfx1201. Large chunks give large pages, but
 * small blocks would leave much of a large chunk unused. */
uint64_t ss_rocm_vmm_min_chunk(int dev)
{
	struct prop prop = prop_of(dev);
	size_t least = 0;
	uint64_t size = SS_MIN_CHUNK;

	if (SS_HIP(hipMemGetAllocationGranularity, &least, (const hipMemAllocationProp *)&prop,
		   hipMemAllocationGranularityMinimum) != hipSuccess ||
	    !least)
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
	/* 5.7 returns success and NULL. */
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
	while (err != hipSuccess && ss_process_limit_raised());
	ss_scope_close(&s);
	if (err == hipSuccess)
		*chunk = (void *)h;
	return err != hipSuccess && ss_process_limit_hit() ? SS_ERR_NOMEM : ss_rocm_status(err);
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

/* A device that refuses to map is no longer trusted with virtual memory. */
static enum ss_status result(int dev, hipError_t err)
{
	enum ss_status s = ss_rocm_status(err);

	if (s == SS_ERR_INVALID || s == SS_ERR_UNSUPPORTED || s == SS_ERR_FAILED)
		ss_rocm_verdict_distrust(dev);
	return s;
}

enum ss_status ss_rocm_vmm_map(void *ctx, int dev, void *va, size_t size, void *chunk)
{
	struct ss_scope s;
	uint64_t turn;
	hipError_t err;

	(void)ctx;
	/* 6.4 maps on the null stream, which would join a blocking stream that captures. */
	if ((ss_rocm.quirks[dev] & SS_Q_MAP_IN_CAPTURE) && atomic_load(&ss_captures_blocking))
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	turn = ss_rocm_map_turn_begin();
	do
		err = SS_HIP(hipMemMap, va, size, 0, (hipMemGenericAllocationHandle_t)chunk, 0);
	while (err != hipSuccess && ss_process_limit_raised());
	ss_rocm_map_turn_end(turn);
	ss_scope_close(&s);
	return err != hipSuccess && ss_process_limit_hit() ? SS_ERR_NOMEM : result(dev, err);
}

enum ss_status ss_rocm_vmm_unmap(void *ctx, int dev, void *va, size_t size)
{
	hipError_t err = hipErrorUnknown;
	struct ss_scope s;
	uint64_t turn;

	(void)ctx;
	if (ss_capture_live())
		return SS_ERR_CAPTURE;
	ss_rocm_access_trial_end(dev);
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	if (ss_rocm_mapping_check_ended(dev, va, size)) {
		turn = ss_rocm_map_turn_begin();
		err = SS_HIP(hipMemUnmap, va, size);
		ss_rocm_map_turn_end(turn);
		if (err == hipSuccess)
			ss_rocm_left_mapping_cover(dev, va, size);
	}
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

uint64_t ss_rocm_vmm_reach(int dev)
{
	static _Atomic uint64_t known[SS_MAX_DEVICES];
	uint64_t reach = atomic_load(&known[dev]);
	int can;

	if (reach)
		return reach;
	reach = 1ull << dev;
	for (int i = 0; i < ss_rocm_devices; i++)
		if (i != dev && SS_HIP(hipDeviceCanAccessPeer, &can, i, dev) == hipSuccess && can)
			reach |= 1ull << i;
	atomic_store(&known[dev], reach);
	return reach;
}

/* The first device is current in each thread without a call. */
static _Atomic uint64_t used = 1;

bool ss_rocm_use_device(int dev)
{
	uint64_t bit = 1ull << dev;

	return !(atomic_fetch_or(&used, bit) & bit);
}

bool ss_rocm_uses_device(int dev)
{
	return atomic_load(&used) >> dev & 1;
}

/* Newer headers call it hipMemLocationTypeHost. */
#define HOST ((hipMemLocationType)2)

/* The runtime accepted the access list only without the host */
static atomic_bool host_refused[SS_MAX_DEVICES];

static bool host_wanted(int dev)
{
	return !(ss_rocm.quirks[dev] & SS_Q_NO_HOST) && !atomic_load(&host_refused[dev]);
}

bool ss_rocm_vmm_host(int dev)
{
	if (host_wanted(dev))
		(void)ss_rocm_access_parts(dev);
	return host_wanted(dev);
}

/* Lists the devices that get access. The owner comes last: a peer after the owner corrupts the
 * mapping (xla#46576). */
static size_t describe(hipMemAccessDesc *desc, int dev, uint64_t devices, bool host)
{
	size_t n = 0;

	for (int i = 0; i < ss_rocm_devices; i++)
		if (i != dev && devices >> i & 1)
			desc[n++].location = (hipMemLocation){hipMemLocationTypeDevice, i};
	if (host)
		desc[n++].location = (hipMemLocation){HOST, 0};
	desc[n++].location = (hipMemLocation){hipMemLocationTypeDevice, dev};
	for (size_t i = 0; i < n; i++)
		desc[i].flags = hipMemAccessFlagsProtReadWrite;
	return n;
}

/* 7.1 sometimes refuses a call that succeeds when repeated (rocm-systems#2667). */
static hipError_t set_access(void *va, size_t size, const hipMemAccessDesc *desc, size_t n)
{
	uint64_t turn = ss_rocm_map_turn_begin();
	hipError_t err;
	int tries = 0;

	do
		err = SS_HIP(hipMemSetAccess, va, size, desc, n);
	while (err == hipErrorInvalidValue && ++tries < ACCESS_TRIES);
	ss_rocm_map_turn_end(turn);
	return err;
}

/* The runtime refuses a copy or a memset of mapped memory to which the current device has no access
 * (ValidateMemAccess in hip_memory.cpp), and of no other memory. So every device that was ever
 * current gets access, even if the program has not asked for that. */
enum ss_status ss_rocm_vmm_access(void *ctx, int dev, void *va, size_t size, uint64_t peers)
{
	uint64_t devices = peers | (ss_rocm_vmm_reach(dev) & atomic_load(&used));
	hipMemAccessDesc desc[SS_MAX_DEVICES + 1];
	bool host = host_wanted(dev);
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = set_access(va, size, desc, describe(desc, dev, devices, host));
	if (err != hipSuccess && host) {
		err = set_access(va, size, desc, describe(desc, dev, devices, false));
		if (err == hipSuccess)
			atomic_store(&host_refused[dev], true);
	}
	ss_scope_close(&s);
	return result(dev, err);
}

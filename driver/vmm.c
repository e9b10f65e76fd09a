/* SPDX-License-Identifier: MIT */
/*
 * Virtual ranges and the chunks mapped into them.
 *
 * Locks: ranges_lock (which ranges there are, how far their mapped prefix
 * reaches). Not held across a call.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rocm.h"

/* The layout since 5.3 (driver_types.h). 5.2's header, which this may be compiled
 * against, has another order; no VMM there. */
struct prop {
	int type, handle_type;
	struct { int type, id; } location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
};

struct range {
	char *base;
	size_t size;
	unsigned char *mapped; /* one per unit */
	struct range *next;
};

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

#define UNIT (2ull << 20)
#define ACCESS_TRIES 8
/* hipDeviceAttributeVirtualMemoryManagementSupported, which 5.2.3's header does
 * not name; the same number from 5.7.1 to 7.2.4. */
#define VMM_ATTRIBUTE ((hipDeviceAttribute_t)89)

bool ss_rocm_vmm_usable(int dev)
{
	int has = 0;

	if (ss_rocm.quirks[dev] & SS_Q_NO_VMM)
		return false;
	if ((ss_rocm.quirks[dev] & SS_Q_PEER_SPOILS) && ss_rocm.devices > 1)
		return false;
	/* Before 6.4.2 released memory stays (hip#3781). */
	if (ss_runtime()->version && ss_runtime()->major == 6 && ss_runtime()->minor < 4)
		return false;
	if (!ss_rocm.f.hipMemAddressReserve || !ss_rocm.f.hipMemMap || !ss_rocm.f.hipMemCreate ||
	    !ss_rocm.f.hipMemSetAccess || !ss_rocm.f.hipMemUnmap || !ss_rocm.f.hipMemRelease)
		return false;
	return SS_HIP(hipDeviceGetAttribute, &has,
		      VMM_ATTRIBUTE, dev) == hipSuccess &&
	       has;
}

/* The range that holds va, locked; NULL and unlocked if there is none. */
static struct range *range_lock(const void *va)
{
	pthread_mutex_lock(&ranges_lock);
	for (struct range *r = ranges; r; r = r->next)
		if ((const char *)va >= r->base && (const char *)va < r->base + r->size)
			return r;
	pthread_mutex_unlock(&ranges_lock);
	return NULL;
}

static void mark(const void *va, size_t size, bool on)
{
	struct range *r = range_lock(va);

	if (!r)
		return;
	memset(r->mapped + ((const char *)va - r->base) / UNIT, on, size / UNIT);
	pthread_mutex_unlock(&ranges_lock);
}

enum ss_status ss_rocm_vmm_reserve(void *ctx, int dev, size_t size, void **va)
{
	struct range *r = calloc(1, sizeof(*r));
	struct ss_scope s;
	void *p = NULL;
	hipError_t err;

	(void)ctx;
	if (r)
		r->mapped = calloc(1, size / UNIT);
	if (!r || !r->mapped)
		goto nomem;
	if (!ss_scope_open(&s, dev))
		goto nomem;
	err = SS_HIP(hipMemAddressReserve, &p, size, UNIT, NULL, 0);
	ss_scope_close(&s);
	/* 5.7 says success and gives NULL. */
	if (err != hipSuccess || !p) {
		free(r->mapped);
		free(r);
		return err == hipSuccess ? SS_ERR_UNSUPPORTED : ss_rocm_status(err);
	}
	r->base = p;
	r->size = size;
	pthread_mutex_lock(&ranges_lock);
	r->next = ranges;
	ranges = r;
	pthread_mutex_unlock(&ranges_lock);
	*va = p;
	return SS_OK;
nomem:
	if (r)
		free(r->mapped);
	free(r);
	return SS_ERR_NOMEM;
}

enum ss_status ss_rocm_vmm_unreserve(void *ctx, int dev, void *va, size_t size)
{
	struct range **at, *r;
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemAddressFree, va, size);
	ss_scope_close(&s);
	if (err != hipSuccess)
		return ss_rocm_status(err);
	pthread_mutex_lock(&ranges_lock);
	for (at = &ranges; (r = *at); at = &r->next)
		if (r->base == va) {
			*at = r->next;
			break;
		}
	pthread_mutex_unlock(&ranges_lock);
	if (r) {
		free(r->mapped);
		free(r);
	}
	return SS_OK;
}

enum ss_status ss_rocm_vmm_create(void *ctx, int dev, size_t size, void **chunk)
{
	struct prop prop = {
		.type = hipMemAllocationTypePinned,
		.location = { hipMemLocationTypeDevice, dev },
	};
	hipMemGenericAllocationHandle_t h = 0;
	struct ss_scope s;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemCreate, &h, size, (const hipMemAllocationProp *)&prop, 0);
	ss_scope_close(&s);
	if (err == hipSuccess)
		*chunk = (void *)h;
	return ss_rocm_status(err);
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
	err = SS_HIP(hipMemMap, va, size, 0, (hipMemGenericAllocationHandle_t)chunk, 0);
	ss_scope_close(&s);
	if (err == hipSuccess)
		mark(va, size, true);
	return ss_rocm_status(err);
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
	err = SS_HIP(hipMemUnmap, va, size);
	ss_scope_close(&s);
	if (err == hipSuccess)
		mark(va, size, false);
	return ss_rocm_status(err);
}

/* 7.0 to 7.2 compare a range that is not the first with the wrong handle
 * (rocm-systems#2516): access goes to everything from the start of the
 * reservation, where that is mapped without a gap. */
static void widen(int dev, char **va, size_t *size)
{
	struct range *r;
	size_t units;

	if (!(ss_rocm.quirks[dev] & SS_Q_ACCESS_PREFIX))
		return;
	r = range_lock(*va);
	if (!r)
		return;
	units = (size_t)(*va - r->base) / UNIT;
	if (!memchr(r->mapped, 0, units)) {
		*size += (size_t)(*va - r->base);
		*va = r->base;
	}
	pthread_mutex_unlock(&ranges_lock);
}

enum ss_status ss_rocm_vmm_access(void *ctx, int dev, void *va, size_t size, uint64_t peers)
{
	hipMemAccessDesc desc[SS_MAX_DEVICES];
	char *from = va;
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
	widen(dev, &from, &size);
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	/* 7.1 refuses now and then what it takes the next time (rocm-systems#2667). */
	do
		err = SS_HIP(hipMemSetAccess, from, size, desc, n);
	while (err == hipErrorInvalidValue && ++tries < ACCESS_TRIES);
	ss_scope_close(&s);
	return ss_rocm_status(err);
}

/* SPDX-License-Identifier: MIT */
/* The hipMemPool* family: values, widths, errors, handles of destroyed pools. */
#include <unistd.h>

#include "test.h"

static void create(void)
{
	hipMemPoolProps props;
	hipMemPool_t pool, def;
	void *p;

	memset(&props, 0, sizeof(props));
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(NULL, &props));
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, NULL));
	props.allocType = hipMemAllocationTypePinned;
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props)); /* no location */
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = 99;
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
	props.location.id = -1;
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
	props.location.id = 0;
	/* "Must be 0", but no runtime looks; the first eight are maxSize in a new one, as its
	 * header says. */
	for (size_t i = sizeof(props.reserved) < 64 || runtime_major() < 6 ? 0 : 8;
	     i < sizeof(props.reserved); i++)
		props.reserved[i] = 0xa5;
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipMemPoolDestroy(pool));
	memset(props.reserved, 0, sizeof(props.reserved));
	props.location.type = (hipMemLocationType)7;
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
	props.location.type = hipMemLocationTypeDevice;
	props.allocType = (hipMemAllocationType)0x40;
	GIVES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = (hipMemAllocationHandleType)0x80; /* no runtime looks at it here */
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMemPoolDestroy(pool));
	props.handleTypes = hipMemHandleTypeNone;
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMemPoolDestroy(pool));
	GIVES(hipErrorInvalidValue, hipMemPoolDestroy(pool));
	GIVES(hipErrorInvalidValue, hipMemPoolDestroy(NULL));
	OK(hipDeviceGetDefaultMemPool(&def, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolDestroy(def));
	GIVES(hipErrorInvalidValue, hipDeviceGetDefaultMemPool(NULL, 0));
	CHECK(hipDeviceGetDefaultMemPool(&pool, 99) != hipSuccess);
}

/* A pool of ours is current, then one of the runtime's, which ends: the default pool is current. */
static void current_of_two_kinds(void)
{
	hipMemPool_t ours = make_pool(0, hipMemHandleTypeNone), current, def;
	hipMemPool_t native = make_pool(0, (hipMemAllocationHandleType)0x80);

	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipDeviceSetMemPool(0, ours));
	OK(hipDeviceSetMemPool(0, native));
	OK(hipDeviceGetMemPool(&current, 0));
	CHECK(current == native);
	OK(hipMemPoolDestroy(native));
	OK(hipDeviceGetMemPool(&current, 0));
	CHECK(current == def);
	OK(hipMemPoolDestroy(ours));
}

static void attributes(hipMemPool_t pool)
{
	struct {
		uint32_t value, guard;
	} flag = {77, 0xabcdef01};
	struct {
		uint64_t value, guard;
	} size = {77, 0x1234567887654321};
	uint64_t v;
	int on;

	for (int attr = 1; attr <= 3; attr++) {
		OK(hipMemPoolGetAttribute(pool, (hipMemPoolAttr)attr, &flag));
		CHECK(flag.value == 1 && flag.guard == 0xabcdef01);
		on = 0;
		OK(hipMemPoolSetAttribute(pool, (hipMemPoolAttr)attr, &on));
		OK(hipMemPoolGetAttribute(pool, (hipMemPoolAttr)attr, &flag));
		CHECK(flag.value == 0 && flag.guard == 0xabcdef01);
		on = 1;
		OK(hipMemPoolSetAttribute(pool, (hipMemPoolAttr)attr, &on));
	}
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &size));
	CHECK(size.value == 0 && size.guard == 0x1234567887654321);
	v = UINT64_MAX;
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &v));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &size));
	CHECK(size.value == UINT64_MAX);
	v = 0;
	GIVES(hipErrorInvalidValue,
	      hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &v));
	GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &v));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &v));
	v = 1;
	GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &v));
	GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, (hipMemPoolAttr)9, &v));
	GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, (hipMemPoolAttr)0, &v));
	GIVES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, (hipMemPoolAttr)1, NULL));
	GIVES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, (hipMemPoolAttr)1, NULL));
}

static void bad_handles(hipMemPool_t dead)
{
	hipMemPool_t bad[] = {NULL, (hipMemPool_t)0x1234, dead, (hipMemPool_t)-8};
	hipMemLocation where = {hipMemLocationTypeDevice, 0};
	hipMemAccessDesc desc = {where, hipMemAccessFlagsProtReadWrite};
	hipMemAccessFlags flags;
	uint64_t v = 0;
	void *p;

	for (int i = 0; i < 4; i++) {
		GIVES(hipErrorInvalidValue, hipMallocFromPoolAsync(&p, 64, bad[i], NULL));
		GIVES(hipErrorInvalidValue, hipMemPoolTrimTo(bad[i], 0));
		GIVES(hipErrorInvalidValue,
		      hipMemPoolGetAttribute(bad[i], hipMemPoolAttrUsedMemHigh, &v));
		GIVES(hipErrorInvalidValue,
		      hipMemPoolSetAttribute(bad[i], hipMemPoolAttrUsedMemHigh, &v));
		GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(bad[i], &desc, 1));
		GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, bad[i], &where));
		GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(0, bad[i]));
		if (i != 1 && i != 3) /* those only the runtime can know */
			GIVES(hipErrorInvalidValue, hipMemPoolDestroy(bad[i]));
	}
}

static void access_lists(hipMemPool_t pool, int devices)
{
	hipMemAccessDesc d = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
	hipMemLocation where = {hipMemLocationTypeDevice, 0};

	OK(hipMemPoolGetAccess(&flags, pool, &where));
	CHECK(flags == hipMemAccessFlagsProtReadWrite);
	OK(hipMemPoolSetAccess(pool, &d, 1));
	d.flags = hipMemAccessFlagsProtNone;
	GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, &d, 1));
	d.flags = hipMemAccessFlagsProtRead;
	GIVES(runtime_version() <= 702 ? hipSuccess : hipErrorNotSupported,
	      hipMemPoolSetAccess(pool, &d, 1));
	OK(hipMemPoolGetAccess(&flags, pool, &where));
	CHECK(flags == hipMemAccessFlagsProtReadWrite);
	OK(hipMemPoolSetAccess(pool, &d, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, NULL, 0));
	d.flags = (hipMemAccessFlags)7;
	GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &d, 1));
	d.flags = hipMemAccessFlagsProtReadWrite;
	d.location.type = (hipMemLocationType)0;
	GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &d, 1));
	d.location.type = hipMemLocationTypeDevice;
	d.location.id = 99;
	GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, &d, 1));
	GIVES(hipErrorInvalidDevice, hipMemPoolSetAccess(pool, &d, 100));
	GIVES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, NULL, 1));
	GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(NULL, pool, &where));
	where.id = 99;
	GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &where));
	where.id = -1;
	GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &where));
	where.id = 99;
	GIVES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &where));
	if (devices < 2)
		return;
	where.id = d.location.id = 1;
	OK(hipMemPoolGetAccess(&flags, pool, &where));
	CHECK(flags == hipMemAccessFlagsProtNone);
	OK(hipMemPoolSetAccess(pool, &d, 1));
	OK(hipMemPoolGetAccess(&flags, pool, &where));
	CHECK(flags == hipMemAccessFlagsProtReadWrite);
	d.flags = hipMemAccessFlagsProtNone;
	OK(hipMemPoolSetAccess(pool, &d, 1));
}

static uint64_t reserved_by(hipMemPool_t pool)
{
	uint64_t v = 0;

	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &v));
	return v;
}

/* A trim gives back at once where nobody has to wait for it, and never waits. */
static void trims(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	uint64_t keep = UINT64_MAX, before;
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	OK(hipMallocFromPoolAsync(&p, 32 << 20, pool, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 32 << 20, s));
	OK(hipFreeAsync(p, s));
	before = reserved_by(pool);
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(before >= 32 << 20 && reserved_by(pool) == before);
	release(s);
	OK(hipStreamSynchronize(s));
	CHECK(reserved_by(pool) == before || reserved_by(pool) == 0);
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(reserved_by(pool) == 0);
	OK(hipStreamDestroy(s));
	OK(hipMemPoolDestroy(pool));
}

/* maxSize is what the program may have, to the byte; memory comes in larger units. */
static void maximum(void)
{
	hipMemPoolProps props;
	hipMemPool_t pool;
	hipStream_t s;
	uint64_t max = 1024;
	void *p, *q = &q;

	if (runtime_major() < 6)
		return;
	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.location.type = hipMemLocationTypeDevice;
	memcpy((char *)&props + 24, &max, sizeof(max)); /* reserved in older headers */
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		OK(hipMallocFromPoolAsync(&p, 1024, pool, s));
		GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&q, 1, pool, s));
		CHECK(!q);
		OK(hipFreeAsync(p, s));
		GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&q, 1025, pool, s));
	}
	OK(hipStreamDestroy(s));
	OK(hipMemPoolDestroy(pool));
}

/* What is handed out outlives its pool; the last free gives the memory back. */
static void last_free(int dev)
{
	hipMemPool_t pool = make_pool(dev, hipMemHandleTypeNone);
	uint64_t keep = UINT64_MAX, before, held;
	void *p[2], *idle;
	hipStream_t s;
	int other;

	OK(hipGetDevice(&other));
	OK(hipSetDevice(dev));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipSetDevice(other)); /* the pool and the stream say which device */
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	/* The first command of a stream may take memory of the device for good (observed on
	 * 7.2.4). */
	OK(hipMallocFromPoolAsync(&idle, 4096, pool, s));
	OK(hipSetDevice(dev));
	OK(hipMemsetAsync(idle, 1, 4096, s));
	OK(hipSetDevice(other));
	OK(hipFreeAsync(idle, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize()); /* nothing of earlier pools is left to give back */
	before = device_free(dev);
	for (int i = 0; i < 2; i++)
		OK(hipMallocFromPoolAsync(&p[i], 32 << 20, pool, s));
	OK(hipMallocFromPoolAsync(&idle, 32 << 20, pool, s));
	OK(hipFreeAsync(idle, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolDestroy(pool));
	for (int i = 0; i < 2; i++) {
		held = before - device_free(dev);
		CHECK(held >= (size_t)(2 - i) * (32 << 20));
		OK(hipSetDevice(dev)); /* a memset of mapped memory goes by it */
		OK(hipMemsetAsync(p[i], 1, 32 << 20, s));
		OK(hipSetDevice(other));
		OK(hipFreeAsync(p[i], s));
	}
	OK(hipSetDevice(dev));
	OK(hipStreamSynchronize(s));
	OK(hipDeviceSynchronize());
	/* The thread that releases idle memory may be just releasing this. */
	for (int ms = 0; ms < 5000 && device_free(dev) != before; ms++)
		usleep(1000);
	CHECK(device_free(dev) == before);
	OK(hipStreamDestroy(s));
	OK(hipSetDevice(other));
}

int main(void)
{
	hipMemPool_t pool, def, now;
	uint64_t used = 1, reserved = 0;
	int devices = 0, supported = 0;
	hipStream_t s;
	void *p, *q;

	CHECK(preloaded());
	OK(hipGetDeviceCount(&devices));
	OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
	CHECK(supported == 1);
	trims();
	maximum();
	create();
	current_of_two_kinds();
	pool = make_pool(0, hipMemHandleTypeNone);
	attributes(pool);
	access_lists(pool, devices);
	for (int dev = 0; dev < devices; dev++)
		last_free(dev);

	OK(hipStreamCreate(&s));
	OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, s));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &reserved));
	CHECK(used >= 1 << 20 && reserved >= used);

	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipDeviceGetMemPool(&now, 0));
	CHECK(now == def);
	OK(hipDeviceSetMemPool(0, pool));
	OK(hipDeviceGetMemPool(&now, 0));
	CHECK(now == pool);
	OK(hipMallocAsync(&q, 1 << 20, s)); /* from the pool that is current */
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	CHECK(used >= 2 << 20);
	GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(-1, pool));
	GIVES(hipErrorInvalidValue, hipDeviceSetMemPool(99, pool));
	if (devices > 1)
		GIVES(hipErrorInvalidDevice, hipDeviceSetMemPool(1, pool));

	/* What is handed out stays good after its pool. */
	OK(hipMemPoolDestroy(pool));
	OK(hipDeviceGetMemPool(&now, 0));
	CHECK(now == def);
	bad_handles(pool);
	OK(hipMemsetAsync(p, 1, 1 << 20, s));
	OK(hipMemsetAsync(q, 2, 1 << 20, s));
	OK(hipFreeAsync(p, s));
	OK(hipFree(q));
	OK(hipMemPoolTrimTo(def, 0));
	OK(hipStreamDestroy(s));
	return 0;
}

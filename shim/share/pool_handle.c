/* SPDX-License-Identifier: MIT */
/*
 * Pools between processes: hipMemPoolExportToShareableHandle and its import. The descriptor has the
 * properties of the pool (pool_descriptor.c). Pointers carry the pool's memory from process to
 * process (pool_pointer.c), so there is no server, no socket, and no peer to wait for. No lock.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/quiet.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/share/pool_descriptor.h"

/* ---- devices by name ---------------------------------------------------- */

static bool name_device(int dev, struct ss_pool_desc_device *out)
{
	hipUUID uuid;

	memset(out, 0, sizeof(*out));
	if (REAL(hipDeviceGetUuid, &uuid, dev) == hipSuccess)
		memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
	return REAL(hipDeviceGetPCIBusId, out->bus, sizeof(out->bus), dev) == hipSuccess;
}

/* -1: this process does not see that device. */
static int find_device(const struct ss_pool_desc_device *name)
{
	struct ss_pool_desc_device here;

	for (int dev = 0; dev < ss_device_count(); dev++)
		if (name_device(dev, &here) && ss_pool_desc_same_device(name, &here))
			return dev;
	return -1;
}

/* ---- pools -------------------------------------------------------------- */

hipError_t do_hipMemPoolExportToShareableHandle(void *handle, hipMemPool_t which,
						hipMemAllocationHandleType type, unsigned int flags)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, which);
	unsigned n = 0, reuse = 0;
	struct ss_pool_desc desc;
	uint64_t access, on;
	int fd;

	if (ss_pool_is_native(which))
		return ss_result(
			REAL(hipMemPoolExportToShareableHandle, handle, which, type, flags));
	if (!handle || !pool || !ss_pool_shared(pool) || flags ||
	    type != hipMemHandleTypePosixFileDescriptor)
		return ss_fail(hipErrorInvalidValue);
	memset(&desc, 0, sizeof(desc));
	if (!name_device(ss_pool_device(pool), &desc.device[n++]))
		return ss_fail(hipErrorInvalidValue);
	access = ss_pool_access(pool) & ~(1ull << ss_pool_device(pool));
	for (int dev = 0; dev < ss_device_count() && n < SS_POOL_DESC_DEVICES; dev++)
		if (access >> dev & 1 && name_device(dev, &desc.device[n]))
			n++;
	for (unsigned i = 0; i < SS_POOL_DESC_REUSE; i++)
		if (ss_pool_get_attr(pool, SS_ATTR_REUSE_FOLLOW_EVENTS + i, &on) == SS_OK && on)
			reuse |= 1u << i;
	fd = ss_pool_desc_write(&desc, ss_pool_desc_finish(&desc, n, reuse));
	if (fd < 0)
		return ss_fail(hipErrorOutOfMemory);
	memcpy(handle, &fd, sizeof(fd));
	return ss_result(hipSuccess);
}

static bool is_descriptor(int fd)
{
	return fd >= 0 && fcntl(fd, F_GETFD) >= 0;
}

/* The descriptor of a handle; -1: none. The runtime takes the descriptor by value from the lower
 * half of the handle, whose upper half may be uninitialized. The example in HIP's guide passes the
 * address of a descriptor instead. */
static int as_descriptor(const void *handle)
{
	uintptr_t value = (uintptr_t)handle;
	int low = (int)(uint32_t)value, fd = -1, probe;

	if (value <= INT32_MAX && is_descriptor(low))
		return low;
	/* Let the kernel read the address: the kernel reports a bad address by EFAULT, not by a
	 * signal. */
	probe = memfd_create("somashim", MFD_CLOEXEC);
	if (probe < 0)
		return -1;
	if (ss_quiet_write(probe, handle, sizeof(fd)) != sizeof(fd) ||
	    pread(probe, &fd, sizeof(fd), 0) != sizeof(fd))
		fd = -1;
	close(probe);
	return is_descriptor(fd) ? fd : is_descriptor(low) ? low : -1;
}

/* The contents of the runtime's own descriptors (5.7 to 7.2). The runtime does not check
 * them, so we do. */
struct native_desc {
	int fd;
	uint32_t state, count;
	struct {
		int device, flags;
	} access[32];
};

static bool native_pool_is_sane(int fd)
{
	struct native_desc desc;
	struct stat st;

	/* Read only shared memory, because a read of another file could block. */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size != sizeof(desc) || pread(fd, &desc, sizeof(desc), 0) != sizeof(desc) ||
	    desc.count > 32)
		return false;
	for (uint32_t i = 0; i < desc.count; i++)
		if (desc.access[i].device < 0 || desc.access[i].device >= ss_device_count())
			return false;
	return true;
}

static hipError_t import_pool(const struct ss_pool_desc *desc, struct ss_pool **out)
{
	uint64_t access = 0;
	struct ss_pool *pool = NULL;
	enum ss_status s;
	int owner = find_device(&desc->device[0]), can;

	if (owner < 0)
		return hipErrorInvalidDevice;
	s = ss_pool_create(ss_core, owner, 0, &pool);
	if (s != SS_OK)
		return ss_status_error(s);
	for (unsigned i = 0; i < SS_POOL_DESC_REUSE; i++)
		ss_pool_set_attr(ss_core, pool, SS_ATTR_REUSE_FOLLOW_EVENTS + i,
				 desc->reuse >> i & 1);
	for (unsigned i = 1; i < desc->devices; i++) {
		int dev = find_device(&desc->device[i]);

		can = 0;
		if (dev >= 0 && dev != owner &&
		    REAL(hipDeviceCanAccessPeer, &can, dev, owner) == hipSuccess && can)
			access |= 1ull << dev;
	}
	if (access) {
		ss_observer_add(owner, SS_OBSERVER_PEER);
		s = ss_pool_set_access(pool, access, 0);
		if (s != SS_OK) {
			(void)ss_pool_destroy(ss_core, pool);
			return ss_status_error(s);
		}
	}
	*out = pool;
	return hipSuccess;
}

hipError_t do_hipMemPoolImportFromShareableHandle(hipMemPool_t *out, void *handle,
						  hipMemAllocationHandleType type,
						  unsigned int flags)
{
	struct ss_pool *pool = NULL;
	struct ss_pool_desc desc;
	hipError_t err;
	int fd;

	if (!out || !handle || flags || type != hipMemHandleTypePosixFileDescriptor)
		return ss_fail(hipErrorInvalidValue);
	fd = as_descriptor(handle);
	if (fd < 0)
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	if (ss_pool_desc_read(fd, &desc)) {
		err = import_pool(&desc, &pool);
		if (err != hipSuccess)
			return ss_fail(err);
		*out = ss_pool_handle(pool);
		return ss_result(hipSuccess);
	}
	if (!native_pool_is_sane(fd))
		return ss_fail(hipErrorInvalidValue);
	err = REAL(hipMemPoolImportFromShareableHandle, out, (void *)(uintptr_t)fd, type, flags);
	if (err == hipSuccess)
		ss_pool_native_add(*out);
	return ss_result(err);
}

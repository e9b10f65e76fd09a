/* SPDX-License-Identifier: MIT */
/*
 * Pools and blocks of pools that other processes import. A pool's descriptor leads to a page
 * that describes the pool.
 *
 * Locks: pool_lock (pool.c). The locks of device memory are taken inside it.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/fault.h"
#include "device/ipc.h"
#include "device/options.h"
#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/pool.h"
#include "hip/thread_state.h"

/* As the runtime lays it out, except that this device keeps the device's number in state. */
struct shared_pool {
	int fd;
	uint32_t state, count;
	struct {
		int device, flags;
	} access[32];
};
#define POOL_DEVICE 16 /* shift, in state */

/* Sharing came with 5.7. */
#define POOLS_CAN_BE_SHARED (sim_opt.hip >= 507)

hipError_t i_hipMemPoolExportToShareableHandle(void *out, hipMemPool_t h,
					       hipMemAllocationHandleType type, unsigned flags)
{
	struct shared_pool page = {.fd = -1};
	struct pool *p;
	int fd;

	if (!out || !h || flags)
		return hipErrorInvalidValue;
	if (!POOLS_CAN_BE_SHARED)
		return hipErrorNotSupported;
	if (type != hipMemHandleTypePosixFileDescriptor)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p || p->handles != hipMemHandleTypePosixFileDescriptor || p->imported) {
		pthread_mutex_unlock(&pool_lock);
		return hipErrorInvalidValue;
	}
	p->exported = true;
	page.state = (uint32_t)p->device << POOL_DEVICE;
	for (int i = 0; i < sim_opt.devices; i++)
		if (p->access[i]) {
			page.access[page.count].device = i;
			page.access[page.count++].flags = p->access[i];
		}
	pthread_mutex_unlock(&pool_lock);
	fd = memfd_create("somasim-pool", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &page, sizeof page) != (ssize_t)sizeof page) {
		if (fd >= 0)
			close(fd);
		return hipErrorOutOfMemory;
	}
	*(int *)out = fd;
	return hipSuccess;
}

/* `handle` is the descriptor itself, not a pointer to it, and must allow writing. */
hipError_t i_hipMemPoolImportFromShareableHandle(hipMemPool_t *out, void *handle,
						 hipMemAllocationHandleType type, unsigned flags)
{
	int fd = (int)(uintptr_t)handle, device;
	struct shared_pool *page;
	struct stat st;
	struct pool *p;

	if (!out || !handle || flags)
		return hipErrorInvalidValue;
	if (!POOLS_CAN_BE_SHARED)
		return hipErrorNotSupported;
	if (type != hipMemHandleTypePosixFileDescriptor)
		return hipErrorInvalidValue;
	if (fstat(fd, &st))
		return hipErrorOutOfMemory;
	page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return hipErrorOutOfMemory;
	device = (int)(page->state >> POOL_DEVICE);
	/* The real runtime uses whatever the page says. */
	if (st.st_size < (off_t)sizeof *page || page->count > 32 || check_device(device))
		sim_fault(page, "hipMemPoolImportFromShareableHandle", "not a pool's descriptor");
	pthread_mutex_lock(&pool_lock);
	p = pool_new(sim_opt.quirk[SIM_Q_IMPORT_DEVICE0] ? 0 : device, 0, 0);
	p->imported = true;
	for (uint32_t i = 0; i < page->count; i++)
		if (!check_device(page->access[i].device))
			p->access[page->access[i].device] |= page->access[i].flags;
	*out = (hipMemPool_t)p;
	pthread_mutex_unlock(&pool_lock);
	munmap(page, sizeof *page);
	return hipSuccess;
}

struct pointer_data {
	uint64_t offset, size;
	struct sim_ipc_handle handle;
};

hipError_t i_hipMemPoolExportPointer(hipMemPoolPtrExportData *out, void *ptr)
{
	struct pointer_data d = {.offset = 0};
	struct sim_alloc a;

	if (!out || !ptr)
		return hipErrorInvalidValue;
	if (!POOLS_CAN_BE_SHARED)
		return hipErrorNotSupported;
	if (!hip_find(ptr, &a) || a.kind != SIM_DEVICE)
		return hipErrorOutOfMemory;
	if (sim_ipc_export(&a, &d.handle))
		return hipErrorOutOfMemory;
	d.offset = (uintptr_t)ptr - a.r.base;
	d.size = a.size;
	memset(out, 0, sizeof *out);
	memcpy(out, &d, sizeof d);
	return hipSuccess;
}

hipError_t i_hipMemPoolImportPointer(void **out, hipMemPool_t h, hipMemPoolPtrExportData *data)
{
	struct pointer_data d;
	struct pool *p;
	char *base;

	if (!out || !h || !data)
		return hipErrorInvalidValue;
	if (!POOLS_CAN_BE_SHARED)
		return hipErrorNotSupported;
	memcpy(&d, data, sizeof d);
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p) {
		pthread_mutex_unlock(&pool_lock);
		return hipErrorInvalidValue;
	}
	/* ROCr ignores the offset and the size. */
	base = sim_ipc_import(&d.handle, 0, p->device, false);
	if (base) {
		pool_add_block(p, base, d.size, true);
		p->used += d.size;
		*out = base;
	}
	pthread_mutex_unlock(&pool_lock);
	return base ? hipSuccess : hipErrorOutOfMemory;
}

/* SPDX-License-Identifier: MIT */
/*
 * Sharing between processes: hipIpc* memory handles and exported pools.
 *
 * Locks: pool_lock, for pools.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool.h"

/* [0:32) HSA handle, [32:40) size, [40:48) offset, [48:52) pid, [52:56) the owner's device. */
struct ipc_handle {
	struct sim_ipc_handle hsa;
	uint64_t size, offset;
	uint32_t pid, device;
	uint32_t unused[2];
};
_Static_assert(sizeof(struct ipc_handle) == sizeof(hipIpcMemHandle_t), "64 bytes");

hipError_t i_hipIpcGetMemHandle(hipIpcMemHandle_t *out, void *ptr)
{
	struct ipc_handle h = { .size = 0 };
	struct sim_alloc a;

	if (!out || !ptr)
		return hipErrorInvalidValue;
	if (!hip_find(ptr, &a) || !a.hip)
		return hipErrorInvalidValue;
	if (a.kind == SIM_MAPPED) {
		if (sim_opt.quirk[SIM_Q_IPC_VMM])
			sim_fault(ptr, "hipIpcGetMemHandle", "VMM memory: the real driver loses it until reboot");
		return hipErrorInvalidValue;
	}
	if (a.kind != SIM_DEVICE)
		return hipErrorInvalidValue;
	if (sim_ipc_export(&a, &h.hsa))
		return hipErrorOutOfMemory;
	h.size = a.size;
	h.offset = (uintptr_t)ptr - a.r.base;
	h.pid = (uint32_t)getpid();
	h.device = V7 ? (uint32_t)cur_device() : 0;
	memcpy(out, &h, sizeof h);
	return hipSuccess;
}

hipError_t i_hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned flags)
{
	struct ipc_handle h;
	void *p;

	/* The flag was 0 in 5.2 and is 1 now; anything else is refused. */
	if (!out || flags > 1 || (V6 && !flags))
		return hipErrorInvalidValue;
	memcpy(&h, &handle, sizeof h);
	if (!h.size)
		return hipErrorInvalidValue;
	if (h.pid == (uint32_t)getpid())
		return hipErrorInvalidContext;
	/* By the owner's numbering, whatever this process sees. */
	if (V7 && h.device >= (uint32_t)sim_opt.devices)
		return hipErrorInvalidValue;
	/* The offset is not looked at: who opens gets the segment's base. From
	 * 7.0 on a second open of the same handle is the same mapping. */
	p = sim_ipc_import(&h.hsa, h.size, cur_device(), V7 && !h.offset);
	if (!p)
		return hipErrorInvalidDevicePointer;
	*out = p;
	return hipSuccess;
}

hipError_t i_hipIpcCloseMemHandle(void *ptr)
{
	struct sim_alloc a;
	struct queue *q = null_queue(cur_device());

	/* Before anything else, whatever device the mapping is of. */
	queue_drain(q);
	queue_unref(q);
	if (!ptr || !hip_find(ptr, &a) || a.kind != SIM_IMPORT || a.ownertype == O_POOL)
		return hipErrorInvalidValue;
	device_drain(a.device);
	return sim_ipc_close(ptr, true) ? hipSuccess : hipErrorInvalidValue;
}

/* ---- pools: the descriptor leads to a page that describes the pool ---- */

/* As in the runtime, which looks at nothing but the size; the device is ours. */
struct shared_pool {
	int fd;
	uint32_t state, count;
	struct { int device, flags; } access[32];
};
#define POOL_DEVICE 16 /* shift, in state */

/* They came with 5.7. */
#define POOLS_CAN_BE_SHARED (sim_opt.hip >= 57)

hipError_t i_hipMemPoolExportToShareableHandle(void *out, hipMemPool_t h, hipMemAllocationHandleType type, unsigned flags)
{
	struct shared_pool page = { .fd = -1 };
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

/* The descriptor comes by value; what it leads to is mapped for writing. */
hipError_t i_hipMemPoolImportFromShareableHandle(hipMemPool_t *out, void *handle, hipMemAllocationHandleType type, unsigned flags)
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
	/* The real one dereferences whatever is there. */
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
	struct pointer_data d = { .offset = 0 };
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
	/* ROCr looks at neither offset nor size. */
	base = sim_ipc_import(&d.handle, 0, p->device, false);
	if (base) {
		pool_add(p, base, d.size, true);
		p->used += d.size;
		*out = base;
	}
	pthread_mutex_unlock(&pool_lock);
	return base ? hipSuccess : hipErrorOutOfMemory;
}

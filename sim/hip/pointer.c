/* SPDX-License-Identifier: MIT */
/* HIP's facts about an address, in the numbers and layouts of each release. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/version.h"

/* hipMemoryType got other numbers in 5.7 and in 6.0. */
static int memory_type(const struct sim_alloc *a)
{
	switch (a->kind) {
	case SIM_HOST:
	case SIM_LOCKED: return V6 ? 1 : 0;
	case SIM_MANAGED: return V6 ? 3 : V57 ? 4 : 1;
	default: return V6 ? 2 : 1;
	}
}

static int owner_device(const struct sim_alloc *a)
{
	/* For HIP all raw HSA memory is one object, which belongs to device 0. */
	return a->hip ? a->device : 0;
}

hipError_t i_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *p)
{
	struct sim_alloc a;

	if (!out)
		return hipErrorInvalidValue;
	if (!p && !V7)
		return hipErrorInvalidValue;
	if (!hip_find(p, &a)) {
		if (!V6)
			return hipErrorInvalidValue;
		memset(out, 0, sizeof *out);
		out->device = hipInvalidDeviceId;
		return hipSuccess;
	}
	memset(out, 0, sizeof *out);
	*(int *)&out->memoryType = memory_type(&a);
	out->device = owner_device(&a);
	out->devicePointer = (void *)(uintptr_t)p;
	out->hostPointer = a.kind == SIM_HOST || a.kind == SIM_LOCKED || a.kind == SIM_MANAGED ?
				   (void *)(uintptr_t)p :
				   NULL;
	out->isManaged = a.kind == SIM_MANAGED;
	out->allocationFlags = a.kind == SIM_MAPPED ? 0 : a.flags;
	return hipSuccess;
}

/* The object that stands for all raw HSA memory has these bounds in HIP. */
static void bounds(const struct sim_alloc *a, void **base, size_t *size)
{
	*base = a->hip ? (void *)a->r.base : (void *)0x100;
	*size = a->hip ? a->size : SIZE_MAX;
}

hipError_t i_hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t p)
{
	struct sim_alloc a;
	void *base;
	size_t size;

	if (!data || !p)
		return hipErrorInvalidValue;
	if (!hip_find(p, &a))
		return hipErrorInvalidValue;
	bounds(&a, &base, &size);
	switch ((int)attribute) {
	case 1: *(hipCtx_t *)data = (hipCtx_t)(uintptr_t)(owner_device(&a) + 1); break;
	case 2: *(unsigned *)data = (unsigned)memory_type(&a); break;
	case 3: *(void **)data = p; break;
	case 4:
		if (a.kind != SIM_HOST && a.kind != SIM_LOCKED && a.kind != SIM_MANAGED)
			return hipErrorInvalidValue;
		*(void **)data = p;
		break;
	case 6: *(bool *)data = a.sync_memops; break;
	case 7: *(uint32_t *)data = a.hip ? (uint32_t)a.id : 0; break;
	case 8: *(bool *)data = a.kind == SIM_MANAGED; break;
	case 9: *(int *)data = owner_device(&a); break;
	case 10:
		if (!V7)
			return hipErrorNotSupported;
		*(int *)data = a.kind == SIM_DEVICE && a.hip;
		break;
	case 11: *(void **)data = base; break;
	/* As the real runtime, this writes four bytes of the caller's eight. */
	case 12: *(uint32_t *)data = (uint32_t)size; break;
	case 13: *(bool *)data = true; break;
	case 16: *(uint32_t *)data = a.flags; break;
	case 5:
	case 14:
	case 15:
	case 17: return hipErrorNotSupported;
	default: return hipErrorInvalidValue;
	}
	return hipSuccess;
}

hipError_t i_hipDrvPointerGetAttributes(unsigned n, hipPointer_attribute *attributes, void **data,
					hipDeviceptr_t p)
{
	if (!n || !attributes || !data)
		return hipErrorInvalidValue;
	for (unsigned i = 0; i < n; i++)
		i_hipPointerGetAttribute(data[i], attributes[i], p);
	return hipSuccess;
}

static void set_sync(struct sim_alloc *a, void *arg)
{
	a->sync_memops = *(bool *)arg;
}

hipError_t i_hipPointerSetAttribute(const void *value, hipPointer_attribute attribute,
				    hipDeviceptr_t p)
{
	struct sim_alloc a;

	if (!value || attribute != HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS || !p)
		return hipErrorInvalidValue;
	if (!hip_find(p, &a) || a.kind == SIM_MANAGED)
		return hipErrorInvalidDevicePointer;
	sim_update(p, set_sync, (void *)(uintptr_t)value);
	return hipSuccess;
}

/* Since 7.13 an output may be NULL. Earlier releases write to it all the same, and so crash. */
hipError_t i_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p)
{
	struct sim_alloc a;
	void *start;
	size_t n;

	if (!hip_find(p, &a))
		return hipErrorNotFound;
	bounds(&a, &start, &n);
	if (base || !V7_14)
		*base = start;
	if (size || !V7_14)
		*size = n;
	return hipSuccess;
}

hipError_t i_hipMemPtrGetInfo(void *p, size_t *size)
{
	struct sim_alloc a;
	void *base;

	if (!size)
		return hipErrorInvalidValue;
	if (!p) {
		*size = 0;
		return hipSuccess;
	}
	if (!hip_find(p, &a))
		return hipErrorInvalidValue;
	bounds(&a, &base, size);
	return hipSuccess;
}

/* A descriptor means the whole allocation, wherever in it the range lies, as the runtime's dma-buf
 * does. This one is a file that names the allocation: its base and its size. */
hipError_t i_hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t p, size_t size, int type,
					    unsigned long long flags)
{
	struct sim_alloc a;
	uintptr_t name[2];
	void *base;
	int fd;

	if (!handle || !p || !size || type != 1 || flags)
		return hipErrorInvalidValue;
	if (!hip_find(p, &a))
		return hipErrorInvalidValue;
	bounds(&a, &base, &name[1]);
	name[0] = (uintptr_t)base;
	if ((uintptr_t)p - name[0] > name[1] || size > name[1] - ((uintptr_t)p - name[0]))
		return hipErrorInvalidValue;
	fd = memfd_create("somasim-dmabuf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, name, sizeof(name)) != (ssize_t)sizeof(name)) {
		if (fd >= 0)
			close(fd);
		return hipErrorOutOfMemory;
	}
	*(int *)handle = fd;
	return hipSuccess;
}

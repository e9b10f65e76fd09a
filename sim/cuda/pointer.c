/* SPDX-License-Identifier: MIT */
/* Facts about pointers: their attributes, and the allocation that contains them. */
#include <string.h>

#include "cuda/context.h"
#include "cuda/pointer.h"

struct pointer_facts pointer_facts(const void *p)
{
	struct pointer_facts f = {0};
	unsigned managed = 0;
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
				       CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *values[] = {&f.type, &f.pool, &managed};

	/* The driver leaves a value unchanged, or writes 0, if the address has no such
	 * attribute. */
	if (CU(cuPointerGetAttributes, 3, which, values, address(p)))
		return (struct pointer_facts){0};
	f.managed = managed != 0;
	return f;
}

static CUmemorytype type_of(const void *p)
{
	CUmemorytype t = 0;

	return CU(cuPointerGetAttribute, &t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(p)) ? 0 : t;
}

static bool managed(const void *p)
{
	unsigned m = 0;

	return !CU(cuPointerGetAttribute, &m, CU_POINTER_ATTRIBUTE_IS_MANAGED, address(p)) && m;
}

CUmemorytype pointer_side(const void *p)
{
	CUmemorytype t = type_of(p);

	return t ? t : (CUmemorytype)CU_MEMORYTYPE_HOST;
}

/* The numbers of 5.x are host 0, device 1, managed 4; those of 6.0 host 1, device 2, managed 3. */
static int memory_type(CUmemorytype t, bool is_managed)
{
	if (is_managed)
		return V6 ? 3 : 4;
	return (t == CU_MEMORYTYPE_HOST ? 0 : 1) + V6;
}

hipError_t i_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *p)
{
	int device = -2;
	CUdeviceptr d = address(p);
	void *host = NULL;
	CUmemorytype t;

	ENTER();
	if (!out || (!p && !V7))
		return hipErrorInvalidValue;
	t = type_of(p);
	memset(out, 0, sizeof *out);
	if (!t) {
		out->device = -2;
		return V6 ? hipSuccess : hipErrorInvalidValue;
	}
	(void)CU(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(p));
	if (CU(cuPointerGetAttribute, &d, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address(p)))
		d = address(p);
	if (CU(cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address(p)))
		host = NULL;
	out->isManaged = managed(p);
	*(int *)&out->memoryType = memory_type(t, out->isManaged);
	out->device = device;
	out->devicePointer = pointer(d);
	out->hostPointer = host;
	return hipSuccess;
}

/* The bytes that HIP writes of each attribute. Its booleans have one byte, and of a size or an
 * identity it writes four of eight. 0: HIP does not have it, or AMD does not support it. */
static const unsigned char widths[] = {
	[CU_POINTER_ATTRIBUTE_CONTEXT] = 8,          [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = 4,
	[CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = 8,   [CU_POINTER_ATTRIBUTE_HOST_POINTER] = 8,
	[CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = 1,      [CU_POINTER_ATTRIBUTE_BUFFER_ID] = 4,
	[CU_POINTER_ATTRIBUTE_IS_MANAGED] = 1,       [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = 4,
	[CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = 8, [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = 4,
	[CU_POINTER_ATTRIBUTE_MAPPED] = 1,           [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = 4,
	[CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = 0,
};

hipError_t i_hipPointerGetAttribute(void *data, hipPointer_attribute a, hipDeviceptr_t p)
{
	uint64_t value[4] = {0};
	CUresult r;

	ENTER();
	if (!data || !p || (unsigned)a < 1 || (unsigned)a >= sizeof widths)
		return hipErrorInvalidValue;
	if (!widths[a])
		return hipErrorNotSupported;
	r = CU(cuPointerGetAttribute, value, (CUpointer_attribute)a, address(p));
	if (!r && (unsigned)a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
		if (!(unsigned)value[0])
			return hipErrorInvalidValue;
		value[0] = (unsigned)memory_type((CUmemorytype)value[0], managed(p));
	}
	if (!r)
		memcpy(data, value, widths[a]);
	return to_hip(r);
}

hipError_t i_hipDrvPointerGetAttributes(unsigned n, hipPointer_attribute *a, void **data,
					hipDeviceptr_t p)
{
	ENTER();
	if (!n || !a || !data)
		return hipErrorInvalidValue;
	for (unsigned i = 0; i < n; i++)
		(void)i_hipPointerGetAttribute(data[i], a[i], p);
	return hipSuccess;
}

hipError_t i_hipPointerSetAttribute(const void *value, hipPointer_attribute a, hipDeviceptr_t p)
{
	unsigned on;

	ENTER();
	if (!value || (unsigned)a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !p)
		return hipErrorInvalidValue;
	on = *(const bool *)value;
	return to_hip(CU(cuPointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(p)));
}

/* Since 7.14 an output may be NULL. */
hipError_t i_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p)
{
	CUdeviceptr b = 0;
	size_t n = 0;

	ENTER();
	if (!V7_14 && (!base || !size))
		return hipErrorInvalidValue;
	if (CU(cuMemGetAddressRange, &b, &n, address(p)))
		return hipErrorNotFound;
	if (base)
		*base = pointer(b);
	if (size)
		*size = n;
	return hipSuccess;
}

hipError_t i_hipMemPtrGetInfo(void *p, size_t *size)
{
	CUdeviceptr base = 0;

	ENTER();
	if (!size)
		return hipErrorInvalidValue;
	*size = 0;
	if (p && CU(cuMemGetAddressRange, &base, size, address(p)))
		return hipErrorInvalidValue;
	return hipSuccess;
}

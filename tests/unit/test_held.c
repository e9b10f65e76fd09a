/* SPDX-License-Identifier: MIT */
/*
 * Tests which calls mark memory that others may hold from then on, and that each is marked before
 * the real call. The core and the runtime are stubs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "core/sleep.h"
#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd,
					    uint64_t *offset);
hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd,
					       uint64_t *offset, uint64_t flags);
hsa_status_t hsa_amd_vmem_retain_alloc_handle(void *handle, void *ptr);

_Atomic int ss_state = SS_ON;
struct ss_core *ss_core = (struct ss_core *)16;
struct ss_real ss_real;
__thread struct ss_tls ss_tls;

static struct {
	const void *ptr;
	uint64_t size;
	const char *by;
	int marked, real;
} seen;
static bool lacks; /* the runtime has none of these calls */
static char memory[64];

bool ss_core_stays(struct ss_core *core, const void *ptr, uint64_t size, const char *by)
{
	assert_ptr_equal(core, ss_core);
	assert_true(lacks || seen.marked == seen.real);
	seen.ptr = ptr;
	seen.size = size;
	seen.by = by;
	seen.marked++;
	return true;
}

static hsa_status_t dmabuf(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	assert_true(ptr == memory && size == sizeof(memory));
	seen.real++;
	*fd = 7;
	*offset = 0;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t dmabuf_v2(const void *ptr, size_t size, int *fd, uint64_t *offset,
			      uint64_t flags)
{
	assert_int_equal(flags, 3);
	return dmabuf(ptr, size, fd, offset);
}

static hsa_status_t retain(void *handle, void *ptr)
{
	assert_ptr_equal(ptr, memory);
	seen.real++;
	return HSA_STATUS_SUCCESS;
}

static hipError_t hip_retain(hipMemGenericAllocationHandle_t *handle, void *ptr)
{
	assert_int_equal(ss_tls.depth, 1);
	seen.real++;
	return hipErrorInvalidValue;
}

void *ss_hsa_symbol(const char *name)
{
	if (lacks)
		return NULL;
	if (!strcmp(name, "hsa_amd_portable_export_dmabuf"))
		return (void *)dmabuf;
	if (!strcmp(name, "hsa_amd_portable_export_dmabuf_v2"))
		return (void *)dmabuf_v2;
	assert_string_equal(name, "hsa_amd_vmem_retain_alloc_handle");
	return (void *)retain;
}

hipError_t ss_real_missing(void)
{
	return hipErrorNotSupported;
}

hipError_t ss_result_slow(hipError_t err)
{
	return err;
}

bool ss_owns_range(struct ss_core *core, const void *ptr, uint64_t size)
{
	return false;
}

bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *info)
{
	return false;
}

static void marked(int n, size_t size, const char *by)
{
	assert_true(seen.marked == n && seen.real == n);
	assert_true(seen.ptr == memory && seen.size == size);
	assert_string_equal(seen.by, by);
}

/* Comes first: a function that was found once is not looked for again. */
static void test_lacks(void **state)
{
	uint64_t offset;
	int fd;

	lacks = true;
	assert_int_equal(hsa_amd_portable_export_dmabuf(memory, 1, &fd, &offset),
			 HSA_STATUS_ERROR_NOT_INITIALIZED);
	assert_int_equal(do_hipMemRetainAllocationHandle(NULL, memory), hipErrorNotSupported);
	lacks = false;
	memset(&seen, 0, sizeof(seen));
}

static void test_marks(void **state)
{
	uint64_t offset;
	int fd = 0;

	ss_real.hipMemRetainAllocationHandle = hip_retain;
	assert_int_equal(hsa_amd_portable_export_dmabuf(memory, sizeof(memory), &fd, &offset),
			 HSA_STATUS_SUCCESS);
	assert_int_equal(fd, 7);
	marked(1, sizeof(memory), "hsa_amd_portable_export_dmabuf");
	assert_int_equal(hsa_amd_portable_export_dmabuf_v2(memory, sizeof(memory), &fd, &offset, 3),
			 HSA_STATUS_SUCCESS);
	marked(2, sizeof(memory), "hsa_amd_portable_export_dmabuf_v2");
	assert_int_equal(hsa_amd_vmem_retain_alloc_handle(NULL, memory), HSA_STATUS_SUCCESS);
	marked(3, 1, "hsa_amd_vmem_retain_alloc_handle");
	assert_int_equal(do_hipMemRetainAllocationHandle(NULL, memory), hipErrorInvalidValue);
	marked(4, 1, "hipMemRetainAllocationHandle");
}

/* Not the runtime's own calls, nor in a process that is not served, such as a forked child. */
static void test_passes(void **state)
{
	int before = seen.marked;
	uint64_t offset;
	int fd;

	ss_tls.depth = 1;
	hsa_amd_portable_export_dmabuf(memory, sizeof(memory), &fd, &offset);
	ss_tls.depth = 0;
	ss_state = SS_OFF;
	hsa_amd_vmem_retain_alloc_handle(NULL, memory);
	ss_state = SS_ON;
	assert_int_equal(seen.marked, before);
	assert_int_equal(seen.real, before + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lacks),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Managed memory, and variables that host and device share (__managed__). The runtime allocates
 * them itself. The host reads them without a call, which makes it an observer (observers.h).
 *
 * Locks: none.
 */
#include "driver/rocm/resolve.h"
#include "shim/check/checker.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/observers.h"
#include "shim/process/outside.h"
#include "shim/alloc/retry.h"
#include "shim/handlers.h"

/* The code that hipcc generates calls this for each managed variable in a constructor, before
 * main() (hip_platform.cpp). The runtime only takes note then. We start nothing either, because a
 * child of a program that forks before it uses HIP would get a dead HSA. */
SS_EXPORT void __hipRegisterManagedVar(void **module, void **pointer, void *init, const char *name,
				       size_t size, unsigned align);
void __hipRegisterManagedVar(void **module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align)
{
	void (*real)(void **, void **, void *, const char *, size_t, unsigned) = NULL;

	ss_observer_add_early(SS_OBSERVER_MANAGED);
	if (ss_runtime_find())
		*(void **)&real = ss_runtime_symbol("__hipRegisterManagedVar");
	if (real)
		real(module, pointer, init, name, size, align);
}

/* A variable of loaded code may be managed; only its pointer tells. */
static hipError_t variable(hipError_t err, void *const *ptr)
{
	unsigned managed = 1;

	if (err == hipSuccess && ptr &&
	    (REAL(hipPointerGetAttribute, &managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, *ptr) !=
		     hipSuccess ||
	     managed & 0xff)) {
		ss_observer_add(-1, SS_OBSERVER_MANAGED);
		if (unlikely(ss_checking))
			ss_check_host_memory(*ptr, 1, false);
	}
	return ss_result(err);
}

hipError_t do_hipModuleGetGlobal(hipDeviceptr_t *ptr, size_t *size, hipModule_t module,
				 const char *name)
{
	return variable(REAL(hipModuleGetGlobal, ptr, size, module, name), ptr);
}

/* The first of these calls builds the library's code, which takes device memory. */
hipError_t do_hipLibraryGetGlobal(void **ptr, size_t *size, SS_LIBRARY library, const char *name)
{
	return variable(REAL_RETRY(-1, hipLibraryGetGlobal, ptr, size, library, name), ptr);
}

hipError_t do_hipLibraryGetManaged(void **ptr, size_t *size, SS_LIBRARY library, const char *name)
{
	ss_observer_add(-1, SS_OBSERVER_MANAGED);
	return ss_result(REAL_RETRY(-1, hipLibraryGetManaged, ptr, size, library, name));
}

hipError_t do_hipMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	hipError_t err;

	ss_observer_add(-1, SS_OBSERVER_MANAGED);
	err = REAL_RETRY(-1, hipMallocManaged, ptr, size, flags);
	if (err == hipSuccess)
		ss_outside_keep(SS_TRACE_OUTSIDE_MANAGED, *ptr, -1, size);
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_host_memory(*ptr, size, false);
	return ss_result(err);
}

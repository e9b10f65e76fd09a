/* SPDX-License-Identifier: MIT */
/*
 * Variables that host and device share (__managed__). The runtime makes their memory
 * itself, when a program's code object is registered or a module is loaded; the host then
 * reads them without a call, so somebody is looking (debt.c).
 *
 * Locks: none.
 */
#include "driver/rocm.h"
#include "shim/shim.h"

/* hipcc calls it before main(), for each such variable (hip_platform.cpp). */
SS_EXPORT void __hipRegisterManagedVar(void **module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align);
void __hipRegisterManagedVar(void **module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align)
{
	void (*real)(void **, void **, void *, const char *, size_t, unsigned) = NULL;

	ss_observer_add_early(SS_OBSERVER_MANAGED);
	if (ss_real_resolve())
		*(void **)&real = ss_runtime_symbol("__hipRegisterManagedVar");
	if (real)
		real(module, pointer, init, name, size, align);
}

/* A module's variable may be one, and only the pointer tells. */
hipError_t do_hipModuleGetGlobal(hipDeviceptr_t *ptr, size_t *size, hipModule_t module,
				 const char *name)
{
	hipError_t err = REAL(hipModuleGetGlobal, ptr, size, module, name);
	unsigned managed = 1;

	if (err == hipSuccess && ptr &&
	    (REAL(hipPointerGetAttribute, &managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, *ptr) !=
		     hipSuccess || managed & 0xff))
		ss_observer_add(-1, SS_OBSERVER_MANAGED);
	return ss_result(err);
}

/* SPDX-License-Identifier: MIT */
/*
 * The calls that code of the compiler makes before main: they register fat binaries, kernels and
 * variables. As in the real runtime this does not start the device.
 */
#include <stdlib.h>
#include <string.h>
#include <hip/hip_runtime_api.h>

#include "device/arena.h"
#include "device/kernel.h"
#include "hip/variable.h"

#pragma GCC visibility push(default)
void **__hipRegisterFatBinary(const void *data);
void __hipUnregisterFatBinary(void **modules);
void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name,
			   unsigned limit, void *tid, void *bid, dim3 *block, dim3 *grid,
			   int *wsize);
void __hipRegisterVar(void **modules, void *var, char *host, char *name, int ext, size_t size,
		      int constant, int global);
void __hipRegisterManagedVar(void *module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align);
void __hipRegisterSurface(void **modules, void *var, char *host, char *name, int type, int ext);
void __hipRegisterTexture(void **modules, void *var, char *host, char *name, int type, int norm,
			  int ext);
void __hipGetPCH(const char **pch, unsigned *size);

void **__hipRegisterFatBinary(const void *data)
{
	void **m = calloc(1, sizeof *m);

	if (m)
		*m = (void *)(uintptr_t)data;
	return m;
}

/* The real call waits for every stream. It comes so late in a process that a stalled stream
 * would hang the exit, and there is nothing left to protect. */
void __hipUnregisterFatBinary(void **modules)
{
	free(modules);
}

void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name,
			   unsigned limit, void *tid, void *bid, dim3 *block, dim3 *grid,
			   int *wsize)
{
	sim_kernel_register(host, name ? name : device);
}

void __hipRegisterVar(void **modules, void *var, char *host, char *name, int ext, size_t size,
		      int constant, int global)
{
	variable_add(var, name, size, NULL);
}

/* The host memory is private to the process, so a child that is forked before the device
 * starts has its own. */
void __hipRegisterManagedVar(void *module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align)
{
	void *p = sim_host_alloc(size, 0, SIM_MANAGED, 0);

	if (p && init)
		memcpy(p, init, size);
	variable_add(pointer, name, size, p);
	*pointer = p;
}

void __hipRegisterSurface(void **modules, void *var, char *host, char *name, int type, int ext)
{
}

void __hipRegisterTexture(void **modules, void *var, char *host, char *name, int type, int norm,
			  int ext)
{
}

void __hipGetPCH(const char **pch, unsigned *size)
{
	*pch = NULL;
	*size = 0;
}

const char *hipKernelNameRef(const hipFunction_t f)
{
	return f ? sim_kernel_name((struct sim_kernel *)f) : NULL;
}

const char *hipKernelNameRefByPtr(const void *host, hipStream_t h)
{
	struct sim_kernel *k = sim_kernel_at(host);

	return k ? sim_kernel_name(k) : NULL;
}
#pragma GCC visibility pop

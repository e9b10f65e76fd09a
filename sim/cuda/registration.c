/* SPDX-License-Identifier: MIT */
/* The calls that code of the compiler makes before main. Code objects of AMD cannot run here, so
 * they are not kept. A managed variable is the host's alone. */
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

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
	static void *module[1];

	return module;
}

void __hipUnregisterFatBinary(void **modules)
{
}

void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name,
			   unsigned limit, void *tid, void *bid, dim3 *block, dim3 *grid,
			   int *wsize)
{
}

void __hipRegisterVar(void **modules, void *var, char *host, char *name, int ext, size_t size,
		      int constant, int global)
{
}

void __hipRegisterManagedVar(void *module, void **pointer, void *init, const char *name,
			     size_t size, unsigned align)
{
	void *p = calloc(1, size);

	if (p && init)
		memcpy(p, init, size);
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
	return NULL;
}

const char *hipKernelNameRefByPtr(const void *host, hipStream_t h)
{
	return NULL;
}
#pragma GCC visibility pop

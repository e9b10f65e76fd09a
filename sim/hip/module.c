/* SPDX-License-Identifier: MIT */
/* Modules, their functions and variables, and what can be asked about functions. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/kernel.h"
#include "hip/entry_points.h"
#include "hip/variable.h"

#define ERROR_NOT_PERMITTED ((hipError_t)800) /* of later headers */

struct module {
	uint64_t magic;
	bool of_library; /* goes with hipLibraryUnload only */
};

hipError_t i_hipModuleLoadData(hipModule_t *out, const void *image)
{
	struct module *m;

	if (!out || !image)
		return hipErrorInvalidValue;
	m = calloc(1, sizeof *m);
	if (!m)
		return hipErrorOutOfMemory;
	m->magic = 0x6d6f64756c65ULL;
	*out = (hipModule_t)m;
	return hipSuccess;
}

hipError_t i_hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned n,
				 hipJitOption *options, void **values)
{
	return i_hipModuleLoadData(out, image);
}

hipError_t i_hipModuleLoad(hipModule_t *out, const char *path)
{
	if (!out || !path)
		return hipErrorInvalidValue;
	if (access(path, R_OK))
		return hipErrorFileNotFound;
	return i_hipModuleLoadData(out, path);
}

hipError_t i_hipModuleUnload(hipModule_t h)
{
	struct module *m = (struct module *)h;

	if (!m)
		return hipErrorInvalidValue;
	if (m->of_library)
		return ERROR_NOT_PERMITTED;
	m->magic = 0;
	free(m);
	return hipSuccess;
}

hipError_t i_hipModuleGetFunction(hipFunction_t *out, hipModule_t m, const char *name)
{
	if (!out || !name)
		return hipErrorInvalidValue;
	if (!m)
		return hipErrorInvalidHandle;
	*out = (hipFunction_t)sim_kernel_named(name);
	return hipSuccess;
}

hipError_t i_hipModuleGetGlobal(hipDeviceptr_t *out, size_t *size, hipModule_t m, const char *name)
{
	const void *host;
	size_t n;
	void *p;

	if (!name)
		return hipErrorInvalidValue;
	host = variable_named(name);
	if (!host)
		return hipErrorNotFound;
	p = variable_address(host, &n);
	if (out)
		*out = p;
	if (size)
		*size = n;
	return p ? hipSuccess : hipErrorOutOfMemory;
}

/* ---- libraries: a module each ---- */

hipError_t i_hipLibraryLoadData(void **out, const void *code, void *o, void **ov, unsigned no,
				void *lo, void **lov, unsigned nlo)
{
	hipModule_t m;
	hipError_t e = out ? i_hipModuleLoadData(&m, code) : hipErrorInvalidValue;

	if (!e) {
		((struct module *)m)->of_library = true;
		*out = m;
	}
	return e;
}

hipError_t i_hipLibraryLoadFromFile(void **out, const char *path, void *o, void **ov, unsigned no,
				    void *lo, void **lov, unsigned nlo)
{
	if (!path)
		return hipErrorInvalidValue;
	return access(path, R_OK) ? hipErrorFileNotFound :
				    i_hipLibraryLoadData(out, path, o, ov, no, lo, lov, nlo);
}

hipError_t i_hipLibraryUnload(void *library)
{
	if (!library)
		return hipErrorInvalidHandle;
	((struct module *)library)->of_library = false;
	return i_hipModuleUnload(library);
}

hipError_t i_hipLibraryGetGlobal(void **out, size_t *size, void *library, const char *name)
{
	return library ? i_hipModuleGetGlobal((hipDeviceptr_t *)out, size, library, name) :
			 hipErrorInvalidHandle;
}

hipError_t i_hipLibraryGetManaged(void **out, size_t *size, void *library, const char *name)
{
	return i_hipLibraryGetGlobal(out, size, library, name);
}

hipError_t i_hipLibraryGetModule(hipModule_t *out, void *library)
{
	if (!library)
		return hipErrorInvalidHandle;
	if (!out)
		return hipErrorInvalidValue;
	*out = library;
	return hipSuccess;
}

hipError_t i_hipFuncGetAttributes(struct hipFuncAttributes *a, const void *func)
{
	if (!a || !func)
		return hipErrorInvalidValue;
	memset(a, 0, sizeof *a);
	a->maxThreadsPerBlock = 1024;
	a->numRegs = 32;
	a->maxDynamicSharedSizeBytes = 65536;
	return hipSuccess;
}

hipError_t i_hipFuncGetAttribute(int *v, hipFunction_attribute attr, hipFunction_t f)
{
	if (!v || !f)
		return hipErrorInvalidValue;
	*v = attr == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
	return hipSuccess;
}

hipError_t i_hipFuncSetAttribute(const void *f, hipFuncAttribute attr, int v)
{
	return f ? hipSuccess : hipErrorInvalidDeviceFunction;
}

hipError_t i_hipFuncSetCacheConfig(const void *f, hipFuncCache_t c)
{
	return hipSuccess;
}
static hipError_t occupancy(int *n, int *grid, int *block)
{
	if (n)
		*n = 2;
	if (grid)
		*grid = 608;
	if (block)
		*block = 1024;
	return hipSuccess;
}

hipError_t i_hipOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int block,
							  size_t shared)
{
	return occupancy(n, NULL, NULL);
}

hipError_t i_hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int block,
								   size_t shared, unsigned flags)
{
	return occupancy(n, NULL, NULL);
}

hipError_t i_hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *f, size_t shared,
					       int limit)
{
	return occupancy(NULL, grid, block);
}

hipError_t i_hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t f,
						     size_t shared, int limit)
{
	return occupancy(NULL, grid, block);
}

hipError_t i_hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block,
							      hipFunction_t f, size_t shared,
							      int limit, unsigned flags)
{
	return occupancy(NULL, grid, block);
}

hipError_t i_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, hipFunction_t f, int block,
								size_t shared)
{
	return occupancy(n, NULL, NULL);
}

hipError_t i_hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, hipFunction_t f,
									 int block, size_t shared,
									 unsigned flags)
{
	return occupancy(n, NULL, NULL);
}

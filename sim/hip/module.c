/* SPDX-License-Identifier: MIT */
/*
 * Device variables, modules, and what can be asked about functions.
 *
 * Locks: fn_lock (kernel.c); nothing is taken inside it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

/* ---- symbols ---- */

static void *symbol(const void *host, size_t *size)
{
	struct var *v;
	int d = cur_device();
	void *p = NULL;

	pthread_mutex_lock(&fn_lock);
	for (v = vars; v; v = v->next)
		if (v->host == host)
			break;
	pthread_mutex_unlock(&fn_lock);
	if (!v)
		return NULL;
	if (v->managed) {
		p = v->managed;
	} else {
		if (!v->dev[d] && (v->dev[d] = hip_device_memory(d, v->size, 0)))
			memset(v->dev[d], 0, v->size);
		p = v->dev[d];
	}
	*size = v->size;
	return p;
}

hipError_t i_hipGetSymbolAddress(void **out, const void *host)
{
	size_t n;

	if (!out)
		return hipErrorInvalidValue;
	*out = symbol(host, &n);
	return *out ? hipSuccess : hipErrorInvalidSymbol;
}

hipError_t i_hipGetSymbolSize(size_t *size, const void *host)
{
	return size && symbol(host, size) ? hipSuccess : hipErrorInvalidSymbol;
}

static hipError_t symbol_at(const void *host, size_t n, size_t off, char **p)
{
	size_t size;

	*p = symbol(host, &size);
	if (!*p)
		return hipErrorInvalidSymbol;
	if (off > size || n > size - off)
		return hipErrorInvalidValue;
	*p += off;
	return hipSuccess;
}

hipError_t i_hipMemcpyToSymbol(const void *sym, const void *src, size_t n, size_t off, hipMemcpyKind kind)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : i_hipMemcpy(p, src, n, kind);
}

hipError_t i_hipMemcpyToSymbolAsync(const void *sym, const void *src, size_t n, size_t off, hipMemcpyKind kind, hipStream_t h)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : PLT(hipMemcpyAsync(p, src, n, kind, h));
}

hipError_t i_hipMemcpyFromSymbol(void *dst, const void *sym, size_t n, size_t off, hipMemcpyKind kind)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : i_hipMemcpy(dst, p, n, kind);
}

hipError_t i_hipMemcpyFromSymbolAsync(void *dst, const void *sym, size_t n, size_t off, hipMemcpyKind kind, hipStream_t h)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : PLT(hipMemcpyAsync(dst, p, n, kind, h));
}

/* ---- modules ---- */

struct module {
	uint64_t magic;
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

hipError_t i_hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned n, hipJitOption *options, void **values)
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
	m->magic = 0;
	free(m);
	return hipSuccess;
}

hipError_t i_hipModuleGetFunction(hipFunction_t *out, hipModule_t m, const char *name)
{
	struct fn *f;

	if (!out || !name)
		return hipErrorInvalidValue;
	if (!m)
		return hipErrorInvalidHandle;
	pthread_mutex_lock(&fn_lock);
	f = fn_by(NULL, name, true);
	pthread_mutex_unlock(&fn_lock);
	*out = (hipFunction_t)f;
	return hipSuccess;
}

hipError_t i_hipModuleGetGlobal(hipDeviceptr_t *out, size_t *size, hipModule_t m, const char *name)
{
	const void *host = NULL;
	size_t n;

	if (!name)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&fn_lock);
	for (struct var *v = vars; v; v = v->next)
		if (!strcmp(v->name, name))
			host = v->host;
	pthread_mutex_unlock(&fn_lock);
	if (!host)
		return hipErrorNotFound;
	void *p = symbol(host, &n);

	if (out)
		*out = p;
	if (size)
		*size = n;
	return p ? hipSuccess : hipErrorOutOfMemory;
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

hipError_t i_hipFuncSetAttribute(const void *f, hipFuncAttribute attr, int v) { return f ? hipSuccess : hipErrorInvalidDeviceFunction; }
hipError_t i_hipFuncSetCacheConfig(const void *f, hipFuncCache_t c) { return hipSuccess; }
hipError_t i_hipFuncSetSharedMemConfig(const void *f, hipSharedMemConfig c) { return hipSuccess; }

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

hipError_t i_hipOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int block, size_t shared) { return occupancy(n, NULL, NULL); }
hipError_t i_hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int block, size_t shared, unsigned flags) { return occupancy(n, NULL, NULL); }
hipError_t i_hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *f, size_t shared, int limit) { return occupancy(NULL, grid, block); }
hipError_t i_hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t f, size_t shared, int limit) { return occupancy(NULL, grid, block); }
hipError_t i_hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, hipFunction_t f, size_t shared, int limit, unsigned flags) { return occupancy(NULL, grid, block); }
hipError_t i_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, hipFunction_t f, int block, size_t shared) { return occupancy(n, NULL, NULL); }
hipError_t i_hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, hipFunction_t f, int block, size_t shared, unsigned flags) { return occupancy(n, NULL, NULL); }

/* SPDX-License-Identifier: MIT */
/*
 * Modules and launches, and the kernels of this device, which tests find by dlsym:
 *
 *   hipFunction_t somacuda_kernel(name)     a kernel of kernels.ptx, for hipModuleLaunchKernel;
 *                                           NULL: there is none
 *   int somacuda_spin(stream, us)           keeps a stream busy for microseconds, past any preload;
 *                                           0: it will be
 *   int somacuda_register(function, name)   launches of that host function run a kernel of
 *                                           kernels.ptx; 0: it is one
 *
 * Code objects of AMD cannot run here, so a program's own kernels are refused.
 *
 * Locks: kernels_lock guards the module and the table of functions. The driver is called with it
 * held; no other lock is taken inside it.
 */
#include <pthread.h>
#include <stdio.h>

#include "cuda/context.h"
#include "cuda/kernels.h"

#define FUNCTIONS 64

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules[SIM_MAX_DEVICES];
static _Atomic unsigned loaded_in[SIM_MAX_DEVICES]; /* the turn of hipDeviceReset */
static struct {
	const void *host;
	char name[32];
	/* Of the module that is loaded; NULL: not asked for */
	CUfunction _Atomic kernel[SIM_MAX_DEVICES];
} functions[FUNCTIONS];
static _Atomic unsigned function_count;

/* ---- modules ---- */

hipError_t i_hipModuleLoadData(hipModule_t *m, const void *image)
{
	ENTER();
	if (!m || !image)
		return hipErrorInvalidValue;
	return to_hip(CU(cuModuleLoadData, (CUmodule *)m, image));
}

hipError_t i_hipModuleLoadDataEx(hipModule_t *m, const void *image, unsigned n,
				 hipJitOption *options, void **values)
{
	return i_hipModuleLoadData(m, image);
}

hipError_t i_hipModuleLoad(hipModule_t *m, const char *path)
{
	ENTER();
	if (!m || !path)
		return hipErrorInvalidValue;
	return to_hip(CU(cuModuleLoad, (CUmodule *)m, path));
}

hipError_t i_hipModuleUnload(hipModule_t m)
{
	ENTER();
	return m ? to_hip(CU(cuModuleUnload, (CUmodule)m)) : hipErrorInvalidHandle;
}

hipError_t i_hipModuleGetFunction(hipFunction_t *f, hipModule_t m, const char *name)
{
	ENTER();
	if (!f || !m || !name)
		return hipErrorInvalidValue;
	return to_hip(CU(cuModuleGetFunction, (CUfunction *)f, (CUmodule)m, name));
}

hipError_t i_hipModuleGetGlobal(hipDeviceptr_t *p, size_t *n, hipModule_t m, const char *name)
{
	ENTER();
	if (!m || !name)
		return hipErrorInvalidValue;
	return to_hip(CU(cuModuleGetGlobal, (CUdeviceptr *)p, n, (CUmodule)m, name));
}

/* ---- launches ---- */

hipError_t i_hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
				   unsigned bx, unsigned by, unsigned bz, unsigned shared,
				   hipStream_t s, void **params, void **extra)
{
	ENTER_STREAM(s);
	if (!f)
		return hipErrorInvalidImage;
	return to_hip(CU(cuLaunchKernel, (CUfunction)f, gx, gy, gz, bx, by, bz, shared, (CUstream)s,
			 params, extra));
}

/* Here the sizes are those of the whole grid, in threads. */
hipError_t i_hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz,
				      uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
				      hipStream_t s, void **params, void **extra, hipEvent_t start,
				      hipEvent_t stop, uint32_t flags)
{
	hipError_t e = bx && by && bz ? hipSuccess : hipErrorInvalidValue;

	if (!e && start)
		e = i_hipEventRecord(start, s);
	if (!e)
		e = i_hipModuleLaunchKernel(f, gx / bx, gy / by, gz / bz, bx, by, bz,
					    (unsigned)shared, s, params, extra);
	if (!e && stop)
		e = i_hipEventRecord(stop, s);
	return e;
}

/* ---- the kernels of this device ---- */

/* Of the current device. NULL: there is none. */
static CUfunction own_kernel(const char *name)
{
	int device = current_device();
	unsigned turn = atomic_load(&context_turn);
	CUfunction f = NULL;
	CUresult r = 0;

	if (context_enter())
		return NULL;
	pthread_mutex_lock(&kernels_lock);
	if (!modules[device] || loaded_in[device] != turn) {
		for (unsigned i = 0; i < FUNCTIONS; i++)
			atomic_store(&functions[i].kernel[device], NULL);
		r = CU(cuModuleLoadData, &modules[device], kernels_ptx);
		loaded_in[device] = turn;
	}
	if (r)
		modules[device] = NULL;
	else
		r = CU(cuModuleGetFunction, &f, modules[device], name);
	pthread_mutex_unlock(&kernels_lock);
	if (r)
		fprintf(stderr, "somacuda: no kernel %s: error %u\n", name, r);
	return r ? NULL : f;
}

#pragma GCC visibility push(default)
hipFunction_t somacuda_kernel(const char *name);
int somacuda_spin(hipStream_t s, double us);
int somacuda_register(const void *function, const char *name);
#pragma GCC visibility pop

hipFunction_t somacuda_kernel(const char *name)
{
	return (hipFunction_t)own_kernel(name);
}

int somacuda_spin(hipStream_t s, double us)
{
	static __thread CUfunction spin __attribute__((tls_model("initial-exec")));
	static __thread unsigned turn __attribute__((tls_model("initial-exec")));
	static __thread int device __attribute__((tls_model("initial-exec")));
	unsigned long long ns = us > 0 ? (unsigned long long)(us * 1e3) : 0;
	void *params[] = {&ns};

	if (!spin || turn != atomic_load(&context_turn) || device != current_device()) {
		turn = atomic_load(&context_turn);
		device = current_device();
		spin = own_kernel("spin");
	}
	if (!spin || context_enter() || !stream_known(s))
		return -1;
	return CU(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, (CUstream)s, params, NULL) ? -1 : 0;
}

int somacuda_register(const void *function, const char *name)
{
	unsigned n;
	int ok = 0;

	if (!own_kernel(name))
		return -1;
	pthread_mutex_lock(&kernels_lock);
	n = atomic_load(&function_count);
	if (n < FUNCTIONS) {
		functions[n].host = function;
		snprintf(functions[n].name, sizeof functions[n].name, "%s", name);
		atomic_store(&function_count, n + 1);
		ok = 1;
	}
	pthread_mutex_unlock(&kernels_lock);
	return ok ? 0 : -1;
}

hipError_t i_hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
			     size_t shared, hipStream_t s)
{
	unsigned n = atomic_load(&function_count), i = 0;
	CUfunction f;

	while (i < n && functions[i].host != function)
		i++;
	if (i == n)
		return hipErrorInvalidDeviceFunction;
	f = atomic_load(&functions[i].kernel[current_device()]);
	if (!f || loaded_in[current_device()] != atomic_load(&context_turn)) {
		f = own_kernel(functions[i].name);
		atomic_store(&functions[i].kernel[current_device()], f);
	}
	return f ? i_hipModuleLaunchKernel((hipFunction_t)f, grid.x, grid.y, grid.z, block.x,
					   block.y, block.z, (unsigned)shared, s, args, NULL) :
		   hipErrorInvalidDeviceFunction;
}

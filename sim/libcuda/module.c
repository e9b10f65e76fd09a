/* SPDX-License-Identifier: MIT */
/* Modules and launches. Nothing compiles PTX here: an entry of a module runs the function of its
 * name below. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/kernel.h"
#include "hip/thread_state.h"
#include "libcuda/call.h"
#include "libcuda/context.h"

void somasim_register_kernel_args(const void *host, void (*body)(void **args), const size_t *sizes);

struct module {
	char *text; /* PTX */
	int device; /* whose context it is loaded in */
	struct module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules; /* that are loaded */

/* ---- the kernels of cuda/kernels.ptx ---- */

static void wait_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	if (ns)
		nanosleep(&t, NULL);
}

static void fill(volatile uint32_t *p, uint64_t n, uint32_t value)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = value;
}

static uint32_t differing(const volatile uint32_t *p, uint64_t n, uint32_t value)
{
	uint32_t bad = 0;

	for (uint64_t i = 0; i < n; i++)
		bad += p[i] != value;
	return bad;
}

static void spin(void **a)
{
	wait_ns(*(uint64_t *)a[0]);
}

static void spin_fill(void **a)
{
	wait_ns(*(uint64_t *)a[3]);
	fill(*(uint32_t **)a[0], *(uint64_t *)a[1], *(uint32_t *)a[2]);
}

static void check(void **a)
{
	uint32_t bad = differing(*(uint32_t **)a[0], *(uint64_t *)a[1], *(uint32_t *)a[2]);

	__atomic_fetch_add(*(uint32_t **)a[3], bad, __ATOMIC_RELAXED);
}

static void hold(void **a)
{
	uint32_t *p = *(uint32_t **)a[0], value = *(uint32_t *)a[2];
	uint64_t n = *(uint64_t *)a[1];

	fill(p, n, value);
	wait_ns(*(uint64_t *)a[3]);
	__atomic_fetch_add(*(uint32_t **)a[4], differing(p, n, value), __ATOMIC_RELAXED);
}

static const struct {
	const char *name;
	void (*body)(void **args);
	size_t sizes[6]; /* of the parameters; 0 ends them */
} kernels[] = {
	{"spin", spin, {8}},
	{"spin_fill", spin_fill, {8, 8, 4, 8}},
	{"check", check, {8, 8, 4, 8}},
	{"hold", hold, {8, 8, 4, 8, 8}},
};

/* ---- modules ---- */

static CUresult load(CUmodule *out, const char *text)
{
	struct module *m;

	if (!strstr(text, ".version") || !strstr(text, ".target"))
		return CUDA_ERROR_INVALID_IMAGE;
	m = calloc(1, sizeof *m);
	m->text = strdup(text);
	m->device = current_device();
	pthread_mutex_lock(&lock);
	m->next = modules;
	modules = m;
	pthread_mutex_unlock(&lock);
	*out = (CUmodule)m;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *m, const void *image)
{
	RUN(cuModuleLoadData, NEEDS_CONTEXT, load(m, image));
}

CUresult cuModuleLoad(CUmodule *m, const char *path)
{
	RUN(cuModuleLoad, NEEDS_CONTEXT, CUDA_ERROR_NOT_SUPPORTED);
}

/* Unloads that module, or (NULL) all of the device. */
static void unload_some(const struct module *which, int device)
{
	struct module **at = &modules, *m;

	pthread_mutex_lock(&lock);
	while ((m = *at)) {
		if (which ? m != which : m->device != device) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		free(m->text);
		free(m);
	}
	pthread_mutex_unlock(&lock);
}

void modules_end(int device)
{
	unload_some(NULL, device);
}

static CUresult unload(const struct module *m)
{
	unload_some(m, -1);
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m)
{
	RUN(cuModuleUnload, NEEDS_CONTEXT, unload((const struct module *)m));
}

static CUresult get_function(CUfunction *f, const struct module *m, const char *name)
{
	char entry[96];

	snprintf(entry, sizeof entry, ".entry %s(", name);
	if (!strstr(m->text, entry))
		return CUDA_ERROR_NOT_FOUND;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (!strcmp(kernels[i].name, name)) {
			somasim_register_kernel_args((const void *)kernels[i].body, kernels[i].body,
						     kernels[i].sizes);
			*f = (CUfunction)sim_kernel_at((const void *)kernels[i].body);
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	RUN(cuModuleGetFunction, NEEDS_CONTEXT, get_function(f, (const struct module *)m, name));
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule m, const char *name)
{
	RUN(cuModuleGetGlobal, NEEDS_CONTEXT, CUDA_ERROR_NOT_FOUND);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
			void **extra)
{
	RUN(cuLaunchKernel, NEEDS_CONTEXT,
	    i_hipModuleLaunchKernel((hipFunction_t)f, gx, gy, gz, bx, by, bz, shared, stream_arg(s),
				    params, extra));
}

/* SPDX-License-Identifier: MIT */
/*
 * Kernels: code objects are accepted and not executed. A kernel runs the host
 * function somasim_kernel_<name>, where the process has one; anything else is
 * a no-op that is named once.
 *
 * Locks: fn_lock (tables). Nothing is taken inside it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel.h"

#define MAX_ARGS 16
#define GUESS 64              /* bytes copied per argument of unknown size */

pthread_mutex_t fn_lock = PTHREAD_MUTEX_INITIALIZER;
struct var *vars;
static struct fn *fns;
static __thread const uint32_t *launch_dims;

/* ---- what the program may supply, found by dlsym ---- */

#pragma GCC visibility push(default)
void somasim_register_kernel(const void *host, kernel_body body);
void somasim_register_kernel_args(const void *host, kernel_body body, const size_t *sizes);
void somasim_launch_dims(uint32_t grid[3], uint32_t block[3]);
#pragma GCC visibility pop

struct fn *fn_by(const void *host, const char *name, bool create)
{
	struct fn *f;

	for (f = fns; f; f = f->next)
		if ((host && f->host == host) || (!host && name && !f->host && f->name && !strcmp(f->name, name)))
			return f;
	if (!create)
		return NULL;
	f = calloc(1, sizeof *f);
	if (!f)
		abort();
	f->host = host;
	f->name = name ? strdup(name) : NULL;
	f->next = fns;
	fns = f;
	return f;
}

void somasim_register_kernel_args(const void *host, kernel_body body, const size_t *sizes)
{
	struct fn *f;

	pthread_mutex_lock(&fn_lock);
	f = fn_by(host, NULL, true);
	f->body = body;
	f->sizes = sizes;
	f->looked = true;
	pthread_mutex_unlock(&fn_lock);
}

void somasim_register_kernel(const void *host, kernel_body body)
{
	somasim_register_kernel_args(host, body, NULL);
}

/* Inside a kernel body: the launch's dimensions. */
void somasim_launch_dims(uint32_t grid[3], uint32_t block[3])
{
	for (int i = 0; i < 3; i++) {
		grid[i] = launch_dims ? launch_dims[i] : 0;
		block[i] = launch_dims ? launch_dims[3 + i] : 0;
	}
}

static void look_up(struct fn *f)
{
	char sym[300];

	if (f->looked || !f->name)
		return;
	f->looked = true;
	snprintf(sym, sizeof sym, "somasim_kernel_%s", f->name);
	*(void **)&f->body = dlsym(RTLD_DEFAULT, sym);
	snprintf(sym, sizeof sym, "somasim_kernel_%s_args", f->name);
	f->sizes = dlsym(RTLD_DEFAULT, sym);
}

void kernel_run(const struct cmd *c)
{
	if (!c->kernel.body)
		return;
	launch_dims = c->kernel.dims;
	c->kernel.body(c->kernel.args);
	launch_dims = NULL;
}

/* ---- launching ---- */

/* The array of an unknown kernel has no length: what can be read is copied,
 * by the kernel, which refuses instead of faulting. */
static size_t try_read(void *to, const void *from, size_t n)
{
	struct iovec l = { to, n }, r = { (void *)(uintptr_t)from, n };
	ssize_t got = process_vm_readv(getpid(), &l, 1, &r, 1, 0);

	return got < 0 ? 0 : (size_t)got;
}

static void copy_args(struct cmd *c, const struct fn *f, void **args, void **extra)
{
	size_t total = 0, n = 0;
	char *at;

	if (extra && extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
		size_t len = 0;

		for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2)
			if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
				len = *(size_t *)extra[i + 1];
		/* One packed buffer: args[0] points at a copy of it. */
		void **v = blob_new(2 * sizeof *v + len);

		memcpy(v + 2, extra[1], len);
		v[0] = v + 2;
		c->owned = c->kernel.args = v;
		return;
	}
	if (!args)
		return;
	if (f->sizes) {
		while (f->sizes[n])
			total += SIM_ALIGN(f->sizes[n++], 16);
		c->owned = c->kernel.args = blob_new((n + 2) * sizeof(void *) + total + 16);
		at = (char *)SIM_ALIGN((uintptr_t)(c->kernel.args + n + 1), 16);
		for (size_t i = 0; i < n; i++) {
			memcpy(at, args[i], f->sizes[i]);
			c->kernel.args[i] = at;
			at += SIM_ALIGN(f->sizes[i], 16);
		}
		return;
	}
	void *ptrs[MAX_ARGS];

	n = try_read(ptrs, args, sizeof ptrs) / sizeof *ptrs;
	c->owned = c->kernel.args = blob_new((MAX_ARGS + 2) * sizeof(void *) + MAX_ARGS * GUESS);
	at = (char *)SIM_ALIGN((uintptr_t)(c->kernel.args + MAX_ARGS + 1), 16);
	for (size_t i = 0; i < n; i++) {
		char buf[GUESS];
		size_t got = ptrs[i] ? try_read(buf, ptrs[i], GUESS) : 0;

		if (!got)
			break;
		memcpy(at, buf, got);
		c->kernel.args[i] = at;
		at += GUESS;
	}
}

static struct cmd *launch_cmd(struct fn *f, const uint32_t dims[6], void **args, void **extra)
{
	struct cmd *c = cmd_new(C_KERNEL);

	pthread_mutex_lock(&fn_lock);
	look_up(f);
	if (!f->body && !f->warned) {
		f->warned = true;
		fprintf(stderr, "somasim: kernel %s has no body here and does nothing\n", f->name ? f->name : "(unnamed)");
	}
	pthread_mutex_unlock(&fn_lock);
	c->kernel.body = f->body;
	c->kernel.name = f->name;
	c->kernel.func = f->host;
	memcpy(c->kernel.dims, dims, sizeof c->kernel.dims);
	if (f->body)
		copy_args(c, f, args, extra);
	return c;
}

struct cmd *kernel_cmd(const void *func, dim3 grid, dim3 block, void **args, void **extra, hipError_t *e)
{
	uint32_t dims[6] = { grid.x, grid.y, grid.z, block.x, block.y, block.z };
	struct fn *f;

	*e = hipErrorInvalidDeviceFunction;
	pthread_mutex_lock(&fn_lock);
	f = func ? fn_by(func, NULL, false) : NULL;
	pthread_mutex_unlock(&fn_lock);
	if (!f)
		return NULL;
	*e = hipErrorInvalidConfiguration;
	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z ||
	    (uint64_t)block.x * block.y * block.z > 1024)
		return NULL;
	*e = hipSuccess;
	return launch_cmd(f, dims, args, extra);
}

struct cmd *module_kernel_cmd(hipFunction_t h, const uint32_t dims[6], void **args, void **extra, hipError_t *e)
{
	*e = h ? hipSuccess : hipErrorInvalidImage;
	if (!h)
		return NULL;
	for (int i = 0; i < 6; i++)
		if (!dims[i]) {
			*e = hipErrorInvalidValue;
			return NULL;
		}
	return launch_cmd((struct fn *)h, dims, args, extra);
}

hipError_t i_hipLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t h)
{
	hipError_t e;
	struct cmd *c = kernel_cmd(func, grid, block, args, NULL, &e);

	return c ? submit(h, c, false) : e;
}

hipError_t i_hipLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, unsigned shared, hipStream_t h)
{
	return i_hipLaunchKernel(func, grid, block, args, shared, h);
}

hipError_t i_hipExtLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t h, hipEvent_t start, hipEvent_t stop, int flags)
{
	hipError_t e;
	struct cmd *c = kernel_cmd(func, grid, block, args, NULL, &e);

	if (!c)
		return e;
	if (start)
		i_hipEventRecord(start, h);
	e = submit(h, c, false);
	if (!e && stop)
		e = i_hipEventRecord(stop, h);
	return e;
}

static hipError_t multi(hipLaunchParams *list, int n)
{
	if (!list || n <= 0)
		return hipErrorInvalidValue;
	for (int i = 0; i < n; i++) {
		hipError_t e = i_hipLaunchKernel(list[i].func, list[i].gridDim, list[i].blockDim, list[i].args,
						 list[i].sharedMem, list[i].stream);

		if (e)
			return e;
	}
	return hipSuccess;
}

hipError_t i_hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *list, int n, unsigned flags) { return multi(list, n); }
hipError_t i_hipExtLaunchMultiKernelMultiDevice(hipLaunchParams *list, int n, unsigned flags) { return multi(list, n); }

hipError_t i_hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, hipStream_t h, void **args, void **extra)
{
	uint32_t dims[6] = { gx, gy, gz, bx, by, bz };
	hipError_t e;
	struct cmd *c = module_kernel_cmd(f, dims, args, extra, &e);

	return c ? submit(h, c, false) : e;
}

hipError_t i_hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, size_t shared, hipStream_t h, void **args, void **extra, hipEvent_t start, hipEvent_t stop, uint32_t flags)
{
	/* Global sizes here, blocks everywhere else. */
	uint32_t dims[6] = { bx ? gx / bx : 0, by ? gy / by : 0, bz ? gz / bz : 0, bx, by, bz };
	hipError_t e;
	struct cmd *c = module_kernel_cmd(f, dims, args, extra, &e);

	if (!c)
		return e;
	if (start)
		i_hipEventRecord(start, h);
	e = submit(h, c, false);
	if (!e && stop)
		e = i_hipEventRecord(stop, h);
	return e;
}

/* ---- the <<< >>> protocol ---- */

static __thread struct {
	dim3 grid, block;
	size_t shared;
	hipStream_t stream;
	void *args[64];
	char data[2048];
	int n;
} pending[8];
static __thread int npending;

hipError_t i___hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t h)
{
	if (npending == 8)
		return hipErrorInvalidValue;
	pending[npending].grid = grid;
	pending[npending].block = block;
	pending[npending].shared = shared;
	pending[npending].stream = h;
	pending[npending++].n = 0;
	return hipSuccess;
}

hipError_t i___hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *h)
{
	if (!npending)
		return hipErrorMissingConfiguration;
	npending--;
	*grid = pending[npending].grid;
	*block = pending[npending].block;
	*shared = pending[npending].shared;
	*h = pending[npending].stream;
	return hipSuccess;
}

hipError_t i_hipConfigureCall(dim3 grid, dim3 block, size_t shared, hipStream_t h)
{
	return i___hipPushCallConfiguration(grid, block, shared, h);
}

hipError_t i_hipSetupArgument(const void *arg, size_t size, size_t off)
{
	if (!npending)
		return hipErrorMissingConfiguration;
	if (off + size > sizeof pending[0].data || pending[npending - 1].n == 64)
		return hipErrorInvalidValue;
	memcpy(pending[npending - 1].data + off, arg, size);
	pending[npending - 1].args[pending[npending - 1].n++] = pending[npending - 1].data + off;
	return hipSuccess;
}

hipError_t i_hipLaunchByPtr(const void *func)
{
	dim3 grid, block;
	size_t shared;
	hipStream_t h;
	hipError_t e = i___hipPopCallConfiguration(&grid, &block, &shared, &h);

	return e ? e : i_hipLaunchKernel(func, grid, block, pending[npending].args, shared, h);
}

/* ---- registration ---- */

#pragma GCC visibility push(default)
void **__hipRegisterFatBinary(const void *data);
void __hipUnregisterFatBinary(void **modules);
void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name, unsigned limit,
			   void *tid, void *bid, dim3 *block, dim3 *grid, int *wsize);
void __hipRegisterVar(void **modules, void *var, char *host, char *name, int ext, size_t size, int constant, int global);
void __hipRegisterManagedVar(void *module, void **pointer, void *init, const char *name, size_t size, unsigned align);
void __hipRegisterSurface(void **modules, void *var, char *host, char *name, int type, int ext);
void __hipRegisterTexture(void **modules, void *var, char *host, char *name, int type, int norm, int ext);
void __hipGetPCH(const char **pch, unsigned *size);

void **__hipRegisterFatBinary(const void *data)
{
	void **m = calloc(1, sizeof *m);

	if (m)
		*m = (void *)(uintptr_t)data;
	return m;
}

/* The real one waits for every stream here; so late in a process a held
 * stream would hang the exit, and nothing is left to protect. */
void __hipUnregisterFatBinary(void **modules)
{
	free(modules);
}

void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name, unsigned limit,
			   void *tid, void *bid, dim3 *block, dim3 *grid, int *wsize)
{
	struct fn *f;

	pthread_mutex_lock(&fn_lock);
	f = fn_by(host, NULL, true);
	free(f->name);
	f->name = strdup(name ? name : device);
	pthread_mutex_unlock(&fn_lock);
}

static struct var *var_new(const void *host, const char *name, size_t size)
{
	struct var *v = calloc(1, sizeof *v);

	if (!v)
		abort();
	v->host = host;
	v->name = strdup(name ? name : "");
	v->size = size;
	pthread_mutex_lock(&fn_lock);
	v->next = vars;
	vars = v;
	pthread_mutex_unlock(&fn_lock);
	return v;
}

void __hipRegisterVar(void **modules, void *var, char *host, char *name, int ext, size_t size, int constant, int global)
{
	var_new(var, name, size);
}

void __hipRegisterManagedVar(void *module, void **pointer, void *init, const char *name, size_t size, unsigned align)
{
	struct var *v = var_new(pointer, name, size);

	v->managed = sim_host_alloc(size, 0, SIM_MANAGED, 0);
	if (v->managed && init)
		memcpy(v->managed, init, size);
	*pointer = v->managed;
}

void __hipRegisterSurface(void **modules, void *var, char *host, char *name, int type, int ext)
{
}

void __hipRegisterTexture(void **modules, void *var, char *host, char *name, int type, int norm, int ext)
{
}

void __hipGetPCH(const char **pch, unsigned *size)
{
	*pch = NULL;
	*size = 0;
}

const char *hipKernelNameRef(const hipFunction_t f)
{
	return f ? ((struct fn *)f)->name : NULL;
}

const char *hipKernelNameRefByPtr(const void *host, hipStream_t h)
{
	struct fn *f;

	pthread_mutex_lock(&fn_lock);
	f = fn_by(host, NULL, false);
	pthread_mutex_unlock(&fn_lock);
	return f ? f->name : NULL;
}
#pragma GCC visibility pop

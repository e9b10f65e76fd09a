/* SPDX-License-Identifier: MIT */
/* Launches of kernels, and the calls that the compiler makes for <<< >>>. */
#include <stddef.h>
#include <string.h>

#include "device/command.h"
#include "device/kernel.h"
#include "hip/entry_points.h"
#include "hip/launch.h"
#include "hip/submit.h"

/* Arguments in one packed buffer, in the `extra` array. NULL: there is none. */
static const void *packed_arguments(void **extra, size_t *size)
{
	*size = 0;
	if (!extra || extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER)
		return NULL;
	for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2)
		if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
			*size = *(size_t *)extra[i + 1];
	return extra[1];
}

static struct sim_command *command(struct sim_kernel *k, const uint32_t dims[6], void **args,
				   void **extra)
{
	size_t size;
	const void *packed = packed_arguments(extra, &size);

	return sim_kernel_command(k, dims, args, packed, size);
}

struct sim_command *launch_command(const void *func, dim3 grid, dim3 block, void **args,
				   void **extra, hipError_t *e)
{
	uint32_t dims[6] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
	struct sim_kernel *k = sim_kernel_at(func);

	*e = hipErrorInvalidDeviceFunction;
	if (!k)
		return NULL;
	*e = hipErrorInvalidConfiguration;
	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z ||
	    (uint64_t)block.x * block.y * block.z > 1024)
		return NULL;
	*e = hipSuccess;
	return command(k, dims, args, extra);
}

static struct sim_command *module_launch_command(hipFunction_t f, const uint32_t dims[6],
						 void **args, void **extra, hipError_t *e)
{
	*e = f ? hipSuccess : hipErrorInvalidImage;
	for (int i = 0; f && i < 6; i++)
		if (!dims[i])
			*e = hipErrorInvalidValue;
	return *e ? NULL : command((struct sim_kernel *)f, dims, args, extra);
}

hipError_t i_hipLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
			     hipStream_t h)
{
	hipError_t e;
	struct sim_command *c = launch_command(func, grid, block, args, NULL, &e);

	return c ? submit(h, c, false) : e;
}

hipError_t i_hipLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					unsigned shared, hipStream_t h)
{
	return i_hipLaunchKernel(func, grid, block, args, shared, h);
}

hipError_t i_hipExtLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
				hipStream_t h, hipEvent_t start, hipEvent_t stop, int flags)
{
	hipError_t e;
	struct sim_command *c = launch_command(func, grid, block, args, NULL, &e);

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
		hipError_t e = i_hipLaunchKernel(list[i].func, list[i].gridDim, list[i].blockDim,
						 list[i].args, list[i].sharedMem, list[i].stream);

		if (e)
			return e;
	}
	return hipSuccess;
}

hipError_t i_hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *list, int n, unsigned flags)
{
	return multi(list, n);
}

hipError_t i_hipExtLaunchMultiKernelMultiDevice(hipLaunchParams *list, int n, unsigned flags)
{
	return multi(list, n);
}

hipError_t i_hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
				   unsigned bx, unsigned by, unsigned bz, unsigned shared,
				   hipStream_t h, void **args, void **extra)
{
	uint32_t dims[6] = {gx, gy, gz, bx, by, bz};
	hipError_t e;
	struct sim_command *c = module_launch_command(f, dims, args, extra, &e);

	return c ? submit(h, c, false) : e;
}

hipError_t i_hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz,
				      uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
				      hipStream_t h, void **args, void **extra, hipEvent_t start,
				      hipEvent_t stop, uint32_t flags)
{
	/* This call takes the number of threads; the others take the number of blocks. */
	uint32_t dims[6] = {bx ? gx / bx : 0, by ? gy / by : 0, bz ? gz / bz : 0, bx, by, bz};
	hipError_t e;
	struct sim_command *c = module_launch_command(f, dims, args, extra, &e);

	if (!c)
		return e;
	if (start)
		i_hipEventRecord(start, h);
	e = submit(h, c, false);
	if (!e && stop)
		e = i_hipEventRecord(stop, h);
	return e;
}

hipError_t i_hipHccModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz,
				      uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
				      hipStream_t h, void **args, void **extra, hipEvent_t start,
				      hipEvent_t stop)
{
	return i_hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, h, args, extra, start,
					  stop, 0);
}

hipError_t i_hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy,
					      unsigned gz, unsigned bx, unsigned by, unsigned bz,
					      unsigned shared, hipStream_t h, void **args)
{
	return i_hipModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, h, args, NULL);
}

/* hipFunctionLaunchParams, which the headers have since 5.5. */
struct function_launch {
	hipFunction_t f;
	uint32_t dims[6], shared;
	hipStream_t stream;
	void **args;
};

hipError_t i_hipModuleLaunchCooperativeKernelMultiDevice(void *list, unsigned n, unsigned flags)
{
	const struct function_launch *l = list;

	if (!l || !n)
		return hipErrorInvalidValue;
	for (unsigned i = 0; i < n; i++) {
		const uint32_t *d = l[i].dims;
		hipError_t e = i_hipModuleLaunchKernel(l[i].f, d[0], d[1], d[2], d[3], d[4], d[5],
						       l[i].shared, l[i].stream, l[i].args, NULL);

		if (e)
			return e;
	}
	return hipSuccess;
}

/* hipLaunchConfig_t and HIP_LAUNCH_CONFIG, which the headers have since 7.0. */
struct launch_config {
	uint32_t dims[6];
	size_t shared;
	hipStream_t stream;
	void *attributes;
	uint32_t count;
};
_Static_assert(offsetof(struct launch_config, stream) == 32, "hipLaunchConfig_t");

hipError_t i_hipLaunchKernelExC(const void *config, const void *func, void **args)
{
	const struct launch_config *c = config;

	if (!c)
		return hipErrorInvalidValue;
	return i_hipLaunchKernel(func, (dim3){c->dims[0], c->dims[1], c->dims[2]},
				 (dim3){c->dims[3], c->dims[4], c->dims[5]}, args, c->shared,
				 c->stream);
}

hipError_t i_hipDrvLaunchKernelEx(const void *config, hipFunction_t f, void **args, void **extra)
{
	const struct launch_config *c = config;
	const uint32_t *d = c ? c->dims : NULL;

	/* The shared memory is 32 bits there, in front of padding. */
	return c ? i_hipModuleLaunchKernel(f, d[0], d[1], d[2], d[3], d[4], d[5],
					   (unsigned)c->shared, c->stream, args, extra) :
		   hipErrorInvalidValue;
}

/* ---- <<< >>> ---- */

static __thread struct {
	dim3 grid, block;
	size_t shared;
	hipStream_t stream;
} pending[8]; /* configurations that were pushed, innermost last */
static __thread int npending;

hipError_t i___hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t h)
{
	if (npending == 8)
		return hipErrorInvalidValue;
	pending[npending].grid = grid;
	pending[npending].block = block;
	pending[npending].shared = shared;
	pending[npending++].stream = h;
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

hipError_t i_hipLaunchByPtr(const void *func)
{
	dim3 grid, block;
	size_t shared;
	hipStream_t h;
	hipError_t e = i___hipPopCallConfiguration(&grid, &block, &shared, &h);

	return e ? e : i_hipLaunchKernel(func, grid, block, NULL, shared, h);
}

/* SPDX-License-Identifier: MIT */
/* Programs that launch kernels, whose arguments the metadata of a small code object describes. */
#include "code_writer.h"
#include "corpus.h"

static hipFunction_t kernel(const char *name)
{
	static const char *const kernels[] = {"fill", "pi", "copy", "ppih", "in_struct", "is", "number", "l", NULL};
	static struct code_writer image;
	hipModule_t module;
	hipFunction_t f;

	OK(hipModuleLoadData(&module, code_object(&image, kernels)));
	OK(hipModuleGetFunction(&f, module, name));
	return f;
}

static void launch(const char *name, hipStream_t on, void **args)
{
	OK(hipModuleLaunchKernel(kernel(name), 1, 1, 1, 64, 1, 1, 0, on, args, NULL));
}

static void launch_fill(void *p, hipStream_t on)
{
	int n = 64;

	launch("fill", on, (void *[]){&p, &n});
}

static void launch_packed(void *p, void *q, hipStream_t on)
{
	struct { void *p, *q; int n; } packed = {p, q, 64};
	size_t size = sizeof(packed);
	void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 HIP_LAUNCH_PARAM_END};

	OK(hipModuleLaunchKernel(kernel("copy"), 1, 1, 1, 64, 1, 1, 0, on, NULL, extra));
}

static void kernel_before_allocation(void)
{
	void *p = block(a);

	launch_fill((char *)p + 128, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void kernel_after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	launch_fill(p, a);
}

static void kernel_races_with_free(void)
{
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, a));
	launch_fill(p, b);
}

static void free_under_kernel(void)
{
	void *p = block(a);

	order(a, b);
	launch_fill(p, b);
	OK(hipFreeAsync(p, a));
}

static void packed_after_free(void)
{
	void *p = block(a), *q = block(a);

	OK(hipFreeAsync(q, a));
	launch_packed(p, q, a);
	OK(hipFreeAsync(p, a));
}

static void pointer_in_structure(void)
{
	struct { long n; void *p; long m; } s = {1, block(a), 2};
	int n = 1;

	order(a, b);
	launch("in_struct", b, (void *[]){&n, &s});
	OK(hipFreeAsync(s.p, a));
}

const struct program wrong_kernels[] = {
	{"kernel-before-allocation", kernel_before_allocation, "use-before-alloc hipModuleLaunchKernel 2 1"},
	{"kernel-after-free", kernel_after_free, "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-races-with-free", kernel_races_with_free, "use-after-free-race hipModuleLaunchKernel 2 1"},
	{"free-under-kernel", free_under_kernel, "free-before-use hipModuleLaunchKernel 2 1"},
	{"packed-after-free", packed_after_free, "use-after-free hipModuleLaunchKernel 1 1"},
	{"pointer-in-structure", pointer_in_structure, "free-before-use hipModuleLaunchKernel 2 1"},
	{NULL, NULL, NULL},
};

/* ---- right ones -------------------------------------------------------------------- */

static void kernel_in_order(void)
{
	void *p = block(a), *q = block(b);

	order(a, b);
	launch_packed(q, p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, b));
}

/* A kernel may tell the host through memory that it sees, too, that it is done with the block. */
static void kernel_tells_host(void)
{
	void *p = block(a), *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	launch_packed(p, host, b);
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(b));
	OK(hipHostFree(host));
}

static void number_like_an_address(void)
{
	long n = 4096;

	launch("number", a, (void *[]){&n});
}

static void null_argument(void)
{
	launch_fill(NULL, a);
}

static void unknown_kernel(void)
{
	hipModule_t module;
	hipFunction_t f;
	void *p = block(a);

	OK(hipModuleLoadData(&module, "no code object"));
	OK(hipModuleGetFunction(&f, module, "unknown"));
	OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, b, (void *[]){&p}, NULL));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
}

const struct program right_kernels[] = {
#define P(name) {"right-" #name, name, NULL}
	P(kernel_in_order), P(kernel_tells_host), P(number_like_an_address), P(null_argument), P(unknown_kernel),
	{NULL, NULL, NULL},
};

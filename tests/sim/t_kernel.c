/* SPDX-License-Identifier: MIT */
/* Kernels with bodies: registered as compiled code does it, from a module, and by a test. */
#include "test.h"

extern void __hipRegisterFunction(void **, const void *, char *, const char *, unsigned, void *,
				  void *, dim3 *, dim3 *, int *);
extern void **__hipRegisterFatBinary(const void *);
extern void __hipUnregisterFatBinary(void **);

#pragma GCC visibility push(default)
void somasim_kernel_fill(void **args);
extern const size_t somasim_kernel_fill_args[];
const size_t somasim_kernel_fill_args[] = {sizeof(char *), sizeof(int), sizeof(size_t), 0};
#pragma GCC visibility pop

void somasim_kernel_fill(void **args)
{
	void (*dims)(uint32_t *, uint32_t *) = (void (*)(uint32_t *, uint32_t *))dlsym(
		RTLD_DEFAULT, "somasim_launch_dims");
	uint32_t g[3], b[3];

	dims(g, b);
	if (g[0] == 3 && b[0] == 64)
		memset(*(char **)args[0], *(int *)args[1], *(size_t *)args[2]);
}

static void stub_fill(void)
{
}
static void stub_other(void)
{
}
static void stub_none(void)
{
}

static void other(void **args)
{
	**(int **)args[0] += *(int *)args[1];
}

static void launch(const void *f, char *p, int v, size_t n, hipStream_t s)
{
	void *args[] = {&p, &v, &n};

	OK(hipLaunchKernel(f, (dim3){3, 1, 1}, (dim3){64, 1, 1}, args, 0, s));
	p = NULL; /* the launch has copied the arguments */
	v = 0;
}

int main(void)
{
	void (*reg)(const void *, void (*)(void **)) = (void (*)(
		const void *, void (*)(void **)))control("somasim_register_kernel");
	void **mod = __hipRegisterFatBinary("image");
	hipStream_t s;
	hipModule_t m;
	hipFunction_t f;
	char *d, back[64];
	int *n;

	__hipRegisterFunction(mod, (void *)stub_fill, "fill", "fill", 1024, NULL, NULL, NULL, NULL,
			      NULL);
	__hipRegisterFunction(mod, (void *)stub_none, "none", "none", 1024, NULL, NULL, NULL, NULL,
			      NULL);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMalloc((void **)&d, 4096));
	stall(s);
	launch((void *)stub_fill, d, 7, 64, s);
	release(s);
	OK(hipStreamSynchronize(s));
	OK(hipMemcpy(back, d, 64, hipMemcpyDeviceToHost));
	CHECK(back[0] == 7 && back[63] == 7);
	launch((void *)stub_none, d, 1, 1, s); /* prints a warning and does nothing */
	EXPECT(hipLaunchKernel((void *)main, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, s),
	       hipErrorInvalidDeviceFunction);

	/* A body that the test registers, without the sizes of its arguments. */
	reg((void *)stub_other, other);
	OK(hipHostMalloc((void **)&n, 4, 0));
	for (int i = 1; i <= 10; i++) {
		void *args[] = {&n, &i};

		OK(hipLaunchKernel((void *)stub_other, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0,
				   s));
	}
	OK(hipStreamSynchronize(s));
	CHECK(*n == 55);

	OK(hipModuleLoadData(&m, "code object"));
	OK(hipModuleGetFunction(&f, m, "fill"));
	int v = 9;
	size_t len = 16;
	void *args[] = {&d, &v, &len};
	OK(hipModuleLaunchKernel(f, 3, 1, 1, 64, 1, 1, 0, s, args, NULL));
	OK(hipStreamSynchronize(s));
	OK(hipMemcpy(back, d, 64, hipMemcpyDeviceToHost));
	CHECK(back[0] == 9 && back[15] == 9 && back[16] == 7);

	/* The launch is captured, and runs when the graph is launched. */
	hipGraph_t g;
	hipGraphExec_t x;
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
	launch((void *)stub_fill, d, 3, 64, s);
	OK(hipStreamEndCapture(s, &g));
	OK(hipGraphInstantiate(&x, g, NULL, NULL, 0));
	OK(hipGraphDestroy(g));
	OK(hipGraphLaunch(x, s));
	OK(hipGraphExecDestroy(x));
	OK(hipStreamSynchronize(s));
	OK(hipMemcpy(back, d, 64, hipMemcpyDeviceToHost));
	CHECK(back[20] == 3);
	OK(hipModuleUnload(m));
	__hipUnregisterFatBinary(mod);
	return 0;
}

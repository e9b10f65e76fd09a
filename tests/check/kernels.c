/* SPDX-License-Identifier: MIT */
/* Programs that launch kernels, whose arguments the metadata of a small code object describes. On a
 * real device CHECK_CODE_OBJECT names a file with code, made from corpus.cl; what cannot run there
 * exits with 77. */
#include "code_writer.h"
#include "corpus.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/random.h"

static const char *code_file(void)
{
	return getenv("CHECK_CODE_OBJECT");
}

/* For a program whose code is none. */
static void no_real_code(void)
{
	if (code_file())
		exit(77);
}

hipFunction_t kernel(const char *name)
{
	static const char *const kernels[] = {
		"fill",    "pi",    "copy",   "ppih",   "in_struct", "is",      "number",
		"l",       "write", "pl",     "hidden", "ll",        "produce", "w",
		"consume", "c",     "choose", "rq",     "bias",      "ppci",    NULL};
	static struct code_writer image;
	hipModule_t module;
	hipFunction_t f;

	if (code_file())
		OK(hipModuleLoad(&module, code_file()));
	else
		OK(hipModuleLoadData(&module, code_object(&image, kernels)));
	OK(hipModuleGetFunction(&f, module, name));
	return f;
}

static void launch(const char *name, hipStream_t on, void **args)
{
	OK(hipModuleLaunchKernel(kernel(name), 1, 1, 1, 64, 1, 1, 0, on, args, NULL));
}

/* Code that is broken, in front of a page that cannot be read: a size in it may be anything. */
static void broken_modules(void)
{
	static const char *const kernels[] = {"torn", "ip", NULL};
	const size_t room = 1 << 16;
	char *pages = mmap(NULL, room + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *to;
	static uint8_t bundle[1 << 15];
	static struct code_writer code;
	uint64_t seed = 1;
	hipModule_t module;

	if (pages == MAP_FAILED || mprotect(pages, room, PROT_READ | PROT_WRITE))
		exit(3);
	no_real_code();
	for (int i = 0; i < 400; i++) {
		size_t size;

		code_object(&code, kernels);
		memset(bundle, 0, sizeof(bundle));
		code_bundle(bundle, &code);
		size = i % 2 ? code.size : 4096 + code.size;
		to = pages + room - size;
		memcpy(to, i % 2 ? code.data : bundle, size);
		/* In the headers, where offsets and sizes are, and anywhere. */
		for (int n = 1 + i % 3; n; n--)
			to[8 + next_random(&seed) % (n % 2 ? 56 : size - 8)] ^=
				(char)(1 + next_random(&seed) % 255);
		if (hipModuleLoadData(&module, to) == hipSuccess)
			(void)hipModuleUnload(module);
	}
	(void)hipGetLastError();
	munmap(pages, room + 4096);
}

/* A kernel of the program itself, as the compiler registers it. */
static const void *host_kernel(void)
{
	static const int image, stub;
	void **(*add)(const void *) = (void **(*)(const void *))dlsym(RTLD_DEFAULT,
								      "__hipRegisterFatBinary");
	void (*name)(void **, const void *, char *, const char *, unsigned, void *, void *, dim3 *,
		     dim3 *, int *) = (void (*)(void **, const void *, char *, const char *,
						unsigned, void *, void *, dim3 *, dim3 *,
						int *))dlsym(RTLD_DEFAULT, "__hipRegisterFunction");

	no_real_code();
	(void)kernel("fill"); /* loads the code */
	name(add(&image), &stub, (char *)"fill", "fill", 64, NULL, NULL, NULL, NULL, NULL);
	return &stub;
}

static void launch_fill(void *p, hipStream_t on)
{
	int n = 64;

	launch("fill", on, (void *[]){&p, &n});
}

static void launch_packed(void *p, void *q, hipStream_t on)
{
	struct {
		void *p, *q;
		int n;
	} packed = {p, q, 64};
	size_t size = sizeof(packed);
	void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, HIP_LAUNCH_PARAM_END};

	OK(hipModuleLaunchKernel(kernel("copy"), 1, 1, 1, 64, 1, 1, 0, on, NULL, extra));
}

/* The software device runs this for the kernel `write`, which sets bytes. */
void somasim_kernel_write(void **args);
extern const size_t somasim_kernel_write_args[];
__attribute__((visibility("default"))) const size_t somasim_kernel_write_args[] = {8, 8, 0};
__attribute__((visibility("default"))) void somasim_kernel_write(void **args)
{
	memset(*(void **)args[0], 0x11, *(size_t *)args[1]);
}

/* Bodies make the device copy the arguments, so that a node of a graph can be asked for them. */
void somasim_kernel_fill(void **args);
extern const size_t somasim_kernel_fill_args[];
__attribute__((visibility("default"))) const size_t somasim_kernel_fill_args[] = {8, 4, 0};
__attribute__((visibility("default"))) void somasim_kernel_fill(void **args)
{
	(void)args;
}

static void write_bytes(void *p, size_t bytes, hipStream_t on)
{
	launch("write", on, (void *[]){&p, &bytes});
}

static void write_past_end(void)
{
	void *p = block(a);

	write_bytes(p, BYTES + 3, a);
	OK(hipFreeAsync(p, a));
}

static void write_far_past_end(void)
{
	void *p = block(a);

	write_bytes((char *)p + BYTES + 100, 1, a);
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	p = block(a);
	OK(hipFreeAsync(p, a));
}

static void write_past_end_of_hip_malloc(void)
{
	void *p;

	OK(hipMalloc(&p, 100));
	write_bytes(p, 101, a);
	OK(hipFree(p));
}

static void write_past_end_of_leak(void)
{
	void *p = block(a);

	write_bytes(p, BYTES + 8, a);
}

static void kernel_before_allocation(void)
{
	void *p = block(a);

	launch_fill((char *)p + 128, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void second_launch_after_free(void)
{
	void *p = block(a);

	launch_fill(p, a);
	OK(hipFreeAsync(p, a));
	launch_fill(p, a);
}

static void kernel_after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	launch_fill(p, a);
}

/* A guarded block has lost its memory by now. */
static void kernel_after_free_and_wait(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	launch_fill(p, a);
}

static void kernel_after_hip_free(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipFree(p));
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

static void host_kernel_after_free(void)
{
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(hipLaunchKernel(host_kernel(), (dim3){1, 1, 1}, (dim3){64, 1, 1}, (void *[]){&p, &n}, 0,
			   a));
}

static void cooperative_after_free(void)
{
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(hipLaunchCooperativeKernel(host_kernel(), (dim3){1, 1, 1}, (dim3){64, 1, 1},
				      (void *[]){&p, &n}, 0, a));
}

static void several_devices(hipError_t (*launch_all)(hipLaunchParams *, int, unsigned))
{
	void *p = block(a), *q = block(b);
	int n = 64;
	void *first[] = {&p, &n}, *second[] = {&q, &n};
	hipLaunchParams list[] = {
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, first, 0, a},
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, second, 0, b},
	};

	OK(hipFreeAsync(q, b));
	OK(launch_all(list, 2, 0));
	OK(hipFreeAsync(p, a));
}

static void multi_device_after_free(void)
{
	several_devices(hipExtLaunchMultiKernelMultiDevice);
}

static void cooperative_multi_device_after_free(void)
{
	several_devices(hipLaunchCooperativeKernelMultiDevice);
}

static void multi_device_without_meeting(void)
{
	void *p = block(a);
	int n = 64;
	void *args[] = {&p, &n};
	hipLaunchParams list[] = {
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, args, 0, a},
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, args, 0, b},
	};

	OK(hipLaunchCooperativeKernelMultiDevice(list, 2, 3)); /* neither before nor after it */
	order(b, a);
	OK(hipFreeAsync(p, a));
}

/* ---- the other ways to launch; a release that lacks the call leaves the program out ---- */

static void *way(const char *name)
{
	void *call = dlsym(RTLD_DEFAULT, name);

	if (!call)
		exit(77);
	return call;
}

/* These two are given the number of threads, the others that of blocks. */
static void ext_after_free(void)
{
	hipError_t (*call)(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
			   uint32_t, size_t, hipStream_t, void **, void **, hipEvent_t, hipEvent_t,
			   uint32_t) = way("hipExtModuleLaunchKernel");
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(call(kernel("fill"), 64, 1, 1, 64, 1, 1, 0, a, (void *[]){&p, &n}, NULL, NULL, NULL, 0));
}

static void hcc_after_free(void)
{
	hipError_t (*call)(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
			   uint32_t, size_t, hipStream_t, void **, void **, hipEvent_t,
			   hipEvent_t) = way("hipHccModuleLaunchKernel");
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(call(kernel("fill"), 64, 1, 1, 64, 1, 1, 0, a, (void *[]){&p, &n}, NULL, NULL, NULL));
}

static void module_cooperative_after_free(void)
{
	hipError_t (*call)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
			   unsigned, unsigned, hipStream_t,
			   void **) = way("hipModuleLaunchCooperativeKernel");
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(call(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, a, (void *[]){&p, &n}));
}

static void module_multi_device_after_free(void)
{
	hipError_t (*call)(void *, unsigned,
			   unsigned) = way("hipModuleLaunchCooperativeKernelMultiDevice");
	void *p = block(a), *q = block(b);
	int n = 64;
	struct {
		hipFunction_t f;
		unsigned size[6], shared;
		hipStream_t on;
		void **args;
	} list[] = {
		{kernel("fill"), {1, 1, 1, 64, 1, 1}, 0, a, (void *[]){&p, &n}},
		{kernel("fill"), {1, 1, 1, 64, 1, 1}, 0, b, (void *[]){&q, &n}},
	};

	OK(hipFreeAsync(q, b));
	OK(call(list, 2, 0));
	OK(hipFreeAsync(p, a));
}

/* hipLaunchConfig_t and HIP_LAUNCH_CONFIG differ in how wide `shared` is. */
struct config {
	unsigned size[6];
	size_t shared;
	hipStream_t on;
	void *attributes;
	unsigned count;
};

static void config_after_free(void)
{
	hipError_t (*call)(const struct config *, const void *,
			   void **) = way("hipLaunchKernelExC");
	struct config config = {.size = {1, 1, 1, 64, 1, 1}, .on = a};
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(call(&config, host_kernel(), (void *[]){&p, &n}));
}

static void driver_config_after_free(void)
{
	hipError_t (*call)(const struct config *, hipFunction_t, void **,
			   void **) = way("hipDrvLaunchKernelEx");
	struct config config = {.size = {1, 1, 1, 64, 1, 1}, .on = a};
	void *p = block(a);
	int n = 64;

	OK(hipFreeAsync(p, a));
	OK(call(&config, kernel("fill"), (void *[]){&p, &n}, NULL));
}

/* A kernel of code that is compressed. */
static void compressed(unsigned version, int zstd)
{
	static const char *const kernels[] = {"squeezed", "ip", NULL};
	static struct code_writer code;
	static uint8_t image[32768];
	hipModule_t module;
	hipFunction_t f;
	void *p = block(a);
	int n = 64;

	no_real_code();
	code_object(&code, kernels);
	(void)code_packed(image, &code, version, zstd);
	OK(hipModuleLoadData(&module, image));
	OK(hipModuleGetFunction(&f, module, "squeezed"));
	OK(hipFreeAsync(p, a));
	OK(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, a, (void *[]){&n, &p}, NULL));
}

static void compressed_by_zlib(void)
{
	compressed(2, 0);
}

static void compressed_by_zstd(void)
{
	compressed(3, 1);
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
	struct {
		long n;
		void *p;
		long m;
	} s = {1, block(a), 2};
	int n = 1;

	order(a, b);
	launch("in_struct", b, (void *[]){&n, &s});
	OK(hipFreeAsync(s.p, a));
}

/* The free is after neither of the two uses, of which the first is certain. */
static void free_under_both(void)
{
	struct {
		long n;
		void *p;
		long m;
	} s = {1, block(a), 2};
	int n = 1;

	order(a, b);
	launch_fill(s.p, b);
	launch("in_struct", b, (void *[]){&n, &s});
	OK(hipFreeAsync(s.p, a));
}

/* An array whose indices begin with 1 has its base in front of its block, in another one. */
static void base_in_front(void)
{
	char *p[2], *low, *high;

	OK(hipMallocAsync((void **)&p[0], BYTES, a));
	OK(hipMallocAsync((void **)&p[1], BYTES, a));
	low = p[p[0] > p[1]];
	high = p[p[0] < p[1]];
	OK(hipFreeAsync(low, a));
	launch_fill(low + BYTES - 16, a);
	OK(hipFreeAsync(high, a));
}

/* The code shows that the kernel does not use its first argument. */
static void ignores_argument(void)
{
	void *p = block(a), *q = block(a);
	int n = 1;

	if (!code_file())
		exit(77);
	OK(hipFreeAsync(p, a));
	launch("ignore", a, (void *[]){&p, &q, &n});
	OK(hipFreeAsync(q, a));
}

static void race_with_what_is_ignored(void)
{
	void *p = block(a), *q = block(a), *h;
	int n = 1;

	if (!code_file())
		exit(77);
	OK(hipHostMalloc(&h, BYTES, 0));
	order(a, b);
	launch("ignore", a, (void *[]){&p, &q, &n});
	OK(hipMemcpyAsync(p, h, BYTES, hipMemcpyHostToDevice, b));
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
}

const struct program wrong_kernels[] = {
	{"kernel-ignores-argument", ignores_argument,
	 "possible use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-before-allocation", kernel_before_allocation,
	 "use-before-alloc hipModuleLaunchKernel 2 1"},
	{"kernel-after-free", kernel_after_free, "use-after-free hipModuleLaunchKernel 1 1"},
	{"second-launch-after-free", second_launch_after_free,
	 "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-races-with-free", kernel_races_with_free,
	 "use-after-free-race hipModuleLaunchKernel 2 1"},
	{"free-under-kernel", free_under_kernel, "free-before-use hipModuleLaunchKernel 2 1"},
	{"packed-after-free", packed_after_free, "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-compressed-by-zlib", compressed_by_zlib,
	 "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-compressed-by-zstd", compressed_by_zstd,
	 "use-after-free hipModuleLaunchKernel 1 1"},
	{"host-kernel-after-free", host_kernel_after_free, "use-after-free hipLaunchKernel 1 1"},
	{"cooperative-after-free", cooperative_after_free,
	 "use-after-free hipLaunchCooperativeKernel 1 1"},
	{"multi-device-after-free", multi_device_after_free,
	 "use-after-free hipExtLaunchMultiKernelMultiDevice 2 2"},
	{"cooperative-multi-device-after-free", cooperative_multi_device_after_free,
	 "use-after-free hipLaunchCooperativeKernelMultiDevice 2 2"},
	{"multi-device-without-meeting", multi_device_without_meeting,
	 "use-before-alloc hipLaunchCooperativeKernelMultiDevice 2 1"},
	{"ext-after-free", ext_after_free, "use-after-free hipExtModuleLaunchKernel 1 1"},
	{"hcc-after-free", hcc_after_free, "use-after-free hipHccModuleLaunchKernel 1 1"},
	{"module-cooperative-after-free", module_cooperative_after_free,
	 "use-after-free hipModuleLaunchCooperativeKernel 1 1"},
	{"module-multi-device-after-free", module_multi_device_after_free,
	 "use-after-free hipModuleLaunchCooperativeKernelMultiDevice 2 2"},
	{"config-after-free", config_after_free, "use-after-free hipLaunchKernelExC 1 1"},
	{"driver-config-after-free", driver_config_after_free,
	 "use-after-free hipDrvLaunchKernelEx 1 1"},
	{"pointer-in-structure", pointer_in_structure,
	 "possible free-before-use hipModuleLaunchKernel 2 1"},
	{"base-in-front", base_in_front,
	 "possible use-after-free hipModuleLaunchKernel 1 1|"
	 "use-after-free hipModuleLaunchKernel 1 1"}, /* where no block is near */
	{"kernel-after-free-and-wait", kernel_after_free_and_wait,
	 "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-after-hip-free", kernel_after_hip_free,
	 "use-after-free hipModuleLaunchKernel 1 0"},
	{"free-under-both", free_under_both, "free-before-use hipModuleLaunchKernel 2 1"},
	{"write-past-end", write_past_end,
	 "overwritten-padding hipMallocAsync 0 3|memory-fault hipMallocAsync past 0"},
	{"write-far-past-end", write_far_past_end,
	 "overwritten-padding hipMallocAsync 100 1|memory-fault hipMallocAsync past 0"},
	{"write-past-end-of-hip-malloc", write_past_end_of_hip_malloc,
	 "overwritten-padding hipMalloc 0 1"},
	{"write-past-end-of-leak", write_past_end_of_leak,
	 "overwritten-padding hipMallocAsync 0 8;leak hipMallocAsync 4096 1|memory-fault "
	 "hipMallocAsync past 0"},
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

/* The kernel may wait for the host, which writes the mailbox when the allocation is there. */
static void kernel_with_a_mailbox(void)
{
	void *p = block(a), *mailbox;

	OK(hipHostMalloc(&mailbox, BYTES, 0));
	launch_packed(p, mailbox, b);
	OK(hipStreamSynchronize(a));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
	OK(hipHostFree(mailbox));
}

static void number_like_an_address(void)
{
	long n = 4096;

	launch("number", a, (void *[]){&n});
}

static void write_to_the_end(void)
{
	void *p = block(a), *q;
	size_t size = 0;

	OK(hipMalloc(&q, 100));
	write_bytes(p, BYTES, a);
	write_bytes(q, 100, a);
	OK(hipMemPtrGetInfo(q, &size));
	if (size != 100)
		exit(2); /* the padding shows */
	OK(hipFreeAsync(p, a));
	OK(hipFree(q));
}

/* The end of one block is not the start of another, and one before the start not the block in
 * front. */
static void end_pointers(void)
{
	void *p[8];

	for (int i = 0; i < 8; i++)
		p[i] = block(i % 2 ? a : b);
	for (int i = 0; i < 8; i++) {
		launch_packed(p[i], (char *)p[i] + BYTES, i % 2 ? a : b);
		launch_packed(p[i], (char *)p[i] - 1, i % 2 ? a : b);
	}
	for (int i = 0; i < 8; i++)
		OK(hipFreeAsync(p[i], i % 2 ? a : b));
}

/* The launches wait for what is on all of their streams, and these then for all of the launches. */
static void several_devices_meet(void)
{
	void *p = block(a);
	int n = 64;
	void *args[] = {&p, &n};
	hipLaunchParams list[] = {
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, args, 0, a},
		{(void *)(uintptr_t)host_kernel(), {1, 1, 1}, {64, 1, 1}, args, 0, b},
	};

	OK(hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
	OK(hipFreeAsync(p, a));
}

/* Another one records the event when its work has ended. */
static void stop_event(void)
{
	hipError_t (*call)(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
			   uint32_t, size_t, hipStream_t, void **, void **, hipEvent_t, hipEvent_t,
			   uint32_t) = way("hipExtModuleLaunchKernel");
	void *p = block(a);
	hipEvent_t stop;
	int n = 64;

	OK(hipEventCreate(&stop));
	order(a, b);
	OK(call(kernel("fill"), 64, 1, 1, 64, 1, 1, 0, b, (void *[]){&p, &n}, NULL, NULL, stop, 0));
	OK(hipStreamWaitEvent(a, stop, 0));
	OK(hipFreeAsync(p, a));
}

/* The runtime refuses it, so nothing uses the block. */
static void refused_launch(void)
{
	void *p = block(a);
	int n = 64;

	order(a, b);
	if (hipModuleLaunchKernel(kernel("fill"), 0, 1, 1, 64, 1, 1, 0, b, (void *[]){&p, &n},
				  NULL) == hipSuccess)
		exit(2);
	OK(hipFreeAsync(p, a));
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

	no_real_code();
	OK(hipModuleLoadData(&module, "no code object"));
	OK(hipModuleGetFunction(&f, module, "unknown"));
	OK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, b, (void *[]){&p}, NULL));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
}

const struct program right_kernels[] = {
#define P(name) {"right-" #name, name, NULL}
	P(race_with_what_is_ignored),
	P(kernel_in_order),
	P(kernel_tells_host),
	P(kernel_with_a_mailbox),
	P(number_like_an_address),
	P(write_to_the_end),
	P(end_pointers),
	P(null_argument),
	P(several_devices_meet),
	P(stop_event),
	P(refused_launch),
	P(unknown_kernel),
	P(broken_modules),
	{NULL, NULL, NULL},
};

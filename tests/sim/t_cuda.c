/* SPDX-License-Identifier: MIT */
/*
 * HIP on CUDA's driver: what the device itself must see to, on a GPU or on the stand-in for the
 * driver. The other tests of the software device say what the calls do.
 *
 *   t_cuda            all below
 *   t_cuda nodriver   there is no driver: one error, and no crash
 *   t_cuda oom        the driver refuses memory (SOMASIM_FAIL=cuMemAlloc:%1=2, the stand-in's)
 */
#include <pthread.h>
#include <sys/wait.h>

#include "cuda/driver_types.h"
#include "test.h"

#define MIB ((size_t)1 << 20)
#define GARBAGE ((void *)0x12345670)

typedef hipFunction_t (*kernel_fn)(const char *name);
typedef int (*spin_fn)(hipStream_t s, double us);
typedef int (*register_fn)(const void *function, const char *name);

static bool all_are(const void *p, size_t n, int value)
{
	static unsigned char back[MIB];

	OK(hipMemcpy(back, p, n, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		if (back[i] != value)
			return false;
	return true;
}

/* Every call of the table is there. A driver may lack one, the stand-in not. */
static void calls(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	CHECK(driver);
#define C(name, version, params) \
	if (!dlsym(driver, #name #version)) { \
		fprintf(stderr, "the driver has no " #name #version "\n"); \
		exit(1); \
	}
#include "cuda/driver_calls.h"
#undef C
	dlclose(driver);
}

/* A handle that is none never reaches the driver, which would crash. */
static void handles(void)
{
	hipMemPool_t pool = GARBAGE;
	hipStream_t s = GARBAGE;
	hipEvent_t e = GARBAGE;
	size_t n = 0;
	void *p;

	EXPECT(hipStreamSynchronize(s), hipErrorContextIsDestroyed);
	EXPECT(hipStreamDestroy(s), hipErrorContextIsDestroyed);
	EXPECT(hipStreamDestroy(NULL), hipErrorInvalidHandle);
	EXPECT(hipMallocAsync(&p, 64, s), hipErrorInvalidHandle);
	EXPECT(hipMemsetAsync(&n, 0, 1, s), hipErrorContextIsDestroyed);
	EXPECT(hipEventRecord(e, NULL), hipErrorContextIsDestroyed);
	EXPECT(hipEventQuery(NULL), hipErrorInvalidHandle);
	EXPECT(hipStreamWaitEvent(NULL, e, 0), hipErrorContextIsDestroyed);
	EXPECT(hipMemPoolTrimTo(pool, 0), hipErrorInvalidValue);
	for (int i = 0; i < 5001; i++) { /* the table of handles grows, and places are used again */
		OK(hipEventCreate(&e));
		OK(hipEventQuery(e));
		if (i % 3)
			OK(hipEventDestroy(e));
	}
	EXPECT(hipEventQuery(e), hipErrorContextIsDestroyed); /* the last one is gone */
	OK(hipStreamCreate(&s));
	OK(hipStreamDestroy(s));
	EXPECT(hipStreamQuery(s), hipErrorContextIsDestroyed);
}

static int devices;

static void *allocate(void *arg)
{
	hipStream_t own = hipStreamPerThread;
	void *p;

	if (arg) /* a stream of the first device, from a thread that never chose one */
		OK(hipMemsetAsync(arg, 3, 64, own));
	for (int d = 0; d < devices; d++) {
		OK(hipSetDevice(d));
		OK(hipMalloc(&p, MIB));
		OK(hipMemsetAsync(p, 1 + d, MIB, own));
		OK(hipStreamSynchronize(own));
		CHECK(all_are(p, MIB, 1 + d));
		OK(hipFree(p));
	}
	return NULL;
}

static void launch_stub(uint32_t value, int byte);

/* The context of the thread's device is current in every call, and a new one after a reset. */
static void contexts(void)
{
	pthread_t t;
	hipStream_t s;
	hipEvent_t e;
	void *p;

	OK(hipGetDeviceCount(&devices));
	OK(hipMalloc(&p, 64));
	CHECK(!pthread_create(&t, NULL, allocate, p) && !pthread_join(t, NULL));
	CHECK(all_are(p, 64, 3));
	EXPECT(hipSetDevice(devices), hipErrorInvalidDevice);
	OK(hipStreamCreate(&s));
	OK(hipEventCreate(&e));
	OK(hipDeviceReset());
	EXPECT(hipStreamQuery(s), hipErrorContextIsDestroyed);
	EXPECT(hipEventQuery(e), hipErrorContextIsDestroyed);
	launch_stub(0x05050505, 5);
	allocate(NULL);
	CHECK(!pthread_create(&t, NULL, allocate, NULL) && !pthread_join(t, NULL));
	OK(hipSetDevice(0));
}

/* Up to 6.x every call overwrites the last error. What this device has not is said so. */
static void errors(void)
{
	hipFuncAttributes a;
	int version, major, minor;
	void *p = GARBAGE;

	OK(hipRuntimeGetVersion(&version));
	EXPECT(hipMalloc(NULL, 5), hipErrorInvalidValue);
	EXPECT(hipPeekAtLastError(), hipErrorInvalidValue);
	OK(hipMalloc(&p, 0));
	CHECK(!p);
	EXPECT(hipGetLastError(), version < 70000000 ? hipSuccess : hipErrorInvalidValue);
	OK(hipGetLastError());
	EXPECT(hipFuncGetAttributes(&a, (void *)errors), hipErrorNotSupported);
	EXPECT(hipDeviceComputeCapability(&major, &minor, 0), hipErrorNotSupported);
	EXPECT(hipMalloc(&p, (size_t)1 << 50), hipErrorOutOfMemory);
	CHECK(!strcmp(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory"));
	EXPECT(hipGetLastError(), hipErrorOutOfMemory);
}

/* A held stream stays where it is, also while others are held, and goes on when it is let go. */
static void holds(void)
{
	hipStream_t s[3];
	void *p;

	OK(hipMalloc(&p, 3 * MIB));
	for (int i = 0; i < 3; i++) {
		OK(hipStreamCreateWithFlags(&s[i], hipStreamNonBlocking));
		OK(hipMemset((char *)p + i * MIB, 0, MIB));
	}
	OK(hipDeviceSynchronize());
	for (int round = 1; round < 4; round++) {
		for (int i = 0; i < 3; i++) {
			stall(s[i]);
			stall(s[i]); /* that it is held already changes nothing */
			OK(hipMemsetAsync((char *)p + i * MIB, round, MIB, s[i]));
		}
		for (int i = 0; i < 3; i++) {
			EXPECT(hipStreamQuery(s[i]), hipErrorNotReady);
			release(s[i]);
			OK(hipStreamSynchronize(s[i]));
			CHECK(all_are((char *)p + i * MIB, MIB, round));
		}
	}
	for (int i = 0; i < 3; i++)
		OK(hipStreamDestroy(s[i]));
	OK(hipFree(p));
}

static dim3 one_dimension(unsigned n)
{
	return (dim3){n, 1, 1};
}

static void host_stub(void)
{
}

/* A launch by the function's address, which must have the kernel spin_fill. */
static void launch_stub(uint32_t value, int byte)
{
	uint64_t words = MIB / 4, ns = 0;
	uint32_t *p;
	void *args[] = {&p, &words, &value, &ns};

	OK(hipMalloc((void **)&p, MIB));
	OK(hipLaunchKernel((void *)host_stub, one_dimension(2), one_dimension(64), args, 0, NULL));
	CHECK(all_are(p, MIB, byte));
	OK(hipFree(p));
}

static uint32_t wrong_words(uint32_t *wrong, hipStream_t s)
{
	uint32_t n;

	OK(hipStreamSynchronize(s));
	OK(hipMemcpy(&n, wrong, sizeof n, hipMemcpyDeviceToHost));
	OK(hipMemset(wrong, 0, sizeof n));
	OK(hipDeviceSynchronize());
	return n;
}

static void kernels(void)
{
	kernel_fn kernel = (kernel_fn)control("somacuda_kernel");
	spin_fn spin = (spin_fn)control("somacuda_spin");
	uint64_t words = MIB / 4, ns = 1000;
	uint32_t value = 0x01010101, other = 7, *p, *wrong;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMalloc((void **)&p, MIB));
	OK(hipMalloc((void **)&wrong, 4));
	CHECK(wrong_words(wrong, s) + 1); /* whatever it was, it is 0 now */
	void *fill[] = {&p, &words, &value, &ns}, *check[] = {&p, &words, &value, &wrong};
	void *check_other[] = {&p, &words, &other, &wrong},
	     *hold[] = {&p, &words, &other, &ns, &wrong};
#define LAUNCH(name, args) \
	OK(hipModuleLaunchKernel(kernel(name), 4, 1, 1, 128, 1, 1, 0, s, args, NULL))
	LAUNCH("spin_fill", fill);
	LAUNCH("check", check);
	CHECK(wrong_words(wrong, s) == 0 && all_are(p, MIB, 1));
	LAUNCH("check", check_other);
	CHECK(wrong_words(wrong, s) % words == 0);
	LAUNCH("hold", hold);
	LAUNCH("check", check_other);
	CHECK(wrong_words(wrong, s) == 0);

	CHECK(!kernel("nothing"));
	stall(s);
	CHECK(!spin(s, 1.5) && !spin(s, 0));
	EXPECT(hipStreamQuery(s), hipErrorNotReady);
	release(s);
	OK(hipStreamSynchronize(s));
	CHECK(spin(GARBAGE, 1));

	/* A function of the program's own runs none, until one is named for it. */
	EXPECT(hipLaunchKernel((void *)host_stub, one_dimension(1), one_dimension(1), fill, 0, s),
	       hipErrorInvalidDeviceFunction);
	CHECK(!((register_fn)control("somacuda_register"))((void *)host_stub, "spin_fill"));
	launch_stub(0x03030303, 3);
	launch_stub(0x04040404, 4);
	OK(hipFree(p));
	OK(hipFree(wrong));
}

static hipError_t in_host_function;

static void call_back(hipStream_t s, hipError_t status, void *arg)
{
	void *p;

	in_host_function = hipMalloc(&p, 64);
}

/* What HIP allows beside a capture, and what CUDA refuses: README.md of the device. */
static void captures(void)
{
	hipStreamCaptureStatus status;
	hipStream_t s, other;
	hipGraph_t g = NULL;
	void *p, *va;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
	OK(hipExtMallocWithFlags(&p, 4096, 0));
	OK(hipMemAddressReserve(&va, 2 * MIB, 0, NULL, 0));
	OK(hipMemAddressFree(va, 2 * MIB));
	OK(hipStreamIsCapturing(s, &status));
	CHECK(status == hipStreamCaptureStatusActive);
	OK(hipStreamEndCapture(s, &g));
	OK(hipGraphDestroy(g));
	OK(hipFree(p));

	OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
	EXPECT(hipMalloc(&p, 0), hipErrorStreamCaptureUnsupported); /* as for any other size */
	EXPECT(hipStreamEndCapture(s, &g), hipErrorStreamCaptureInvalidated);
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
	EXPECT(hipMallocAsync(&p, 64, other), hipErrorStreamCaptureUnsupported);
	EXPECT(hipStreamEndCapture(s, &g), hipErrorStreamCaptureInvalidated);

	OK(hipStreamAddCallback(s, call_back, NULL, 0));
	OK(hipStreamSynchronize(s));
	EXPECT(in_host_function, hipErrorUnknown);
	OK(hipStreamDestroy(s));
	OK(hipStreamDestroy(other));
}

/* HIP writes fewer bytes of some attributes than CUDA does. */
static void pointers(void)
{
	struct {
		unsigned char value, after[15];
	} a;
	hipPointerAttribute_t all;
	void *p, *h;
	int local;

	OK(hipMalloc(&p, 4096));
	memset(&a, 0x55, sizeof a);
	OK(hipPointerGetAttribute(&a, (hipPointer_attribute)CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(a.value == 0 && a.after[0] == 0x55);
	memset(&a, 0x55, sizeof a);
	OK(hipPointerGetAttribute(&a, (hipPointer_attribute)CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
	CHECK(*(uint32_t *)(void *)&a == 4096 && a.after[3] == 0x55);
	OK(hipHostMalloc(&h, 64, 0));
	OK(hipPointerGetAttributes(&all, h));
	CHECK(all.hostPointer == h && !all.isManaged);
	(void)hipPointerGetAttributes(&all, &local);
	CHECK(all.device == -2);
	OK(hipFree(h)); /* HIP takes pinned memory there, CUDA does not */
	EXPECT(hipHostFree(h), hipErrorInvalidValue);
	OK(hipFree(p));
}

/* Rows, boxes and arrays come out where they belong. */
static void shapes(void)
{
	unsigned char in[4096], out[4096];
	hipChannelFormatDesc d = {8, 8, 0, 0, hipChannelFormatKindUnsigned};
	hipMemcpy3DParms box = {.srcPos = {0}};
	hipArray_t array;
	char *p;

	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (unsigned char)(i * 7);
	OK(hipMalloc((void **)&p, 3 * sizeof in));
	OK(hipMemcpy2D(p, 96, in, 64, 64, 10, hipMemcpyHostToDevice));
	OK(hipMemcpy2D(out, 64, p, 96, 64, 10, hipMemcpyDeviceToHost));
	CHECK(!memcmp(in, out, 640));
	EXPECT(hipMemcpy2D(p, 32, in, 64, 64, 10, hipMemcpyHostToDevice),
	       hipErrorInvalidPitchValue);
	box.srcPtr = (hipPitchedPtr){in, 16, 16, 8};
	box.srcPos = (hipPos){4, 1, 1};
	box.dstPtr = (hipPitchedPtr){p, 32, 32, 16};
	box.dstPos = (hipPos){8, 2, 0};
	box.extent = (hipExtent){8, 3, 2};
	OK(hipMemcpy3D(&box));
	for (size_t z = 0; z < 2; z++)
		for (size_t y = 0; y < 3; y++) {
			OK(hipMemcpy(out, p + (z * 16 + 2 + y) * 32 + 8, 8, hipMemcpyDeviceToHost));
			CHECK(!memcmp(out, in + ((z + 1) * 8 + 1 + y) * 16 + 4, 8));
		}
	OK(hipMallocArray(&array, &d, 16, 4, 0)); /* 32 bytes a row */
	OK(hipMemcpy2DToArray(array, 2, 1, in, 16, 16, 3, hipMemcpyHostToDevice));
	OK(hipMemcpy2DFromArray(out, 16, array, 2, 1, 16, 3, hipMemcpyDeviceToHost));
	CHECK(!memcmp(in, out, 48));
	OK(hipFreeArray(array));
	OK(hipFree(p));
}

static void graphs(void)
{
	hipMemsetParams set = {.elementSize = 1, .width = 4096, .height = 1, .value = 7};
	hipGraphNode_t fill, copy, nodes[4];
	hipMemcpy3DParms params;
	hipGraphExec_t exec;
	hipGraph_t g;
	size_t n = 4;
	void *p, *q;

	OK(hipMalloc(&p, 4096));
	OK(hipMalloc(&q, 4096));
	OK(hipGraphCreate(&g, 0));
	set.dst = p;
	OK(hipGraphAddMemsetNode(&fill, g, NULL, 0, &set));
	OK(hipGraphAddMemcpyNode1D(&copy, g, &fill, 1, q, p, 4096, hipMemcpyDeviceToDevice));
	set.value = 9;
	OK(hipGraphMemsetNodeSetParams(fill, &set));
	OK(hipGraphGetNodes(g, nodes, &n));
	CHECK(n == 2);
	OK(hipGraphMemcpyNodeGetParams(copy, &params));
	CHECK(params.srcPtr.ptr == p && params.dstPtr.ptr == q && params.extent.width == 4096);
	OK(hipGraphInstantiate(&exec, g, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, NULL));
	CHECK(all_are(q, 4096, 9));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(g));
	OK(hipFree(p));
	OK(hipFree(q));
}

static void forks(void)
{
	pid_t pid = fork();
	int status;
	void *p;

	if (!pid)
		_exit(hipMalloc(&p, 64) != hipErrorNotInitialized);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void no_driver(void)
{
	int n = 5;
	void *p;

	EXPECT(hipInit(0), hipErrorNoDevice);
	EXPECT(hipGetDeviceCount(&n), hipErrorNoDevice);
	CHECK(n == 0);
	EXPECT(hipMalloc(&p, 64), hipErrorNoDevice);
	CHECK(!strcmp(hipGetErrorString(hipErrorNoDevice), "no ROCm-capable device is detected"));
}

static void out_of_memory(void)
{
	void *p = GARBAGE;

	EXPECT(hipMalloc(&p, 64), hipErrorOutOfMemory);
	CHECK(p == GARBAGE);
	EXPECT(hipExtMallocWithFlags(&p, 64, 0), hipErrorOutOfMemory);
	OK(hipMallocAsync(&p, 64, NULL));
	OK(hipFreeAsync(p, NULL));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "nodriver")) {
		no_driver();
		return 0;
	}
	if (!strcmp(what, "oom")) {
		out_of_memory();
		return 0;
	}
	(void)control("somacuda_kernel"); /* not this device: skipped */
	calls();
	handles();
	errors();
	holds();
	kernels();
	captures();
	pointers();
	shapes();
	graphs();
	contexts();
	forks();
	return 0;
}

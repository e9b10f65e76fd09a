/* SPDX-License-Identifier: MIT */
/*
 * Loads CUDA's driver, and makes the contexts of its devices.
 *
 * Locks: start_lock guards the start and the making of contexts. The driver is called with it held,
 * and never calls our code. Only the lock of the figures is taken inside it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/context.h"
#include "device/options.h"

struct driver driver;
__thread struct context_binding context_bound __attribute__((tls_model("initial-exec")));
_Atomic unsigned context_turn = 1;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;
static hipError_t start_error;
static CUcontext _Atomic contexts[SIM_MAX_DEVICES];
static void (*when_made[4])(int device);

hipError_t to_hip(CUresult r)
{
	switch (r) {
	case 0 ... 5:
	case 100 ... 101:
	case 200 ... 202:
	case 205 ... 219:
	case 300 ... 304:
	case 400 ... 401:
	case 500:
	case 600:
	case 700 ... 702:
	case 704 ... 705:
	case 708 ... 710:
	case 712 ... 713:
	case 719 ... 720:
	case 801:
	case 900 ... 908:
	case 910: return (hipError_t)r;
	default: /* 800 not permitted, 802 system not ready, 46 device unavailable, ... */
		return hipErrorUnknown;
	}
}

/* The folders are those of distributions and of NVIDIA's containers, for programs that were started
 * without a search path. */
static void *open_driver(void)
{
	static const char *const names[] = {
		"libcuda.so.1",
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
		"/usr/lib64/libcuda.so.1",
		"/usr/local/nvidia/lib64/libcuda.so.1",
		"/usr/local/cuda/compat/libcuda.so.1",
	};
	const char *wanted = getenv("SOMACUDA_DRIVER");
	void *lib = NULL;

	if (wanted)
		return dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return lib;
}

static hipError_t load(void)
{
	void *lib = open_driver();

	if (!lib) {
		fprintf(stderr, "somacuda: no device: there is no libcuda.so.1\n");
		return hipErrorNoDevice;
	}
#define C(name, version, params) *(void **)&driver.name = dlsym(lib, #name #version);
#include "cuda/driver_calls.h"
#undef C
	return driver.cuInit ? hipSuccess : hipErrorInsufficientDriver;
}

/* Caller holds start_lock. */
static hipError_t start(void)
{
	int n = 0;
	hipError_t e = load();

	if (!e) {
		/* Fewer streams share one of the device's own queues. */
		setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
		e = to_hip(CU(cuInit, 0));
	}
	if (!e)
		e = to_hip(CU(cuDeviceGetCount, &n));
	if (!e && n < 1)
		e = hipErrorNoDevice;
	if (e && driver.cuInit)
		fprintf(stderr, "somacuda: no device: error %d\n", (int)e);
	if (e)
		return e;
	sim_opt.devices = n < SIM_MAX_DEVICES ? n : SIM_MAX_DEVICES;
	return hipSuccess;
}

hipError_t driver_start(void)
{
	hipError_t e;

	if (likely(atomic_load_explicit(&started, memory_order_acquire)))
		return start_error;
	pthread_mutex_lock(&start_lock);
	if (!atomic_load(&started)) {
		start_error = start();
		atomic_store_explicit(&started, true, memory_order_release);
	}
	e = start_error;
	pthread_mutex_unlock(&start_lock);
	return e;
}

/* The driver loads its code for memsets and copies when they are first used, and that may wait for
 * streams which the program holds back. So each is used once. */
static void warm_up(void)
{
	CUdeviceptr d = 0;

	if (CU(cuMemAlloc, &d, 1 << 20))
		return;
	(void)CU(cuMemsetD8Async, d + 1, 0, 5, NULL);
	(void)CU(cuMemsetD8Async, d, 0, 1 << 20, NULL);
	(void)CU(cuMemsetD16Async, d, 0, 100, NULL);
	(void)CU(cuMemsetD32Async, d, 0, 1024, NULL);
	(void)CU(cuMemsetD2D8Async, d, 512, 0, 100, 3, NULL);
	(void)CU(cuMemcpyAsync, d, d + 8192, 4096, NULL);
	(void)CU(cuMemcpyAsync, d, d + 8193, 77, NULL);
	(void)CU(cuStreamSynchronize, NULL);
	(void)CU(cuMemFree, d);
}

/* Of the driver's own default pool, so that it keeps memory as somashim does. */
static void set_threshold(int device)
{
	const char *bytes = getenv("SOMACUDA_THRESHOLD");
	CUmemoryPool pool = NULL;
	cuuint64_t v;

	if (!bytes || CU(cuDeviceGetDefaultMemPool, &pool, device))
		return;
	v = strtoull(bytes, NULL, 0);
	(void)CU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
}

void context_when_made(void (*fn)(int device))
{
	int i = 0;

	while (when_made[i])
		i++;
	when_made[i] = fn;
}

/* Caller holds start_lock. The context of the calling thread stays as it is. */
static CUcontext make_context(int device)
{
	CUcontext c = NULL, before = NULL;
	CUresult r = CU(cuDevicePrimaryCtxRetain, &c, device);

	if (r) {
		fprintf(stderr, "somacuda: device %d has no context: error %u\n", device, r);
		return NULL;
	}
	(void)CU(cuCtxGetCurrent, &before);
	if (!CU(cuCtxSetCurrent, c)) {
		warm_up();
		set_threshold(device);
		for (int i = 0; i < 4 && when_made[i]; i++)
			when_made[i](device);
	}
	(void)CU(cuCtxSetCurrent, before);
	return c;
}

CUcontext context_of(int device)
{
	CUcontext c = atomic_load(&contexts[device]);

	if (likely(c))
		return c;
	pthread_mutex_lock(&start_lock);
	c = atomic_load(&contexts[device]);
	if (!c) {
		c = make_context(device);
		atomic_store(&contexts[device], c);
	}
	pthread_mutex_unlock(&start_lock);
	return c;
}

hipError_t context_enter_slow(void)
{
	hipError_t e = driver_start();
	unsigned turn = atomic_load(&context_turn);
	int device = current_device();
	CUcontext c;

	if (e)
		return e;
	if (check_device(device))
		return hipErrorInvalidDevice;
	c = context_of(device);
	if (!c)
		return hipErrorOutOfMemory;
	e = to_hip(CU(cuCtxSetCurrent, c));
	if (!e)
		context_bound = (struct context_binding){device + 1, turn};
	return e;
}

/* The context is reset and not made anew, so its handle stays good; all that it held is gone. */
hipError_t i_hipDeviceReset(void)
{
	int device = current_device();
	CUresult r;

	ENTER();
	(void)CU(cuCtxSynchronize);
	r = CU(cuDevicePrimaryCtxReset, device);
	pthread_mutex_lock(&start_lock);
	atomic_store(&contexts[device], NULL);
	pthread_mutex_unlock(&start_lock);
	handles_reset(device);
	atomic_fetch_add(&context_turn, 1);
	return to_hip(r);
}

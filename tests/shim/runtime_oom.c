/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program has freed is available to every request that goes to the runtime,
 * although it lies idle in our pools: arrays, managed and fine-grained memory,
 * hipMemCreate, code, graphs.
 */
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)
#define LARGE (512 * MIB) /* of 1 GiB */

static hipChannelFormatDesc format;
static hipStream_t s;
static void *keep;

/* Nearly all of the device, freed again, and by what hipMemGetInfo says there. */
static void idle(int how)
{
	size_t left, total;
	void *p[3];

	for (int i = 0; i < 3; i++)
		if (how & 1)
			OK(hipMallocAsync(&p[i], 300 * MIB, s));
		else
			OK(hipMalloc(&p[i], 300 * MIB));
	OK(hipMemsetAsync(p[1], 1, MIB, s));
	for (int i = 0; i < 3; i++)
		if (how & 1)
			OK(hipFreeAsync(p[i], s));
		else
			OK(hipFree(p[i]));
	if (how & 2)
		OK(hipStreamSynchronize(s));
	OK(hipMemGetInfo(&left, &total));
	if (how & 2 || !(how & 1))
		CHECK(left > 900 * MIB);
	CHECK(device_free(0) < 300 * MIB);
}

static struct prop {
	int type, handle_type, where, id;
	void *win32;
	unsigned char flags[8];
} prop = {1, 0, 1, 0, NULL, {0}};

/* False: this version has no such memory. */
static bool ask(const char *what)
{
	hipMemGenericAllocationHandle_t handle;
	hipArray_t array;
	void *p;

	if (!strcmp(what, "array")) {
		OK(hipMallocArray(&array, &format, 8192, 16384, 0));
		OK(hipFreeArray(array));
	} else if (!strcmp(what, "array3d")) {
		OK(hipMalloc3DArray(&array, &format, (struct hipExtent){512, 512, 512}, 0));
		OK(hipFreeArray(array));
	} else if (!strcmp(what, "driver_array")) {
		HIP_ARRAY_DESCRIPTOR d = {.Width = 8192,
					  .Height = 16384,
					  .NumChannels = 1,
					  .Format = HIP_AD_FORMAT_FLOAT};

		OK(hipArrayCreate(&array, &d));
		OK(hipFreeArray(array));
	} else if (!strcmp(what, "driver_array3d")) {
		HIP_ARRAY3D_DESCRIPTOR d = {.Width = 512,
					    .Height = 512,
					    .Depth = 512,
					    .NumChannels = 1,
					    .Format = HIP_AD_FORMAT_FLOAT};

		OK(hipArray3DCreate(&array, &d));
		OK(hipFreeArray(array));
	} else if (!strcmp(what, "fine")) {
		OK(hipExtMallocWithFlags(&p, LARGE, hipDeviceMallocFinegrained));
		OK(hipFree(p));
	} else if (!strcmp(what, "create")) {
		if (runtime_major() < 6)
			return false;
		OK(hipMemCreate(&handle, LARGE, (const hipMemAllocationProp *)&prop, 0));
		OK(hipMemRelease(handle));
	} else {
		return false;
	}
	return true;
}

static const char *const kinds[] = {
	"array", "array3d", "driver_array", "driver_array3d", "fine", "create",
};

/* Where the software device takes none for it, as if it did: the first call finds none. */
static void told(const char *name)
{
	void (*fail)(const char *) = (void (*)(const char *))sim_call("somasim_fail");
	char spec[96];

	CHECK(fail);
	snprintf(spec, sizeof(spec), "%s:1=2", name);
	fail(spec);
}

static void told_no_more(void)
{
	void (*clear)(void) = (void (*)(void))sim_call("somasim_fail_clear");

	clear();
}

#define TOLD(name, ...) do { \
	idle(1); \
	told(#name); \
	OK(name(__VA_ARGS__)); \
	told_no_more(); \
	CHECK(device_free(0) > 900 * MIB); \
	OK(hipPeekAtLastError()); \
	/* Nothing is left to go back: the answer is the runtime's, once. */ \
	told(#name); \
	GIVES(hipErrorOutOfMemory, name(__VA_ARGS__)); \
	told_no_more(); \
	GIVES(hipErrorOutOfMemory, hipGetLastError()); \
} while (0)

static void by_name(void)
{
	hipGraphExec_t exec;
	hipModule_t module;
	hipGraph_t graph;
	void *p;

	TOLD(hipMallocManaged, &p, MIB, hipMemAttachGlobal);
	TOLD(hipModuleLoad, &module, "/proc/self/exe");
	TOLD(hipModuleLoadData, &module, "");
	TOLD(hipModuleLoadDataEx, &module, "", 0, NULL, NULL);
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	OK(hipMemsetAsync(keep, 1, 64, s));
	OK(hipStreamEndCapture(s, &graph));
	TOLD(hipGraphInstantiate, &exec, graph, NULL, NULL, 0);
	TOLD(hipGraphInstantiateWithFlags, &exec, graph, 0);
	TOLD(hipGraphLaunch, exec, s);
	OK(hipStreamSynchronize(s));
}

/* Beside a capture nothing of ours waits or touches a null stream: then only memory that
 * goes without does, and the capture is none the worse for it. */
static void captured(void)
{
	hipGraph_t graph;
	hipError_t err;
	void *p;

	idle(3);
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	told("hipMallocAsync");
	err = hipMallocAsync(&p, LARGE, s);
	told_no_more();
	CHECK(err == (backed_by("hsa") ? hipSuccess : hipErrorOutOfMemory));
	(void)hipGetLastError();
	OK(hipMemsetAsync(keep, 1, 64, s));
	if (err == hipSuccess)
		OK(hipFreeAsync(p, s));
	OK(hipStreamEndCapture(s, &graph));
}

/* With a device that does not come to rest the answer comes in time, and is an error. */
static void busy(void)
{
	hipArray_t array;
	hipStream_t t;
	double t0;

	if (backed_by("hsa"))
		return;
	OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
	idle(3);
	stall(t);
	OK(hipMemsetAsync(keep, 1, 64, t));
	t0 = now_ms();
	GIVES(hipErrorOutOfMemory, hipMallocArray(&array, &format, 8192, 16384, 0));
	CHECK(now_ms() - t0 < 20000);
	GIVES(hipErrorOutOfMemory, hipGetLastError());
	release(t);
	OK(hipMallocArray(&array, &format, 8192, 16384, 0));
	OK(hipFreeArray(array));
}

int main(void)
{
	CHECK(preloaded());
	alarm(100);
	format = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
	OK(hipStreamCreate(&s));
	OK(hipMalloc(&keep, MIB));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int how = 0; how < 4; how++) {
			idle(how);
			if (!ask(kinds[i]))
				break;
			OK(hipPeekAtLastError());
		}
	by_name();
	captured();
	busy();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Blocks that share a segment look like allocations of their own. */
#define BYTES 1000
#include "test.h"

/* The same 32 bytes in every version. */
struct attributes {
	int type, device;
	void *device_pointer, *host_pointer;
	int managed;
	unsigned flags;
};

static void block(char *p, size_t size, hipStream_t s)
{
	int device_type = runtime_major() < 6 ? 1 : 2, ordinal = -1;
	struct attributes a;
	unsigned type = 0, id = 0;
	hipDeviceptr_t base;
	size_t bytes = 0;
	void *start;

	memset(&a, 0xff, sizeof(a));
	OK(hipPointerGetAttributes((hipPointerAttribute_t *)&a, p + 5));
	CHECK(a.type == device_type && a.device == 0 && a.device_pointer == p + 5 &&
	      !a.host_pointer && !a.managed && !a.flags);
	OK(hipMemGetAddressRange(&base, &bytes, (hipDeviceptr_t)(p + size - 1)));
	CHECK(base == (hipDeviceptr_t)p && bytes == size);
	/* Either output may be missing, or both. */
	base = NULL;
	bytes = 0;
	OK(hipMemGetAddressRange(&base, NULL, (hipDeviceptr_t)(p + 1)));
	OK(hipMemGetAddressRange(NULL, &bytes, (hipDeviceptr_t)(p + 1)));
	OK(hipMemGetAddressRange(NULL, NULL, (hipDeviceptr_t)p));
	CHECK(base == (hipDeviceptr_t)p && bytes == size);
	OK(hipMemPtrGetInfo(p, &bytes));
	CHECK(bytes == size);
	OK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR,
				  (hipDeviceptr_t)(p + 7)));
	CHECK(start == p);
	bytes = 0;
	OK(hipPointerGetAttribute(&bytes, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, (hipDeviceptr_t)p));
	CHECK(bytes == size);
	OK(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, (hipDeviceptr_t)p));
	CHECK((int)type == device_type);
	OK(hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (hipDeviceptr_t)p));
	CHECK(id != 0);
	OK(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				  (hipDeviceptr_t)p));
	CHECK(ordinal == 0);
	OK(hipMemsetAsync(p, 9, size, s));
	OK(hipStreamSynchronize(s));
}

static void several(char *p)
{
	hipPointer_attribute attrs[] = {HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR,
					HIP_POINTER_ATTRIBUTE_BUFFER_ID,
					HIP_POINTER_ATTRIBUTE_DEVICE_POINTER};
	void *start = NULL, *dev = NULL;
	unsigned id = 0;
	void *data[] = {&start, &id, &dev};

	OK(hipDrvPointerGetAttributes(3, attrs, data, (hipDeviceptr_t)(p + 3)));
	CHECK(start == p && id != 0 && dev == p + 3);
	data[1] = NULL; /* crashes the runtime */
	OK(hipDrvPointerGetAttributes(3, attrs, data, (hipDeviceptr_t)p));
}

/* Every block that ever was has a number of its own. */
static void numbers(hipStream_t s)
{
	static unsigned seen[400];
	char *p;

	for (int i = 0; i < 400; i++) {
		if (i & 1)
			OK(hipMalloc((void **)&p, 4096));
		else
			OK(hipMallocAsync((void **)&p, 4096, s));
		OK(hipPointerGetAttribute(&seen[i], HIP_POINTER_ATTRIBUTE_BUFFER_ID,
					  (hipDeviceptr_t)(p + 9)));
		for (int k = 0; k < i; k++)
			CHECK(seen[k] != seen[i]);
		if (i & 1)
			OK(hipFree(p));
		else
			OK(hipFreeAsync(p, s));
	}
}

static void sets(char *p, size_t size, hipStream_t null)
{
	unsigned char got[4096];

	/* The host does not wait for a memset inside a segment. */
	OK(hipStreamSynchronize(NULL));
	stall(null);
	OK(hipMemset(p, 0x11, size));
	OK(hipMemset(p + 64, 0x22, 100));
	OK(hipMemsetD8((hipDeviceptr_t)(p + 512), 0x33, 8));
	OK(hipMemsetD16((hipDeviceptr_t)(p + 520), 0x4444, 4));
	OK(hipMemsetD32((hipDeviceptr_t)(p + 528), 0x55555555, 2));
	OK(hipMemset2D(p + 1024, 128, 0x66, 10, 3));
	release(null);
	OK(hipMemcpy(got, p, sizeof(got), hipMemcpyDeviceToHost));
	CHECK(got[0] == 0x11 && got[64] == 0x22 && got[163] == 0x22 && got[164] == 0x11);
	CHECK(got[512] == 0x33 && got[519] == 0x33 && got[520] == 0x44 && got[527] == 0x44);
	CHECK(got[528] == 0x55 && got[535] == 0x55 && got[536] == 0x11);
	CHECK(got[1024] == 0x66 && got[1034] == 0x11 && got[1152] == 0x66 && got[1290] == 0x11);

	/* Past the end of the block, as past the end of an allocation. */
	GIVES(hipErrorInvalidValue, hipMemset(p, 0, size + 1));
	GIVES(hipErrorInvalidValue, hipMemset(p + 100, 0, size - 99));
	GIVES(hipErrorInvalidValue, hipMemset2D(p, size, 0, 1, 2));
	GIVES(hipErrorInvalidValue, hipMemsetD32((hipDeviceptr_t)p, 0, size / 4 + 1));
	OK(hipMemset(p, 0, 0));
}

/* What would leave a classic block is refused, however it is copied, and its neighbours
 * in the segment keep their bytes; what lies inside of it is done. */
static void copies(void)
{
	enum { N = 8, SIZE = BYTES, MUCH = 20000 };
	static char host[MUCH];
	hipPitchedPtr cube = {.pitch = 100, .xsize = 100, .ysize = 4};
	hipExtent deep = {.width = 100, .height = 4, .depth = 3};
	hipMemcpyKind in = hipMemcpyHostToDevice, out = hipMemcpyDeviceToHost;
	hipError_t bad = hipErrorInvalidValue;
	hipMemcpy3DParms box = {.srcPtr = {.ptr = host, .pitch = 100, .ysize = 4}, .kind = in};
	hipMemsetParams rows = {.elementSize = 4, .width = SIZE / 4, .height = 2, .pitch = SIZE};
	char *p[N], *mid, *to;
	/* Not in every release. */
	hipError_t (*set_spt)(void *, int, size_t, hipStream_t) = (hipError_t(*)(
		void *, int, size_t, hipStream_t))sim_call("hipMemsetAsync_spt");
	hipGraphNode_t node;
	hipGraph_t graph;
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipGraphCreate(&graph, 0));
	for (int i = 0; i < N; i++) {
		OK(hipMalloc((void **)&p[i], SIZE));
		fill(p[i], i);
	}
	memset(host, 0x77, sizeof(host));
	mid = p[3];
	to = mid + 10;
	box.extent = deep;
	rows.dst = mid;
	for (size_t size = MUCH; size > SIZE; size = size > SIZE + 1 ? SIZE + 1 : 0) {
		GIVES(bad, hipMemcpy(mid, host, size, in));
		GIVES(bad, hipMemcpy(host, mid, size, out));
		GIVES(bad, hipMemcpyAsync(mid, host, size, in, s));
		GIVES(bad, hipMemcpyAsync(to, host, size - 10, in, s));
		GIVES(bad, hipMemcpyWithStream(mid, host, size, in, s));
		GIVES(bad, hipMemcpyHtoD((hipDeviceptr_t)mid, host, size));
		GIVES(bad, hipMemcpyDtoH(host, (hipDeviceptr_t)mid, size));
		GIVES(bad, hipMemcpyDtoD((hipDeviceptr_t)mid, (hipDeviceptr_t)p[1], size));
		GIVES(bad, hipMemcpyDtoDAsync((hipDeviceptr_t)mid, (hipDeviceptr_t)p[1], size, s));
		GIVES(bad, hipMemcpyPeer(mid, 0, host, 0, size));
		GIVES(bad, hipMemcpyPeerAsync(mid, 0, p[1], 0, size, s));
		GIVES(bad, hipMemcpy2D(mid, size - 1, host, size - 1, 1, 2, in));
		GIVES(bad, hipMemcpy2DAsync(mid, size - 1, host, size - 1, 1, 2, in, s));
		GIVES(bad, hipMemset2DAsync(mid, size - 1, 1, 1, 2, s));
		GIVES(bad, hipMemsetAsync(mid, 1, size, s));
		if (set_spt)
			GIVES(bad, set_spt(mid, 1, size, s));
		GIVES(bad, hipMemsetD8Async((hipDeviceptr_t)mid, 1, size, s));
		GIVES(bad, hipMemsetD16Async((hipDeviceptr_t)mid, 1, size / 2 + 1, s));
		GIVES(bad, hipMemsetD32Async((hipDeviceptr_t)mid, 1, size / 4 + 1, s));
		GIVES(bad, hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, mid, host, size, in));
	}
	GIVES(bad, hipMemsetD32Async((hipDeviceptr_t)mid, 1, SIZE_MAX / 2, s));
	cube.ptr = mid;
	GIVES(bad, hipMemset3DAsync(cube, 1, deep, s));
	box.dstPtr = cube;
	GIVES(bad, hipMemcpy3D(&box));
	GIVES(bad, hipMemcpy3DAsync(&box, s));
	GIVES(bad, hipGraphAddMemcpyNode(&node, graph, NULL, 0, &box));
	box.extent.depth = 2;
	box.dstPos.z = 1;
	GIVES(bad, hipMemcpy3D(&box));
	GIVES(bad, hipGraphAddMemsetNode(&node, graph, NULL, 0, &rows));
	rows.height = 1;
	OK(hipGraphAddMemsetNode(&node, graph, NULL, 0, &rows));
	rows.width++;
	GIVES(bad, hipGraphMemsetNodeSetParams(node, &rows));
	OK(hipDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK(holds(p[i], i));
	OK(hipMemcpyAsync(to, host, SIZE - 10, in, s));
	OK(hipMemcpy2DAsync(mid, 10, host, 20, 10, 1, in, s));
	OK(hipStreamSynchronize(s));
	CHECK(holds(mid, 0x77));
	for (int i = 0; i < N; i++)
		OK(hipFree(p[i]));
	OK(hipGraphDestroy(graph));
	OK(hipStreamDestroy(s));
}

/* An address behind a classic block, in its last bytes that nobody asked for or in what is
 * free of the segment, is in no allocation, nor is one in a block that was freed. What was
 * freed to a pool still is, with the runtime's as well. */
static void strays(void)
{
	hipMemcpyKind in = hipMemcpyHostToDevice, out = hipMemcpyDeviceToHost;
	hipPitchedPtr cube = {.pitch = 16, .xsize = 16, .ysize = 2};
	hipExtent box = {.width = 8, .height = 2, .depth = 1};
	hipError_t bad = hipErrorInvalidValue;
	char *p, *gone, *last, *pooled;
	static char host[64];
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMalloc((void **)&p, 184));
	OK(hipMalloc((void **)&gone, 184));
	OK(hipMalloc((void **)&last, 8));
	OK(hipMallocAsync((void **)&pooled, 4096, s));
	OK(hipFree(gone));
	for (int i = 0; i < 4; i++) {
		char *at = i == 0 ? p + 184 : i == 1 ? p + 185 : i == 2 ? gone : last + 40000;

		GIVES(bad, hipMemset(at, 1, 32));
		GIVES(bad, hipMemset(at, 1, 200));
		GIVES(bad, hipMemsetAsync(at, 1, 32, s));
		GIVES(bad, hipMemsetD32((hipDeviceptr_t)at, 1, 8));
		GIVES(bad, hipMemsetD32Async((hipDeviceptr_t)at, 1, 8, s));
		GIVES(bad, hipMemset2D(at, 16, 1, 8, 2));
		GIVES(bad, hipMemset2DAsync(at, 16, 1, 8, 2, s));
		cube.ptr = at;
		GIVES(bad, hipMemset3D(cube, 1, box));
		GIVES(bad, hipMemset3DAsync(cube, 1, box, s));
		GIVES(bad, hipMemcpy(at, host, 8, in));
		GIVES(bad, hipMemcpy(host, at, 8, out));
		GIVES(bad, hipMemcpyAsync(at, host, 8, in, s));
		GIVES(bad, hipMemcpy2D(at, 16, host, 16, 8, 2, in));
		OK(hipMemcpyAsync(at, host, 0, in, s));
	}
	OK(hipMemset(p, 1, 184));
	OK(hipMemset(p + 183, 1, 1));
	OK(hipFreeAsync(pooled, s));
	OK(hipMemsetAsync(pooled, 1, 4096, s));
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	OK(hipFree(p));
	OK(hipFree(last));
}

/* Beside an array it is the block that must not be left. */
static void arrays(hipStream_t s)
{
	enum { COLS = 64, ROWS = 4, ALL = COLS * 4 * ROWS }; /* 32 bits each */
	hipChannelFormatDesc bits = {32, 0, 0, 0, hipChannelFormatKindUnsigned};
	const hipMemcpyKind kind = hipMemcpyDeviceToDevice;
	const hipError_t bad = hipErrorInvalidValue;
	hipMemcpy3DParms box = {.extent = {COLS, ROWS, 1}, .kind = kind};
	unsigned char host[ALL];
	hipArray_t array;
	char *p, *next;
	hipError_t err = hipMallocArray(&array, &bits, COLS, ROWS, 0);

	if (err == hipErrorNotSupported) /* devices without textures */
		return;
	OK(err);
	OK(hipMalloc((void **)&p, ALL - 1));
	OK(hipMalloc((void **)&next, ALL));
	OK(hipMemset(next, 7, ALL));
	memset(host, 1, sizeof(host));
	OK(hipMemcpy2DToArray(array, 0, 0, host, COLS * 4, COLS * 4, ROWS, hipMemcpyHostToDevice));
	GIVES(bad, hipMemcpy2DFromArray(p, COLS * 4, array, 0, 0, COLS * 4, ROWS, kind));
	GIVES(bad, hipMemcpy2DFromArrayAsync(p, COLS * 4, array, 0, 0, COLS * 4, ROWS, kind, s));
	GIVES(bad, hipMemcpy2DToArray(array, 0, 0, p, COLS * 4, COLS * 4, ROWS, kind));
	GIVES(bad, hipMemcpy2DToArrayAsync(array, 0, 0, p, COLS * 4, COLS * 4, ROWS, kind, s));
	box.srcArray = array;
	box.dstPtr = (hipPitchedPtr){p, COLS * 4, COLS * 4, ROWS};
	GIVES(bad, hipMemcpy3D(&box));
	box.srcArray = NULL;
	box.srcPtr = box.dstPtr;
	box.dstArray = array;
	GIVES(bad, hipMemcpy3DAsync(&box, s));
	/* One row less fits, and so does all of it elsewhere. */
	OK(hipMemcpy2DFromArray(p, COLS * 4, array, 0, 0, COLS * 4, ROWS - 1, kind));
	box.extent.height--;
	OK(hipMemcpy3D(&box));
	CHECK(hipMemcpy(host, next, ALL, hipMemcpyDeviceToHost) == hipSuccess && host[0] == 7 &&
	      host[ALL - 1] == 7);
	OK(hipMemcpy2DFromArray(next, COLS * 4, array, 0, 0, COLS * 4, ROWS, kind));
	CHECK(hipMemcpy(host, next, ALL, hipMemcpyDeviceToHost) == hipSuccess && host[0] == 1 &&
	      host[ALL - 1] == 1);
	OK(hipFreeArray(array));
	OK(hipFree(p));
	OK(hipFree(next));
}

int main(void)
{
	struct attributes a, gone;
	hipError_t err, none;
	hipDeviceptr_t base;
	unsigned id1, id2;
	hipStream_t s;
	char *p, *q, local;
	size_t bytes;

	CHECK(preloaded());
	copies();
	strays();
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	arrays(s);
	OK(hipMalloc((void **)&q, 1000));
	OK(hipMalloc((void **)&p, 8192));
	block(p, 8192, s);
	several(p);
	sets(p, 8192, NULL);
	OK(hipPointerGetAttribute(&id1, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (hipDeviceptr_t)p));
	OK(hipPointerGetAttribute(&id2, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (hipDeviceptr_t)q));
	CHECK(id1 != id2);
	numbers(s);
	bytes = id2;
	OK(hipPointerGetAttribute(&id2, HIP_POINTER_ATTRIBUTE_BUFFER_ID, (hipDeviceptr_t)(q + 9)));
	CHECK(id2 == bytes);

	/* After the free it is what any unknown address is. */
	OK(hipFree(p));
	memset(&a, 0, sizeof(a));
	memset(&gone, 0, sizeof(gone));
	err = hipPointerGetAttributes((hipPointerAttribute_t *)&gone, p);
	none = hipPointerGetAttributes((hipPointerAttribute_t *)&a, &local);
	CHECK(err == none && gone.type == a.type && gone.device == a.device);
	GIVES(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, (hipDeviceptr_t)p));
	GIVES(hipErrorInvalidValue, hipMemPtrGetInfo(p, &bytes));
	GIVES(hipErrorInvalidValue, hipMemset(p, 0, 16));
	OK(hipFree(q));

	OK(hipMallocAsync((void **)&p, 100000, s));
	block(p, 100000, s);
	OK(hipFreeAsync(p, s));

	/* Host memory is the runtime's. */
	OK(hipHostMalloc((void **)&p, 4096, 0));
	OK(hipPointerGetAttributes((hipPointerAttribute_t *)&a, p));
	CHECK(a.type == (runtime_major() < 6 ? 0 : 1));
	OK(hipMemset(p + 8, 1, 100));
	OK(hipMemGetAddressRange(&base, NULL, (hipDeviceptr_t)(p + 1)));
	OK(hipMemGetAddressRange(NULL, &bytes, (hipDeviceptr_t)(p + 1)));
	CHECK(base == (hipDeviceptr_t)p && bytes == 4096);
	OK(hipHostFree(p));
	OK(hipStreamDestroy(s));
	return 0;
}

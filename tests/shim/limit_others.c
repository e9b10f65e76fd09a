/* SPDX-License-Identifier: MIT */
/*
 * Under SOMASHIM_LIMIT=256M of 1 GiB: every call that tells how much memory a device has says the
 * same, and what the process takes by calls of the runtime's own counts as hipMalloc does. Needs
 * these two.
 *
 *   limit_others figures|failures|KIND
 */
#include "test.h"

#define MIB ((size_t)1 << 20)
#define LIMIT (256 * MIB)
#define EACH (100 * MIB)
#define WIDTH 8192
#define HEIGHT (EACH / WIDTH / 4)

static hipStream_t stream;

static size_t free_bytes(void)
{
	size_t left, total;

	OK(hipMemGetInfo(&left, &total));
	CHECK(total == LIMIT);
	return left;
}

/* ---- one figure ---------------------------------------------------------------------- */

static uint64_t at(const void *prop, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)prop + offset, sizeof(value));
	return value;
}

static void figures(void)
{
	static _Alignas(16) char prop[4096];
	hipError_t (*newer)(void *, int) = (hipError_t(*)(void *, int))sim_call(
		"hipGetDevicePropertiesR0600");
	size_t left, total, bytes;
	int value = 0;

	for (int dev = 0; dev < 2; dev++) {
		OK(hipSetDevice(dev));
		OK(hipMemGetInfo(&left, &total));
		CHECK(total == LIMIT && left <= LIMIT);
		OK(hipDeviceTotalMem(&bytes, dev));
		CHECK(bytes == LIMIT);
		OK(hipGetDeviceProperties((hipDeviceProp_t *)(void *)prop, dev));
		CHECK(at(prop, 256) == LIMIT);
		if (runtime_major() >= 6) {
			CHECK(newer);
			memset(prop, 0, sizeof(prop));
			OK(newer(prop, dev));
			CHECK(at(prop, 288) == LIMIT);
		}
		OK(hipDeviceGetAttribute(&value, hipDeviceAttributeTotalGlobalMem, dev));
		CHECK(value == (int)LIMIT);
	}
	GIVES(hipErrorInvalidDevice, hipDeviceTotalMem(&bytes, 99));
	CHECK(hipGetDeviceProperties((hipDeviceProp_t *)(void *)prop, 99) != hipSuccess);
	CHECK(hipDeviceTotalMem(NULL, 0) != hipSuccess);
}

/* ---- each kind of memory: EACH bytes, and its free ------------------------------------------ */

static const hipChannelFormatDesc desc = {32, 0, 0, 0, hipChannelFormatKindFloat};

static hipError_t take_fine(void **p)
{
	return hipExtMallocWithFlags(p, EACH, hipDeviceMallocFinegrained);
}

static hipError_t free_fine(void *p)
{
	return hipFree(p);
}

static hipError_t take_array(void **p)
{
	return hipMallocArray((hipArray_t *)p, &desc, WIDTH, HEIGHT, 0);
}

static hipError_t take_array3d(void **p)
{
	struct hipExtent extent = {WIDTH, HEIGHT / 10, 10};

	return hipMalloc3DArray((hipArray_t *)p, &desc, extent, 0);
}

static hipError_t free_array(void *p)
{
	return hipFreeArray(p);
}

static hipError_t take_driver_array(void **p)
{
	HIP_ARRAY_DESCRIPTOR d = {WIDTH, HEIGHT / 2, HIP_AD_FORMAT_HALF, 4};

	return hipArrayCreate((hipArray_t *)p, &d);
}

static hipError_t take_driver_array3d(void **p)
{
	HIP_ARRAY3D_DESCRIPTOR d = {WIDTH, HEIGHT / 10, 10, HIP_AD_FORMAT_UNSIGNED_INT8, 4, 0};

	return hipArray3DCreate((hipArray_t *)p, &d);
}

static hipError_t destroy_array(void *p)
{
	return hipArrayDestroy(p);
}

static hipError_t take_chunk(void **p)
{
	/* The layout since 5.3; the header may be that of 5.2. */
	struct {
		int type, handle, location, id;
		void *more[2];
	} prop = {
		hipMemAllocationTypePinned, 0, hipMemLocationTypeDevice, 0, {NULL, NULL},
	};

	return hipMemCreate((hipMemGenericAllocationHandle_t *)p, EACH,
			    (hipMemAllocationProp *)(void *)&prop, 0);
}

static hipError_t free_chunk(void *p)
{
	return hipMemRelease(p);
}

/* A node of a graph, which stays; its memory is freed outside. */
static hipError_t take_captured(void **p)
{
	hipGraph_t graph = NULL;
	hipGraphExec_t exec;
	hipError_t err;

	OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
	err = hipMallocAsync(p, EACH, stream);
	OK(hipStreamEndCapture(stream, &graph));
	if (err != hipSuccess)
		return err;
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, stream));
	OK(hipStreamSynchronize(stream));
	return hipSuccess;
}

static hipError_t free_captured(void *p)
{
	hipError_t err = hipFreeAsync(p, stream);

	OK(hipStreamSynchronize(stream));
	return err;
}

/* The same by calls that make nodes, which the header of 5.2 lacks. */
static hipGraph_t nodes;

static hipError_t take_node(void **p)
{
	struct {
		hipMemPoolProps props;
		void *access;
		size_t count, bytes;
		void *ptr;
	} params;
	hipError_t (*add)(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
			  void *) = (hipError_t(*)(hipGraphNode_t *, hipGraph_t,
						   const hipGraphNode_t *, size_t,
						   void *))sim_call("hipGraphAddMemAllocNode");
	hipGraphNode_t node;
	hipError_t err;

	CHECK(add);
	if (!nodes)
		OK(hipGraphCreate(&nodes, 0));
	memset(&params, 0, sizeof(params));
	params.props.allocType = hipMemAllocationTypePinned;
	params.props.location.type = hipMemLocationTypeDevice;
	params.bytes = EACH;
	err = add(&node, nodes, NULL, 0, &params);
	*p = params.ptr;
	return err;
}

static hipError_t free_node(void *p)
{
	hipError_t (*add)(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
			  void *) = (hipError_t(*)(hipGraphNode_t *, hipGraph_t,
						   const hipGraphNode_t *, size_t,
						   void *))sim_call("hipGraphAddMemFreeNode");
	hipGraphNode_t node;

	CHECK(add);
	return add(&node, nodes, NULL, 0, p);
}

static const struct kind {
	const char *name;
	hipError_t (*take)(void **p), (*give)(void *p);
} kinds[] = {
	{"fine", take_fine, free_fine},
	{"array", take_array, free_array},
	{"array3d", take_array3d, free_array},
	{"driver_array", take_driver_array, destroy_array},
	{"driver_array3d", take_driver_array3d, destroy_array},
	{"chunk", take_chunk, free_chunk},
	{"captured", take_captured, free_captured},
	{"node", take_node, free_node},
};

/* Two fit beside each other. What is freed may be taken again, by whom it may be. */
static void counts(const struct kind *k)
{
	size_t before = free_bytes();
	void *a = NULL, *b = NULL, *c = NULL, *p;
	bool captured = k->take == take_captured;

	for (int round = 0; round < 3; round++) {
		OK(k->take(&a));
		CHECK(free_bytes() + EACH <= before);
		OK(k->take(&b));
		GIVES(hipErrorOutOfMemory, k->take(&c));
		/* Other calls came after it */
		CHECK(hipGetLastError() == hipErrorOutOfMemory || captured);
		GIVES(hipErrorOutOfMemory, hipMalloc(&p, EACH));
		GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, EACH, stream));
		CHECK(free_bytes() < EACH);
		OK(k->give(a));
		if (!captured) { /* memory of the pools cannot go back during a capture */
			OK(hipMalloc(&p, EACH));
			GIVES(hipErrorOutOfMemory, k->take(&a));
			(void)hipGetLastError();
			OK(hipFree(p));
			OK(k->take(&a)); /* what is idle in the pools makes room */
			OK(k->give(a));
		}
		OK(k->give(b));
		if (nodes) /* the software device keeps the memory as long as the graph */
			OK(hipGraphDestroy(nodes));
		nodes = NULL;
		CHECK(free_bytes() == before);
	}
	/* A reset takes all along. */
	OK(k->take(&a));
	OK(k->take(&b));
	OK(hipDeviceReset());
	OK(hipMalloc(&p, LIMIT - 8 * MIB));
	OK(hipFree(p));
}

/* Calls that fail count for nothing. */
static void failures(void)
{
	size_t before = free_bytes();
	void *p;

	for (int i = 0; i < 10; i++) {
		CHECK(hipMallocArray((hipArray_t *)&p, NULL, WIDTH, HEIGHT, 0) != hipSuccess);
		CHECK(hipExtMallocWithFlags(&p, EACH, 0x1234) != hipSuccess);
		CHECK(hipExtMallocWithFlags(NULL, EACH, hipDeviceMallocFinegrained) != hipSuccess);
		CHECK(hipArrayCreate((hipArray_t *)&p, NULL) != hipSuccess);
		GIVES(hipErrorOutOfMemory,
		      hipExtMallocWithFlags(&p, LIMIT + 1, hipDeviceMallocFinegrained));
	}
	CHECK(free_bytes() == before);
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	CHECK(argc == 2);
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP; /* what a real device has would have to be known */
	if (!strcmp(argv[1], "figures")) {
		figures();
		return 0;
	}
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	if (!strcmp(argv[1], "failures")) {
		failures();
		return 0;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			counts(&kinds[i]);
			return 0;
		}
	return 1;
}

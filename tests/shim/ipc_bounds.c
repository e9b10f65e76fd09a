/* SPDX-License-Identifier: MIT */
/*
 * A block of another process ends where the exporter's block ends. To the runtime the whole
 * segment is one allocation. So the shim refuses a copy or memset that would reach the
 * exporter's next block, as the runtime refuses one that leaves an allocation.
 */
#define BYTES (1 << 20)
#define PIECES 4
#include "procs.h"

struct order {
	hipIpcMemHandle_t handle[PIECES];
	hipMemPoolPtrExportData data[PIECES];
};

static unsigned char host[2 * BYTES];
static hipStream_t s;

/* ---- everything that takes a pointer and a size -------------------------- */

static hipError_t described(char *p, size_t n)
{
	hipMemcpy3DParms m = {.srcPtr = {host, n, n, 1},
			      .dstPtr = {p, n, n, 1},
			      .extent = {n, 1, 1},
			      .kind = hipMemcpyHostToDevice};

	return hipMemcpy3D(&m);
}

static hipError_t driver_2d(char *p, size_t n)
{
	int old = runtime_major() < 6; /* since then the types have other numbers */
	hip_Memcpy2D m = {.srcMemoryType = (hipMemoryType)!old,
			  .srcHost = host,
			  .dstMemoryType = (hipMemoryType)(2 - old),
			  .dstDevice = p,
			  .WidthInBytes = n,
			  .Height = 1};

	return hipMemcpyParam2D(&m);
}

static hipError_t copy_node(char *p, size_t n)
{
	hipMemcpy3DParms m = {.srcPtr = {host, n, n, 1},
			      .dstPtr = {p, n, n, 1},
			      .extent = {n, 1, 1},
			      .kind = hipMemcpyHostToDevice};
	hipGraphNode_t node;
	hipGraph_t graph;
	hipError_t err;

	OK(hipGraphCreate(&graph, 0));
	err = hipGraphAddMemcpyNode(&node, graph, NULL, 0, &m);
	OK(hipGraphDestroy(graph));
	return err;
}

static hipError_t fill_node(char *p, size_t n)
{
	hipMemsetParams m = {
		.dst = p, .elementSize = 1, .height = 1, .width = n, .pitch = n, .value = 9};
	hipGraphNode_t node;
	hipGraph_t graph;
	hipError_t err;

	OK(hipGraphCreate(&graph, 0));
	err = hipGraphAddMemsetNode(&node, graph, NULL, 0, &m);
	OK(hipGraphDestroy(graph));
	return err;
}

/* More rows than fit, by their pitch; for a node one row is enough. */
static hipError_t pitched_node(char *p, size_t n)
{
	hipMemsetParams m = {
		.dst = p, .elementSize = 1, .height = 1, .width = 1, .pitch = n, .value = 9};
	hipGraphNode_t node;
	hipGraph_t graph;
	hipError_t err;

	OK(hipGraphCreate(&graph, 0));
	err = hipGraphAddMemsetNode(&node, graph, NULL, 0, &m);
	OK(hipGraphDestroy(graph));
	return err;
}

#define CALL(name, call) \
	static hipError_t name(char *p, size_t n) \
	{ \
		return call; \
	}
CALL(copy_to, hipMemcpy(p, host, n, hipMemcpyHostToDevice))
CALL(copy_from, hipMemcpy(host, p, n, hipMemcpyDeviceToHost))
CALL(copy_async, hipMemcpyAsync(p, host, n, hipMemcpyHostToDevice, s))
CALL(copy_null, hipMemcpyAsync(host, p, n, hipMemcpyDeviceToHost, NULL))
CALL(copy_with, hipMemcpyWithStream(p, host, n, hipMemcpyHostToDevice, s))
CALL(copy_htod, hipMemcpyHtoD(p, host, n))
CALL(copy_dtoh, hipMemcpyDtoH(host, p, n))
CALL(copy_dtod_async, hipMemcpyDtoDAsync(p, p, n, s))
CALL(copy_2d, hipMemcpy2D(p, n / 2, host, n / 2, n / 2, 2, hipMemcpyHostToDevice))
CALL(copy_2d_async, hipMemcpy2DAsync(host, n / 2, p, n / 2, n / 2, 2, hipMemcpyDeviceToHost, s))
CALL(set, hipMemset(p, 9, n))
CALL(set_async, hipMemsetAsync(p, 9, n, s))
CALL(set_d8, hipMemsetD8(p, 9, n))
CALL(set_d8_async, hipMemsetD8Async(p, 9, n, s))
CALL(set_d32_async, hipMemsetD32Async(p, 9, n / 4, s))
CALL(set_2d, hipMemset2D(p, n / 2, 9, n / 2, 2))
CALL(set_2d_async, hipMemset2DAsync(p, n / 2, 9, n / 2, 2, s))

static const struct {
	const char *name;
	hipError_t (*call)(char *, size_t);
} calls[] = {
#define C(name) {#name, name}
	C(copy_to),   C(copy_from),    C(copy_async),      C(copy_null),    C(copy_with),
	C(copy_htod), C(copy_dtoh),    C(copy_dtod_async), C(copy_2d),      C(copy_2d_async),
	C(set),       C(set_async),    C(set_d8),          C(set_d8_async), C(set_d32_async),
	C(set_2d),    C(set_2d_async), C(described),       C(driver_2d),    C(copy_node),
	C(fill_node), C(pitched_node),
};

static void gives(size_t i, hipError_t want, char *p, size_t n)
{
	hipError_t err = calls[i].call(p, n);

	OK(hipDeviceSynchronize());
	(void)hipGetLastError();
	if (err != want)
		fprintf(stderr, "%s of %zu bytes: %d, not %d\n", calls[i].name, n, err, want);
	CHECK(err == want);
}

/* ---- the importer -------------------------------------------------------- */

static void ends(char *p)
{
	memset(host, 9, sizeof(host));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		gives(i, hipSuccess, p, BYTES);
		gives(i, hipErrorInvalidValue, p, BYTES + 4);
		if (calls[i].call != pitched_node)
			gives(i, hipErrorInvalidValue, p + BYTES / 2, BYTES);
		/* The next block, which nobody has opened here. */
		gives(i, hipErrorInvalidValue, p + BYTES, 1024);
	}
}

static int import(void)
{
	struct order o;
	void *p;
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	hear(3, &o, sizeof(o));
	for (int i = 0; i < PIECES; i += 2) {
		OK(hipIpcOpenMemHandle(&p, o.handle[i], 1));
		ends(p);
		OK(hipIpcCloseMemHandle(p));
		OK(hipMemPoolImportPointer(&p, pool, &o.data[i]));
		ends(p);
		OK(hipFree(p));
	}
	tell(4, "", 1);
	return 0;
}

/* ---- the exporter -------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct child c;
	char *p[PIECES], go;
	struct order o;

	if (argc > 1)
		return import();
	sim_calls();
	CHECK(preloaded());
	c = start("import", true);
	for (int i = 0; i < PIECES; i++) {
		OK(hipMalloc((void **)&p[i], BYTES));
		CHECK(!i || p[i] == p[i - 1] + BYTES);
		fill(p[i], 10 + i);
	}
	for (int i = 0; i < PIECES; i++) {
		OK(hipIpcGetMemHandle(&o.handle[i], p[i]));
		OK(hipMemPoolExportPointer(&o.data[i], p[i]));
	}
	tell(c.to, &o, sizeof(o));
	hear(c.from, &go, 1);
	for (int i = 0; i < PIECES; i++)
		CHECK(holds(p[i], i % 2 ? 10 + i : 9));
	finish(&c, 0);
	return 0;
}

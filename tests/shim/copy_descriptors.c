/* SPDX-License-Identifier: MIT */
/*
 * Copies and memsets that the driver API describes by a structure are checked against
 * blocks. One that would leave its block is refused, as the runtime refuses one that leaves
 * an allocation, and neighbouring blocks of the segment keep their bytes.
 */
#include <dlfcn.h>
#include <string.h>

#define BYTES 1000
#include "test.h"

enum { N = 8, SIZE = BYTES, PITCH = 100, ROWS = 10 };

static int version;

/* HIP_MEMCPY3D of the runtime that is there; the headers may be older or newer. */
#define BOX(number) { \
	number sx, sy, sz, slod; \
	int stype; \
	const void *shost, *sdev, *sarr; \
	number sp, sr, dx, dy, dz, dlod; \
	int dtype; \
	void *dhost, *ddev, *darr; \
	number dp, dr, w, h, d; \
}
struct box_5 BOX(unsigned int);
struct box_6 BOX(size_t);

static void *box(const struct box_6 *p)
{
	static struct box_6 wide;
	static struct box_5 narrow;

	wide = *p;
#define C(m) .m = p->m
	narrow = (struct box_5){C(sx), C(sy), C(sz), C(stype), C(shost), C(sdev),  C(sp),
				C(sr), C(dx), C(dy), C(dz),    C(dtype), C(dhost), C(ddev),
				C(dp), C(dr), C(w),  C(h),     C(d)};
#undef C
	return version >= 60000000 ? (void *)&wide : &narrow;
}

/* Of the driver API: HIP_MEMSET_NODE_PARAMS in 6.x. */
static void *params_of(hipMemsetParams *m)
{
	static struct {
		void *dst;
		size_t pitch;
		unsigned value, elem;
		size_t width, height;
	} old;

	old.dst = m->dst;
	old.pitch = m->pitch;
	old.elem = m->elementSize;
	old.width = m->width;
	old.height = m->height;
	return version < 70000000 ? (void *)&old : m;
}

static int host_type(void)
{
	return version < 60000000 ? 0 : 1;
}
static int device_type(void)
{
	return version < 60000000 ? 1 : 2;
}
static int unified_type(void)
{
	return version < 60000000 ? 3 : 11;
}

typedef hipError_t add_copy(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
			    const void *, void *);
typedef hipError_t add_set(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
			   const void *, void *);
typedef hipError_t set_node(hipGraphNode_t, const void *);
typedef hipError_t set_exec(hipGraphExec_t, hipGraphNode_t, const void *, void *);

static char host[64 * 1024];
static char *p[N], *mid;
static hipStream_t s;

static hipError_t flat(hip_Memcpy2D *m)
{
	hipError_t err = hipMemcpyParam2D(m);

	GIVES(err, hipMemcpyParam2DAsync(m, s));
	OK(hipStreamSynchronize(s));
	GIVES(err, hipDrvMemcpy2DUnaligned(m));
	return err;
}

static void rows(void)
{
	hipError_t bad = hipErrorInvalidValue;
	hip_Memcpy2D in = {.srcMemoryType = host_type(),
			   .srcHost = host,
			   .srcPitch = PITCH,
			   .dstMemoryType = device_type(),
			   .dstDevice = (hipDeviceptr_t)mid,
			   .dstPitch = PITCH,
			   .WidthInBytes = PITCH,
			   .Height = ROWS};
	hip_Memcpy2D out = {.dstMemoryType = host_type(),
			    .dstHost = host + 4096,
			    .dstPitch = 256,
			    .srcMemoryType = device_type(),
			    .srcDevice = (hipDeviceptr_t)mid,
			    .srcPitch = PITCH,
			    .WidthInBytes = PITCH,
			    .Height = ROWS};

	OK(flat(&in));
	OK(flat(&out));
	for (int unified = 0; unified < 2; unified++) {
		in.Height = out.Height = ROWS + 1;
		GIVES(bad, flat(&in));
		GIVES(bad, flat(&out));
		in.Height = out.Height = ROWS;
		in.dstY = out.srcY = 1;
		GIVES(bad, flat(&in));
		GIVES(bad, flat(&out));
		in.dstY = out.srcY = 0;
		in.dstMemoryType = out.srcMemoryType = unified_type();
	}
	/* The last row need not be whole; 9 * 101 + 91 bytes are 1000. */
	in.dstPitch = out.srcPitch = PITCH + 1;
	in.WidthInBytes = out.WidthInBytes = 92;
	GIVES(bad, flat(&in));
	GIVES(bad, flat(&out));
	in.WidthInBytes = out.WidthInBytes = 91;
	OK(flat(&in));
	OK(flat(&out));
	/* An address given as host memory may be a block all the same. */
	in.dstHost = mid;
	out.srcHost = mid;
	in.dstMemoryType = out.srcMemoryType = host_type();
	OK(flat(&in));
	OK(flat(&out));
	in.WidthInBytes = out.WidthInBytes = 92;
	GIVES(bad, flat(&in));
	GIVES(bad, flat(&out));
	in.WidthInBytes = out.WidthInBytes = 91;
	in.dstMemoryType = out.srcMemoryType = device_type();
	/* What is not meant is not looked at. */
	out.dstDevice = (hipDeviceptr_t)(p[1] + SIZE - 1);
	in.srcDevice = (hipDeviceptr_t)(p[1] + SIZE - 1);
	in.dstPitch = out.srcPitch = PITCH;
	in.srcHost = out.dstHost = host;
	in.srcMemoryType = out.dstMemoryType = host_type();
	GIVES(hipSuccess, hipMemcpyParam2D(&in) == bad ? bad : hipSuccess);
}

static void boxes(hipGraph_t graph)
{
	hipError_t bad = hipErrorInvalidValue;
	struct box_6 in = {.stype = host_type(),
			   .shost = host,
			   .sp = 50,
			   .sr = 4,
			   .dtype = device_type(),
			   .ddev = mid,
			   .dp = 50,
			   .dr = 4,
			   .w = 50,
			   .h = 4,
			   .d = 5};
	struct box_6 out = {.dtype = host_type(),
			    .dhost = host + 4096,
			    .dp = 50,
			    .dr = 4,
			    .stype = device_type(),
			    .sdev = mid,
			    .sp = 50,
			    .sr = 4,
			    .w = 50,
			    .h = 4,
			    .d = 5};
	add_copy *add = (add_copy *)dlsym(RTLD_DEFAULT, "hipDrvGraphAddMemcpyNode");
	set_node *set = (set_node *)dlsym(RTLD_DEFAULT, "hipDrvGraphMemcpyNodeSetParams");
	set_exec *exec = (set_exec *)dlsym(RTLD_DEFAULT, "hipDrvGraphExecMemcpyNodeSetParams");
	hipGraphExec_t run = NULL;
	hipGraphNode_t node, other;

	if (version < 60000000)
		add = NULL;
	if (add) {
		OK(add(&node, graph, NULL, 0, box(&in), NULL));
		OK(hipGraphInstantiate(&run, graph, NULL, NULL, 0));
	}
	for (int i = 0; i < 12; i++) {
		struct box_6 a = in, b = out;
		hipError_t want = bad;

		switch (i) {
		case 0: want = hipSuccess; break;
		case 1:
			a.d++;
			b.d++;
			break;
		case 2: a.dz = b.sz = 1; break;
		case 3: a.dx = b.sx = 1; break;
		case 4: a.dy = b.sy = 1; break;
		case 5: a.dr = b.sr = 5; break;
		case 6:
			a.dr = b.sr = 5;
			a.d = b.d = 4;
			want = hipSuccess;
			break;
		case 7: a.dp = b.sp = 51; break;
		case 8:
			a.dp = b.sp = 0;
			a.dr = b.sr = 0;
			want = hipSuccess;
			break;
		case 9:
			a.dp = b.sp = 0;
			a.dr = b.sr = 0;
			a.d = b.d = 6;
			break;
		case 10:
			a.dtype = b.stype = unified_type();
			a.h = b.h = 5;
			break;
		case 11:
			a.d = b.d = 4;
			a.dz = b.sz = 1;
			want = hipSuccess;
			break;
		}
		GIVES(want, hipDrvMemcpy3D(box(&a)));
		GIVES(want, hipDrvMemcpy3D(box(&b)));
		GIVES(want, hipDrvMemcpy3DAsync(box(&a), s));
		GIVES(want, hipDrvMemcpy3DAsync(box(&b), s));
		if (!add)
			continue;
		GIVES(want, add(&other, graph, NULL, 0, box(&a), NULL));
		GIVES(want, set(node, box(&b)));
		GIVES(want, exec(run, node, box(&a), NULL));
	}
	if (run)
		OK(hipGraphExecDestroy(run));
	OK(hipStreamSynchronize(s));
}

/* A pitch or a height of 0 means that nothing lies between rows, or slices. */
static void dense(void)
{
	static const struct {
		size_t pitch, ysize, width, height, depth;
		bool good;
	} t[] = {
		{0, 0, 100, 10, 1, true},   {0, 0, 100, 11, 1, false},   {100, 0, 100, 5, 2, true},
		{100, 0, 100, 5, 3, false}, {100, 0, 100, 1, 11, false}, {0, 10, 50, 2, 3, false},
		{0, 9, 50, 2, 3, true},     {0, 1, 500, 1, 3, false},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		hipError_t want = t[i].good ? hipSuccess : hipErrorInvalidValue;
		hipPitchedPtr block = {mid, t[i].pitch, t[i].width, t[i].ysize};
		hipMemcpy3DParms in = {.srcPtr = {host, 500, 500, 11},
				       .dstPtr = block,
				       .extent = {t[i].width, t[i].height, t[i].depth},
				       .kind = hipMemcpyHostToDevice};
		hipMemcpy3DParms out = {.srcPtr = block,
					.dstPtr = {host, 500, 500, 11},
					.extent = in.extent,
					.kind = hipMemcpyDeviceToHost};

		GIVES(want, hipMemcpy3D(&in));
		GIVES(want, hipMemcpy3DAsync(&out, s));
		OK(hipStreamSynchronize(s));
		if (t[i].pitch) { /* the runtime refuses a memset without */
			GIVES(want, hipMemset3D(block, 1, in.extent));
			OK(hipDeviceSynchronize());
			GIVES(want, hipMemset3DAsync(block, 1, in.extent, s));
		}
		OK(hipStreamSynchronize(s));
	}
}

/* pitch, width, height; a node is refused if its rows, with the pitch, are longer than the
 * block wherever they begin, and that of one row, too. */
static void sets(hipGraph_t graph)
{
	static const struct {
		size_t at, pitch, width, height;
		bool good;
	} t[] = {
		{0, 1000, 1000, 1, true}, {0, 0, 1000, 1, true},      {0, 1004, 1000, 1, false},
		{0, 1004, 4, 1, false},   {0, 1u << 30, 4, 1, false}, {0, 500, 500, 2, true},
		{0, 504, 496, 2, false},  {0, 900, 100, 2, false},    {0, 64, 16, 15, true},
		{0, 64, 16, 16, false},   {0, 1001, 1001, 1, false},  {1, 1000, 1000, 1, false},
		{100, 900, 900, 1, true}, {500, 250, 250, 2, true},   {501, 250, 250, 2, false},
	};
	add_set *add = (add_set *)dlsym(RTLD_DEFAULT, "hipDrvGraphAddMemsetNode");
	set_exec *exec = (set_exec *)dlsym(RTLD_DEFAULT, "hipDrvGraphExecMemsetNodeSetParams");
	hipMemsetParams m = {
		.dst = mid, .elementSize = 1, .pitch = 1000, .width = 1000, .height = 1};
	hipGraphNode_t node, other;
	hipGraphExec_t run;

	if (version < 60000000)
		add = NULL;
	OK(hipGraphAddMemsetNode(&node, graph, NULL, 0, &m));
	OK(hipGraphInstantiate(&run, graph, NULL, NULL, 0));
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		hipError_t want = t[i].good ? hipSuccess : hipErrorInvalidValue;

		m.dst = mid + t[i].at;
		m.pitch = t[i].pitch;
		m.width = t[i].width;
		m.height = t[i].height;
		GIVES(want, hipGraphAddMemsetNode(&other, graph, NULL, 0, &m));
		GIVES(want, hipGraphMemsetNodeSetParams(node, &m));
		GIVES(want, hipGraphExecMemsetNodeSetParams(run, node, &m));
		if (!add)
			continue;
		GIVES(want, add(&other, graph, NULL, 0, params_of(&m), NULL));
		GIVES(want, exec(run, node, params_of(&m), NULL));
	}
	OK(hipGraphExecDestroy(run));
}

/* What hipGraphAddNode takes: the kind, and behind 16 bytes a memset, behind 32 a copy. (The
 * software device knows none of them.) */
static void nodes(hipGraph_t graph)
{
	typedef hipError_t add_node(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
				    void *);
	add_node *add = (add_node *)dlsym(RTLD_DEFAULT, "hipGraphAddNode");
	hipError_t bad = hipErrorInvalidValue;
	size_t params[32] = {2};
	hipMemsetParams *m = (hipMemsetParams *)(params + 2);
	hipMemcpy3DParms *c = (hipMemcpy3DParms *)(params + 4);
	hipGraphNode_t node;

	if (version < 60000000)
		return;
	CHECK(add);
	*m = (hipMemsetParams){.dst = mid, .elementSize = 1, .width = SIZE + 1, .height = 1};
	GIVES(bad, add(&node, graph, NULL, 0, params));
	m->width = SIZE;
	CHECK(add(&node, graph, NULL, 0, params) != bad);
	memset(params, 0, sizeof(params));
	params[0] = 1;
	c->srcPtr = (hipPitchedPtr){host, SIZE + 1, SIZE + 1, 1};
	c->dstPtr = (hipPitchedPtr){mid, SIZE + 1, SIZE + 1, 1};
	c->extent = (hipExtent){SIZE + 1, 1, 1};
	c->kind = hipMemcpyHostToDevice;
	GIVES(bad, add(&node, graph, NULL, 0, params));
	c->extent.width = SIZE;
	CHECK(add(&node, graph, NULL, 0, params) != bad);
	GIVES(bad, add(NULL, NULL, NULL, 0, NULL) == hipSuccess ? hipSuccess : bad);
}

int main(void)
{
	hipGraph_t copies, fills;

	OK(hipRuntimeGetVersion(&version));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipGraphCreate(&copies, 0));
	OK(hipGraphCreate(&fills, 0));
	for (int i = 0; i < N; i++) {
		OK(hipMalloc((void **)&p[i], SIZE));
		fill(p[i], i);
	}
	memset(host, 0x77, sizeof(host));
	mid = p[3];
	rows();
	boxes(copies);
	dense();
	sets(fills);
	nodes(fills);
	OK(hipDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		CHECK(i == 3 || holds(p[i], i));
		OK(hipFree(p[i]));
	}
	OK(hipGraphDestroy(copies));
	OK(hipGraphDestroy(fills));
	OK(hipStreamDestroy(s));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Limits on what a pool may take and from which segments: segments of their own for blocks
 * that are shared, pools with a maxSize, a limit that is read before the first allocation,
 * memory that is reserved at the start, and exported memory, which does not count as idle.
 * The device has 1 GiB.
 *
 *   bounded CASE      each in the environment that tests/shim/meson.build sets
 */
#include <sched.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

static hipStream_t s, t;

static uint64_t left(void)
{
	return ((uint64_t(*)(int))sim_must("somasim_device_free_bytes"))(0);
}

static const char *said(void)
{
	static char text[1 << 16];
	FILE *f = fopen(getenv("SOMASHIM_LOG"), "r");

	text[0] = '\0';
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	return text;
}

/* From 6.0 on. */
static hipMemPool_t pool_of_at_most(uint64_t bytes)
{
	hipMemPoolProps props;
	hipMemPool_t pool;

	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.location.type = hipMemLocationTypeDevice;
	memcpy((char *)&props + 24, &bytes, sizeof(bytes));
	OK(hipMemPoolCreate(&pool, &props));
	return pool;
}

static uint64_t reserved(hipMemPool_t pool)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

/* Nobody waits for a kernel that never ends: neither what is refused nor what fits. */
static void whole_busy(void)
{
	void *a, *b, *k, *p;

	OK(hipMalloc(&k, MIB));
	OK(hipMalloc(&a, 400 * MIB));
	OK(hipMalloc(&b, 400 * MIB));
	OK(hipFree(a));
	OK(hipFree(b));
	OK(hipDeviceSynchronize());
	stall(s);
	OK(hipMemsetAsync(k, 1, MIB, s));
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, 600 * MIB));
	OK(hipMalloc(&p, 300 * MIB));
	release(s);
}

/* One live block: what was for another size goes back. */
static void whole_sizes(void)
{
	uint64_t least = UINT64_MAX;
	void *p;

	for (int i = 0; i < 60; i++) {
		OK(hipMalloc(&p, 16 * MIB + (size_t)(i * 37 % 50) * 2 * MIB));
		OK(hipMemsetAsync(p, 1, 4096, s));
		OK(hipFree(p));
		least = left() < least ? left() : least;
	}
	CHECK(least >= (1024 - 150) * MIB);
}

static _Atomic int reached;

static void reach(void **args)
{
	reached++;
}

/*
 * hipFree does not wait, hipMalloc does. How long it does is a matter of time, so the program
 * itself is never more than LEAD rounds ahead of the device, however slow that is. A fence may
 * cover as many rounds again that came after the free, so 2 * LEAD blocks may be on their way, and
 * 31 are allowed.
 */
static void whole_never(void)
{
	enum { ROUNDS = 60, LEAD = 10 };
	void (*reg)(const void *, void (*)(void **)) = sim_must("somasim_register_kernel");
	uint64_t least = UINT64_MAX;
	static char kernel;
	void *p;

	reg(&kernel, reach);
	for (int i = 0; i < ROUNDS; i++) {
		OK(hipMalloc(&p, 16 * MIB));
		OK(hipMemsetAsync(p, i, 16 * MIB, s));
		OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, s));
		OK(hipFree(p));
		while (i - reached > LEAD)
			sched_yield();
		least = left() < least ? left() : least;
	}
	OK(hipDeviceSynchronize());
	CHECK(least >= 512 * MIB);
}

static void whole_align(void)
{
	void *p;

	for (int i = 0; i < 5; i++) {
		OK(hipMalloc(&p, 64 * MIB));
		CHECK((uintptr_t)p % (64 * MIB) == 0);
	}
}

/* A pool at its maxSize takes from nobody else: that would not help it. */
static void max_alone(void)
{
	hipMemPool_t small = pool_of_at_most(64 * MIB), other = make_pool(0, hipMemHandleTypeNone);
	uint64_t all = UINT64_MAX;
	void *p, *list[32];

	OK(hipMemPoolSetAttribute(other, hipMemPoolAttrReleaseThreshold, &all));
	OK(hipMallocFromPoolAsync(&p, 512 * MIB, other, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	CHECK(reserved(other) >= 512 * MIB);
	for (int i = 0; i < 32; i++)
		OK(hipMallocFromPoolAsync(&list[i], 2 * MIB, small, s));
	for (int i = 0; i < 32; i += 2)
		OK(hipFreeAsync(list[i], s));
	OK(hipStreamSynchronize(s));
	GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&p, 20 * MIB, small, s));
	CHECK(reserved(other) >= 512 * MIB);
	/* More than it may hold is refused with a report as well. */
	CHECK(strstr(said(), "maxSize is 67108864"));
	GIVES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&p, 33 * MIB, small, s));
	CHECK(strstr(said(), "34603008 bytes"));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, (size_t)1 << 47, s));
	CHECK(strstr(said(), "140737488355328 bytes"));
}

/* Programs size what they will use before they allocate. */
static void limit_first(void)
{
	size_t has, total;

	for (int dev = 0; dev < 2; dev++) {
		OK(hipSetDevice(dev));
		OK(hipMemGetInfo(&has, &total));
		CHECK(has == 512 * MIB && total == 512 * MIB);
	}
}

/* Exported and freed beside what is live: it will not come, whoever waits. */
static void exported(void)
{
	hipIpcMemHandle_t h;
	void *p[900], *q;

	for (int i = 0; i < 900; i++)
		OK(hipMalloc(&p[i], MIB));
	for (int i = 0; i < 900; i++)
		if (i % 4) {
			OK(hipIpcGetMemHandle(&h, p[i]));
			OK(hipFree(p[i]));
		}
	OK(hipMallocAsync(&q, MIB, t));
	stall(t);
	OK(hipMemsetAsync(q, 1, MIB, t));
	OK(hipFreeAsync(q, t));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 600 * MIB, s));
	release(t);
	CHECK(strstr(said(), "tried: nothing"));
	CHECK(strstr(said(), "exported 7")); /* of some 700 MB */
}

/* What is reserved at the start is for the device's own pools. */
static void initial(void)
{
	hipMemPool_t one = make_pool(0, hipMemHandleTypeNone), two, usual;
	void *p;

	OK(hipMallocFromPoolAsync(&p, MIB, one, s));
	CHECK(reserved(one) < 512 * MIB);
	if (runtime_major() >= 6) {
		two = pool_of_at_most(64 * MIB);
		OK(hipMallocFromPoolAsync(&p, MIB, two, s));
	}
	OK(hipMallocAsync(&p, MIB, s));
	OK(hipDeviceGetDefaultMemPool(&usual, 0));
	CHECK(reserved(usual) >= 512 * MIB);
	CHECK(!strstr(said(), "SOMASHIM_INITIAL"));
}

/* What the runtime needs for itself it does not say that it lacks: so a device that was full has
 * some free as soon as the program has freed something, whatever idle memory is kept for. */
static void low_water(void)
{
	void *p[80];
	int n = 0;

	while (n < 80 && hipMalloc(&p[n], 16 * MIB) == hipSuccess)
		n++;
	CHECK(n > 40 && left() < 16 * MIB);
	for (int i = 0; i < n; i++) {
		OK(hipFree(p[i]));
		CHECK(left() >= 16 * MIB);
	}
	CHECK(left() < 512 * MIB); /* the rest is kept */
	for (n = 0; n < 80 && hipMallocAsync(&p[n], 16 * MIB, s) == hipSuccess; n++)
		;
	CHECK(n > 40 && left() < 16 * MIB);
	for (int i = 0; i < n; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	CHECK(left() >= 16 * MIB);
}

/* The null stream gets its queue while there is room for it. */
static void wakes(bool others)
{
	uint64_t before = sim_count("hipStreamQuery");
	void *p, *q;

	OK(hipMalloc(&p, 64 * MIB));
	CHECK(sim_count("hipStreamQuery") == before);
	if (others) {
		OK(hipExtMallocWithFlags(&q, 512 * MIB, hipDeviceMallocFinegrained));
		OK(hipMalloc(&p, 64 * MIB));
	} else {
		OK(hipMalloc(&q, 512 * MIB));
	}
	CHECK(sim_count("hipStreamQuery") == before + 1);
	OK(hipFree(q));
	OK(hipFree(p));
}

static void woken(void)
{
	wakes(false);
}

static void woken_others(void)
{
	wakes(true);
}

/* Before a graph runs there is room for what it allocates; nobody says when there is none. */
static void room(bool heap, bool update)
{
	struct {
		hipMemPoolProps props;
		const void *access;
		size_t count, bytes;
		void *p;
	} node;
	hipError_t (*add)(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t, void *) =
		(hipError_t(*)(hipGraphNode_t *, hipGraph_t, const hipGraphNode_t *, size_t,
			       void *))dlsym(RTLD_DEFAULT, "hipGraphAddMemAllocNode");
	hipGraphExecUpdateResult result;
	hipGraphExec_t exec;
	hipGraphNode_t n;
	hipGraph_t graph;
	void *p;

	CHECK(add);
	OK(hipMalloc(&p, 400 * MIB));
	OK(hipFree(p));
	OK(hipDeviceSynchronize());
	CHECK(left() < 700 * MIB);
	memset(&node, 0, sizeof(node));
	node.props.allocType = hipMemAllocationTypePinned;
	node.props.location.type = hipMemLocationTypeDevice;
	node.bytes = 450 * MIB;
	OK(hipGraphCreate(&graph, 0));
	OK(add(&n, graph, NULL, 0, &node)); /* the software device takes it here */
	CHECK(left() < 250 * MIB);
	if (heap) { /* nor of the heap of kernels that call malloc() */
		hipError_t (*limit)(int, size_t) = (hipError_t(*)(int, size_t))dlsym(
			RTLD_DEFAULT, "hipDeviceSetLimit");

		CHECK(limit);
		OK(limit(2, 300 * MIB));
		CHECK(left() >= 300 * MIB);
		return;
	}
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	CHECK(left() >= 450 * MIB);
	if (!update)
		return;
	OK(hipMalloc(&p, 300 * MIB));
	OK(hipFree(p));
	OK(hipDeviceSynchronize());
	CHECK(left() < 300 * MIB);
	OK(hipGraphExecUpdate(exec, graph, &n, &result));
	CHECK(left() >= 450 * MIB);
}

static void graph_room(void)
{
	room(false, false);
}

static void update_room(void)
{
	room(false, true);
}

static void heap_room(void)
{
	room(true, false);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"whole_busy", whole_busy},     {"whole_sizes", whole_sizes},
		{"whole_never", whole_never},   {"whole_align", whole_align},
		{"max_alone", max_alone},       {"limit_first", limit_first},
		{"exported", exported},         {"initial", initial},
		{"low_water", low_water},       {"woken", woken},
		{"woken_others", woken_others}, {"graph_room", graph_room},
		{"heap_room", heap_room},       {"update_room", update_room},
	};

	CHECK(argc == 2 && getenv("SOMASHIM_LOG"));
	alarm(100);
	(void)sim_must("somasim_device_free_bytes");
	unlink(getenv("SOMASHIM_LOG"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			if (cases[i].run != limit_first) {
				OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
				OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
			}
			cases[i].run();
			unlink(getenv("SOMASHIM_LOG"));
			return 0;
		}
	CHECK(!"such a case");
	return 1;
}

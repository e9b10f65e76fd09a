/* SPDX-License-Identifier: MIT */
/*
 * hipIpc* handles between real processes. This process exports, and copies of it import.
 * Their pipe carries handles and verdicts only.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#define BYTES 100000
#include "procs.h"

#define BLOCKS 6

struct order {
	int count;
	hipIpcMemHandle_t handle[BLOCKS];
};

/* ---- importers ---------------------------------------------------------- */

/* hipIpcMemLazyEnablePeerAccess was 0 in 5.2's header, which newer releases refuse. */
static unsigned flags(void)
{
	return 1;
}

static unsigned char *open_all(struct order *o, void **p)
{
	hear(3, o, sizeof(*o));
	for (int i = 0; i < o->count; i++) {
		OK(hipIpcOpenMemHandle(&p[i], o->handle[i], flags()));
		CHECK(holds(p[i], 10 + i));
	}
	return p[0];
}

/* One mapping for all blocks of a segment; any order; contents both ways. */
static int import(void)
{
	hipMemPoolPtrExportData data;
	struct order o;
	void *p[BLOCKS], *again, *base;
	size_t size;
	char go = 1;

	CHECK(preloaded());
	open_all(&o, p);
	CHECK(sim_count("hipIpcOpenMemHandle") == 1);
	OK(hipIpcOpenMemHandle(&again, o.handle[2], flags()));
	CHECK(again == p[2] && sim_count("hipIpcOpenMemHandle") == 1);
	OK(hipMemGetAddressRange(&base, &size, (char *)p[1] + 7));
	CHECK(base == p[1] && size == BYTES);
	/* The runtime would hand on the start of the segment for any block in it. */
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&o.handle[1], p[1]));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, p[1]));
	CHECK(!sim_count("hipIpcGetMemHandle") && !sim_count("hipMemPoolExportPointer"));
	GIVES(hipErrorInvalidValue, hipFree(p[1]));
	GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle((char *)p[1] + 512));
	for (int i = 0; i < o.count; i++)
		fill(p[i], 50 + i);
	tell(4, &go, 1);
	hear(3, &go, 1); /* it has freed some; what we have open stays ours */
	for (int i = 0; i < o.count; i++)
		CHECK(holds(p[i], 50 + i));
	OK(hipIpcCloseMemHandle(p[0]));
	GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(p[0]));
	OK(hipIpcCloseMemHandle(p[2]));
	for (int i = o.count - 1; i > 0; i--) {
		CHECK(holds(p[i], 50 + i));
		CHECK(sim_count("hipIpcCloseMemHandle") == 0);
		OK(hipIpcCloseMemHandle(p[i]));
	}
	CHECK(sim_count("hipIpcCloseMemHandle") == 1);
	tell(4, &go, 1);
	return 0;
}

/* Without the shim: the block at offset 0 opens, all others are refused. */
static int plain(void)
{
	struct order o;
	char go = 1;
	void *p;

	CHECK(!preloaded());
	hear(3, &o, sizeof(o));
	OK(hipIpcOpenMemHandle(&p, o.handle[0], flags()));
	CHECK(holds(p, 10));
	OK(hipIpcCloseMemHandle(p));
	for (int i = 1; i < o.count; i++)
		CHECK(hipIpcOpenMemHandle(&p, o.handle[i], flags()) != hipSuccess);
	tell(4, &go, 1);
	return 0;
}

/* Every block is at offset 0 (SOMASHIM_IPC_WHOLE). */
static int plain_whole(void)
{
	struct order o;
	void *p[BLOCKS];
	char go = 1;

	open_all(&o, p);
	for (int i = 0; i < o.count; i++)
		OK(hipIpcCloseMemHandle(p[i]));
	tell(4, &go, 1);
	return 0;
}

/* Handles of nobody, and of ours with a byte changed. */
static int hostile(void)
{
	struct order o;
	unsigned seed = 1;
	void *p[BLOCKS], *q;
	char go = 1;

	open_all(&o, p);
	for (int i = 0; i < 2000; i++) {
		hipIpcMemHandle_t h = o.handle[1 + i % (o.count - 1)];

		seed = seed * 1103515245u + 12345u;
		((unsigned char *)&h)[seed >> 8 & 63] ^= 1 << (seed >> 16 & 7);
		CHECK(hipIpcOpenMemHandle(&q, h, flags()) != hipSuccess);
		for (size_t k = 0; k < sizeof(h); k++)
			((unsigned char *)&h)[k] = (unsigned char)(seed = seed * 69069 + 1);
		CHECK(hipIpcOpenMemHandle(&q, h, flags()) != hipSuccess);
	}
	tell(4, &go, 1);
	return 0;
}

/* A close that the runtime refuses has closed nothing, and can be tried again. */
static int refused(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	struct order o;
	void *p[BLOCKS], *base;
	size_t size;
	char go = 1;

	open_all(&o, p);
	for (int i = 0; i < o.count; i++)
		if (i != 1) /* not at the start of the mapping, so only we know it */
			OK(hipIpcCloseMemHandle(p[i]));
	for (int i = 0; i < 2; i++) {
		fail("hipIpcCloseMemHandle:1=1");
		GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(p[1]));
		clear();
		OK(hipMemGetAddressRange(&base, &size, p[1]));
		CHECK(base == p[1] && size == BYTES && holds(p[1], 11));
	}
	OK(hipIpcCloseMemHandle(p[1]));
	CHECK(hipIpcCloseMemHandle(p[1]) != hipSuccess);
	tell(4, &go, 1);
	return 0;
}

/* Holds what it opened until it is killed, or until the other one is gone. */
static int hold(void)
{
	struct order o;
	void *p[BLOCKS];

	open_all(&o, p);
	if (orphaned()) {
		for (int i = 0; i < o.count; i++)
			CHECK(holds(p[i], 10 + i));
		for (int i = 0; i < o.count; i++)
			OK(hipIpcCloseMemHandle(p[i]));
	}
	return 0;
}

static void *left[BLOCKS];
static unsigned char *seen;

/* Each by itself, and each close waits for what still reads. */
static void closes_late(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		OK(hipMemcpyAsync(seen, left[i], BYTES, hipMemcpyDeviceToHost, NULL));
		OK(hipIpcCloseMemHandle(left[i]));
		for (size_t k = 0; k < BYTES; k++)
			CHECK(seen[k] == 10 + i);
	}
	tell(4, "", 1);
}

/* The same beside a capture, which goes on. */
static int captures(void)
{
	hipStream_t s, t;
	hipGraph_t graph;
	struct order o;
	void *p[BLOCKS];

	open_all(&o, p);
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
	OK(hipStreamBeginCapture(t, hipStreamCaptureModeGlobal));
	for (int i = 0; i < BLOCKS; i++) {
		OK(hipMemcpyAsync(seen, p[i], BYTES, hipMemcpyDeviceToHost, s));
		OK(hipIpcCloseMemHandle(p[i]));
		for (size_t k = 0; k < BYTES; k++)
			CHECK(seen[k] == 10 + i);
	}
	OK(hipMemsetAsync(seen, 0, BYTES, t));
	OK(hipStreamEndCapture(t, &graph));
	OK(hipGraphDestroy(graph));
	tell(4, "", 1);
	return 0;
}

static int late(void)
{
	struct order o;

	if (!on_cuda()) /* whose driver ends before a handler that is older than it */
		atexit(closes_late);
	open_all(&o, left);
	OK(hipHostMalloc((void **)&seen, BYTES, 0));
	if (on_cuda())
		atexit(closes_late);
	return 0;
}

/* ---- the exporter ------------------------------------------------------- */

static void export(struct order *o, void **p, int count)
{
	memset(o, 0, sizeof(*o));
	o->count = count;
	for (int i = 0; i < count; i++) {
		OK(hipMalloc(&p[i], BYTES));
		fill(p[i], 10 + i);
		OK(hipIpcGetMemHandle(&o->handle[i], p[i]));
	}
}

static void free_all(void **p, int count)
{
	for (int i = 0; i < count; i++)
		OK(hipFree(p[i]));
}

/* Nothing that was exported is ever handed out again. */
static void check_not_reused(void **p, int count)
{
	void *q[64];

	for (int k = 0; k < 64; k++) {
		OK(k % 2 ? hipMalloc(&q[k], BYTES) : hipMallocAsync(&q[k], BYTES, NULL));
		for (int i = 0; i < count; i++)
			CHECK(q[k] != p[i]);
	}
	for (int k = 0; k < 64; k++)
		OK(k % 2 ? hipFree(q[k]) : hipFreeAsync(q[k], NULL));
}

static void two_ways(int importers)
{
	struct child c[8];
	struct order o;
	void *p[BLOCKS];
	uint64_t freed;
	char go = 1;

	for (int n = 0; n < importers; n++) {
		c[n] = start("import", true);
		export(&o, p, BLOCKS);
		tell(c[n].to, &o, sizeof(o));
		hear(c[n].from, &go, 1);
		for (int i = 0; i < BLOCKS; i++)
			CHECK(holds(p[i], 50 + i));
		/* All but one: the segment stays. */
		freed = sim_count("hipFree");
		free_all(p, BLOCKS - 1);
		CHECK(sim_count("hipFree") == freed);
		check_not_reused(p, BLOCKS - 1);
		if (n % 2) {
			OK(hipFree(p[BLOCKS - 1]));
			CHECK(sim_count("hipFree") == freed + 1);
			check_not_reused(p, 0);
		}
		tell(c[n].to, &go, 1);
		if (n % 2 == 0) {
			hear(c[n].from, &go, 1);
			OK(hipFree(p[BLOCKS - 1]));
			CHECK(sim_count("hipFree") == freed + 1);
		}
	}
	for (int n = 0; n < importers; n++) {
		if (n % 2) /* its last word is still to come */
			hear(c[n].from, &go, 1);
		finish(&c[n], 0);
	}
}

static void ask(const char *role, bool shim, int die)
{
	struct child c = start(role, shim);
	struct order o;
	void *p[BLOCKS];
	char go;

	export(&o, p, BLOCKS);
	tell(c.to, &o, sizeof(o));
	hear(c.from, &go, 1);
	if (die)
		kill(c.pid, die);
	if (!strcmp(role, "hold") && !die)
		tell(c.to, &go, 1);
	finish(&c, die);
	free_all(p, BLOCKS);
}

/* Exports, and dies while the other holds on. */
static int doomed(void)
{
	struct order o;
	void *p[BLOCKS];
	char go;

	export(&o, p, BLOCKS);
	tell(4, &o, sizeof(o));
	hear(3, &go, 1);
	raise(SIGKILL);
	return 1;
}

static void exporter_dies(void)
{
	struct child e = start("doomed", true), i = start("hold", true);
	struct order o;
	char go = 1;

	hear(e.from, &o, sizeof(o));
	tell(i.to, &o, sizeof(o));
	hear(i.from, &go, 1);
	tell(e.to, &go, 1);
	finish(&e, SIGKILL);
	finish(&i, 0);
}

static void corners(void)
{
	hipIpcMemHandle_t h, g;
	void *p, *q;

	OK(hipMalloc(&p, 1000));
	OK(hipMalloc(&q, 1000));
	OK(hipIpcGetMemHandle(&h, p));
	OK(hipIpcGetMemHandle(&g, (char *)q + 100));
	CHECK(hipIpcOpenMemHandle(&p, h, flags()) == hipErrorInvalidContext);
	CHECK(hipIpcOpenMemHandle(&p, g, flags()) == hipErrorInvalidContext);
	CHECK(hipIpcOpenMemHandle(&p, h, 2) == hipErrorInvalidValue);
	if (runtime_major() >= 6)
		CHECK(hipIpcOpenMemHandle(&p, h, 0) == hipErrorInvalidValue);
	CHECK(hipIpcGetMemHandle(NULL, q) != hipSuccess);
	CHECK(hipIpcGetMemHandle(&h, NULL) != hipSuccess);
	CHECK(hipIpcCloseMemHandle(q) != hipSuccess);
	OK(hipFree(q));
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&h, q));
	GIVES(hipErrorInvalidValue, hipFree(q));
}

/* What a sharing library does (UCX, rocm_ipc_md.c): it asks ROCr what the pointer
 * belongs to and exports all of that. */
static hsa_status_t export_as_ucx(void *ptr)
{
	hsa_status_t (*look)(const void *, hsa_amd_pointer_info_t *, void *(*)(size_t), uint32_t *,
			     hsa_agent_t **) = sim_call("hsa_amd_pointer_info");
	hsa_status_t (*create)(void *, size_t,
			       hsa_amd_ipc_memory_t *) = sim_call("hsa_amd_ipc_memory_create");
	hsa_amd_pointer_info_t info = {.size = sizeof(info)};
	hsa_amd_ipc_memory_t handle;

	CHECK(look && create && look(ptr, &info, NULL, NULL, NULL) == HSA_STATUS_SUCCESS);
	if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN) {
		info.agentBaseAddress = ptr;
		info.sizeInBytes = 1 << 20;
	}
	return create(info.agentBaseAddress, info.sizeInBytes, &handle);
}

/* Pool memory on VMM must not reach the real calls, from whatever side: the device
 * ends the process if it does. */
static int vmm(void)
{
	uint64_t before = sim_count("hipIpcGetMemHandle");
	uint64_t raw = sim_count("hsa_amd_ipc_memory_create");
	hsa_status_t (*create)(void *, size_t,
			       hsa_amd_ipc_memory_t *) = sim_call("hsa_amd_ipc_memory_create");
	hipMemPoolPtrExportData d;
	hsa_amd_ipc_memory_t handle;
	hipIpcMemHandle_t h;
	void *p, *q;

	OK(hipMallocAsync(&p, 1 << 20, NULL));
	GIVES(hipErrorInvalidValue, hipIpcGetMemHandle(&h, p));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&d, p));
	CHECK(sim_count("hipIpcGetMemHandle") == before);
	CHECK(export_as_ucx(p) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
	for (int i = 0; i < 3; i++) /* any range that touches it */
		CHECK(create((char *)p + (i - 1) * 4096, 8192, &handle) ==
		      HSA_STATUS_ERROR_INVALID_ARGUMENT);
	OK(hipFreeAsync(p, NULL));
	OK(hipStreamSynchronize(NULL));
	CHECK(create(p, 4096, &handle) == HSA_STATUS_ERROR_INVALID_ARGUMENT);
	CHECK(sim_count("hsa_amd_ipc_memory_create") == raw);
	/* hipMalloc memory is never of that kind. */
	OK(hipMalloc(&q, 1 << 20));
	CHECK(export_as_ucx(q) == HSA_STATUS_SUCCESS);
	CHECK(sim_count("hsa_amd_ipc_memory_create") == raw + 1);
	OK(hipFree(q));
	return 0;
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	sim_calls();
	if (!strcmp(role, "import"))
		return import();
	if (!strcmp(role, "plain"))
		return plain();
	if (!strcmp(role, "plain-whole"))
		return plain_whole();
	if (!strcmp(role, "hostile"))
		return hostile();
	if (!strcmp(role, "refused"))
		return refused();
	if (!strcmp(role, "hold"))
		return hold();
	if (!strcmp(role, "late"))
		return late();
	if (!strcmp(role, "captures"))
		return captures();
	if (!strcmp(role, "doomed"))
		return doomed();
	if (!strcmp(role, "vmm"))
		return vmm();
	CHECK(preloaded());
	if (getenv("SOMASHIM_IPC_WHOLE")) {
		ask("plain-whole", false, 0);
		return 0;
	}
	ask("plain", false, 0);
	ask("hostile", true, 0);
	ask("refused", true, 0);
	ask("late", true, 0);
	ask("captures", true, 0);
	ask("hold", true, SIGKILL);
	ask("hold", true, 0);
	exporter_dies();
	two_ways(7);
	corners();
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Pools between real processes: descriptors over SCM_RIGHTS, pointers in 64 bytes. This
 * process exports, and copies of it import. In share_many.c every process does both.
 */
#include "share.h"

/* ---- importers ---------------------------------------------------------- */

/* Memory of its own, whatever is imported into the same pool. */
static void allocates(hipMemPool_t pool, void *const *p, int count)
{
	hipPointerAttribute_t a;
	void *own, *q;
	int device;

	OK(hipMallocFromPoolAsync(&own, BYTES, pool, NULL));
	for (int i = 0; i < count; i++)
		CHECK((char *)own + BYTES <= (char *)p[i] || (char *)own >= (char *)p[i] + BYTES);
	fill(own, 99);
	OK(hipGetDevice(&device));
	OK(hipPointerGetAttributes(&a, own));
	CHECK(a.device == device);
	for (int i = 0; i < count; i++)
		CHECK(!holds(p[i], 99));
	CHECK(holds(own, 99));
	OK(hipFree(own));
	OK(hipMallocFromPoolAsync(&own, BYTES, pool, NULL));
	OK(hipMallocFromPoolAsync(&q, BYTES, pool, NULL));
	CHECK(q != own);
	OK(hipFreeAsync(own, NULL));
	OK(hipFreeAsync(q, NULL));
}

/* One mapping for all blocks of a segment, any order, contents both ways. */
static int import(void)
{
	unsigned id[BLOCKS];
	hipMemPool_t pool;
	struct order o;
	void *p[BLOCKS], *again, *base;
	size_t size;
	char go = 1;

	CHECK(preloaded());
	pool = open_all(&o, p);
	CHECK(sim_count("hipIpcOpenMemHandle") == 1);
	for (int i = 0; i < o.count; i++) {
		OK(hipMemGetAddressRange(&base, &size, (char *)p[i] + 7));
		CHECK(base == p[i] && size == BYTES);
		OK(hipPointerGetAttribute(&id[i], HIP_POINTER_ATTRIBUTE_BUFFER_ID, p[i]));
		for (int k = 0; k < i; k++)
			CHECK(id[i] != id[k]);
	}
	OK(hipMemPoolImportPointer(&again, pool, &o.data[2]));
	CHECK(again == p[2] && sim_count("hipIpcOpenMemHandle") == 1);
	allocates(pool, p, o.count);
	/* The host does not wait for a memset, and it ends with the block. */
	OK(hipStreamSynchronize(NULL));
	stall(NULL);
	OK(hipMemset((char *)p[3] + 64, 13, 100));
	release(NULL);
	GIVES(hipErrorInvalidValue, hipMemset(p[3], 0, BYTES + 1));
	GIVES(hipErrorInvalidValue, hipIpcCloseMemHandle(p[1]));
	GIVES(hipErrorInvalidValue, hipFree((char *)p[1] + 512));
	GIVES(hipErrorInvalidValue, hipFreeAsync((char *)p[1] + 512, NULL));
	for (int i = 0; i < o.count; i++)
		fill(p[i], 50 + i);
	tell(4, &go, 1);
	hear(3, &go, 1); /* it has freed some; what we have open stays ours */
	for (int i = 0; i < o.count; i++)
		CHECK(holds(p[i], 50 + i));
	OK(hipMemPoolDestroy(pool)); /* what was imported outlives it */
	OK(hipFree(p[0]));
	GIVES(hipErrorInvalidValue, hipFree(p[0]));
	OK(hipFreeAsync(p[2], NULL));
	for (int i = o.count - 1; i > 0; i--) {
		CHECK(holds(p[i], 50 + i));
		CHECK(sim_count("hipIpcCloseMemHandle") == 0);
		OK(i % 2 ? hipFree(p[i]) : hipFreeAsync(p[i], NULL));
	}
	OK(hipDeviceSynchronize());
	CHECK(sim_count("hipIpcCloseMemHandle") == 1);
	CHECK(hipFree(p[1]) != hipSuccess);
	tell(4, &go, 1);
	return 0;
}

/* A free on a stream waits for nobody; the mapping goes when its last use has. */
static int lazy(void)
{
	hipMemPool_t pool;
	hipStream_t s, busy;
	struct order o;
	void *p[BLOCKS], *again;
	char go = 1;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&busy, hipStreamNonBlocking));
	pool = open_all(&o, p);
	stall(s);
	OK(hipMemsetAsync(p[0], 77, BYTES, s));
	for (int i = 0; i < o.count; i++)
		OK(hipFreeAsync(p[i], s));
	CHECK(sim_count("hipIpcCloseMemHandle") == 0);
	GIVES(hipErrorInvalidValue, hipFreeAsync(p[0], s));
	/* Opened again, it is the mapping that is still there. */
	OK(hipMemPoolImportPointer(&again, pool, &o.data[1]));
	CHECK(again == p[1] && sim_count("hipIpcOpenMemHandle") == 1);
	OK(hipFreeAsync(again, s));
	release(s);
	/* Not while another stream may look, for that would mean to wait for it. */
	stall(busy);
	OK(hipMemsetAsync(p[0], 77, BYTES, busy));
	OK(hipStreamSynchronize(s));
	CHECK(sim_count("hipIpcCloseMemHandle") == 0);
	release(busy);
	OK(hipStreamSynchronize(busy));
	for (int i = 0; i < 2000 && !sim_count("hipIpcCloseMemHandle"); i++) {
		OK(hipStreamSynchronize(s));
		usleep(1000);
	}
	CHECK(sim_count("hipIpcCloseMemHandle") == 1);
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
			OK(hipFree(p[i]));
		CHECK(sim_count("hipIpcCloseMemHandle") == 1);
	}
	return 0;
}

/* A free that the runtime refuses has freed nothing, and can be tried again. */
static int refused(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	unsigned id, still;
	struct order o;
	void *p[BLOCKS], *base;
	size_t size;
	char go = 1;

	open_all(&o, p);
	for (int i = 0; i < o.count; i++)
		if (i != 1) /* not at the start of the mapping, so only we know it */
			OK(hipFree(p[i]));
	OK(hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, p[1]));
	fail("hipIpcCloseMemHandle:1=1");
	GIVES(hipErrorInvalidValue, hipFree(p[1]));
	clear();
	OK(hipMemGetAddressRange(&base, &size, (char *)p[1] + 7));
	CHECK(base == p[1] && size == BYTES && holds(p[1], 11));
	OK(hipPointerGetAttribute(&still, HIP_POINTER_ATTRIBUTE_BUFFER_ID, p[1]));
	CHECK(still == id);
	OK(hipFree(p[1]));
	CHECK(sim_count("hipIpcCloseMemHandle") == 2);
	GIVES(hipErrorInvalidValue, hipFree(p[1]));
	tell(4, &go, 1);
	return 0;
}

/* Without the shim: nothing of ours opens, least of all at the wrong place. */
static int plain(void)
{
	hipMemPool_t pool;
	struct order o;
	char go = 1;
	void *p;
	int fd = receive_fd(3);

	CHECK(!preloaded());
	hear(3, &o, sizeof(o));
	CHECK(hipMemPoolImportFromShareableHandle(&pool, by_value(fd), POSIX_FD, 0) != hipSuccess);
	pool = shareable(0);
	for (int i = 0; i < o.count; i++)
		CHECK(hipMemPoolImportPointer(&p, pool, &o.data[i]) != hipSuccess);
	tell(4, &go, 1);
	return 0;
}

/* Pointers of nobody, and of ours with a bit changed. */
static int hostile(void)
{
	struct order o;
	unsigned seed = 1;
	void *p[BLOCKS], *q;
	hipMemPool_t pool;
	char go = 1;

	pool = open_all(&o, p);
	for (int i = 0; i < 2048; i++) {
		hipMemPoolPtrExportData d = o.data[i % o.count];

		((unsigned char *)&d)[i >> 3 & 63] ^= 1 << (i & 7);
		GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, pool, &d));
		for (size_t k = 0; k < sizeof(d); k++)
			((unsigned char *)&d)[k] = (unsigned char)((seed = seed * 69069 + 1) >> 16);
		CHECK(hipMemPoolImportPointer(&q, pool, &d) != hipSuccess);
	}
	tell(4, &go, 1);
	return 0;
}

/* ---- the exporter ------------------------------------------------------- */

/* Nothing that was exported is ever handed out again. */
static void check_not_reused(hipMemPool_t pool, void **p, int count)
{
	void *q[64];

	for (int k = 0; k < 64; k++) {
		OK(hipMallocFromPoolAsync(&q[k], BYTES, pool, NULL));
		for (int i = 0; i < count; i++)
			CHECK(q[k] != p[i]);
	}
	for (int k = 0; k < 64; k++)
		OK(hipFreeAsync(q[k], NULL));
}

/* Importer first, then exporter; and the other way round. */
static void two_ways(int importers)
{
	struct child c[8];
	struct order o;
	hipMemPool_t pool;
	void *p[BLOCKS];
	char go = 1;

	for (int n = 0; n < importers; n++) {
		c[n] = start("import", true);
		pool = shareable(0);
		export(&o, pool, p, BLOCKS, 0);
		hand_over(c[n].to, pool, &o);
		hear(c[n].from, &go, 1);
		for (int i = 0; i < BLOCKS; i++)
			CHECK(holds(p[i], 50 + i));
		if (n % 2)
			for (int i = 0; i < BLOCKS; i++)
				OK(i & 1 ? hipFree(p[i]) : hipFreeAsync(p[i], NULL));
		else
			OK(hipFreeAsync(p[0], NULL));
		check_not_reused(pool, p, n % 2 ? BLOCKS : 1);
		if (n % 2) { /* while it still has all of it open */
			OK(hipDeviceSynchronize());
			OK(hipMemPoolTrimTo(pool, 0));
			CHECK(reserved(pool) == 0);
		}
		tell(c[n].to, &go, 1);
		hear(c[n].from, &go, 1);
		if (n % 2 == 0)
			for (int i = 1; i < BLOCKS; i++)
				OK(hipFreeAsync(p[i], NULL));
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(pool, 0));
		CHECK(reserved(pool) == 0); /* given back by the real hipFree */
		OK(hipMemPoolDestroy(pool));
	}
	for (int n = 0; n < importers; n++)
		finish(&c[n], 0);
}

static void ask(const char *role, bool shim, int die)
{
	struct child c = start(role, shim);
	hipMemPool_t pool = shareable(0);
	struct order o;
	void *p[BLOCKS];
	char go;

	export(&o, pool, p, BLOCKS, 0);
	hand_over(c.to, pool, &o);
	hear(c.from, &go, 1);
	if (die)
		kill(c.pid, die);
	else if (!strcmp(role, "hold"))
		tell(c.to, &go, 1);
	finish(&c, die);
	for (int i = 0; i < BLOCKS; i++)
		OK(hipFreeAsync(p[i], NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(reserved(pool) == 0);
	OK(hipMemPoolDestroy(pool));
}

/* Exports, and dies while the other holds on. */
static int doomed(void)
{
	hipMemPool_t pool = shareable(0);
	struct order o;
	void *p[BLOCKS];
	char go;

	export(&o, pool, p, BLOCKS, 0);
	hand_over(4, pool, &o);
	hear(3, &go, 1);
	raise(SIGKILL);
	return 1;
}

static void exporter_dies(void)
{
	struct child e = start("doomed", true), i = start("hold", true);
	struct order o;
	char go = 1;
	int fd = receive_fd(e.from);

	hear(e.from, &o, sizeof(o));
	send_fd(i.to, fd); /* a third one may pass it on */
	close(fd);
	tell(i.to, &o, sizeof(o));
	hear(i.from, &go, 1);
	tell(e.to, &go, 1);
	finish(&e, SIGKILL);
	finish(&i, 0);
}

/* Neither descriptors nor device memory, however the others went. */
static void no_leak(void)
{
	uint64_t before;
	int fds;

	ask("hold", true, SIGKILL);
	fds = open_fds();
	before = device_free(0);
	for (int i = 0; i < 4; i++) {
		ask("hold", true, i % 2 ? SIGKILL : 0);
		exporter_dies();
	}
	CHECK(open_fds() == fds && device_free(0) == before);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} roles[] = {
		{"import", import},
		{"lazy", lazy},
		{"hold", hold},
		{"plain", plain},
		{"hostile", hostile},
		{"refused", refused},
		{"doomed", doomed},
		{"peer", peer},
		{"guide-pointer", guide_pointer},
		{"guide-handle", guide_handle},
		{"plain-exporter", plain_exporter},
		{"right-device", right_device},
		{"both-devices", both_devices},
		{"no-device", no_device},
		{"crowd", crowd},
		{"late", late},
		{"never-idle", never_idle},
	};
	int count = 0;

	signal(SIGPIPE, SIG_IGN);
	sim_calls();
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[1], roles[i].name))
			return roles[i].run();
	CHECK(preloaded());
	OK(hipGetDeviceCount(&count));
	if (count == DEVICES) {
		devices();
		return 0;
	}
	arguments();
	attributes();
	same_process();
	stale();
	loop();
	guide();
	ask("plain", false, 0);
	ask("hostile", true, 0);
	ask("refused", true, 0);
	ask("lazy", true, 0);
	ask("crowd", true, 0);
	ask("late", true, 0);
	ask("never-idle", true, 0);
	no_leak();
	two_ways(4);
	if (!getenv("SHARE_NATIVE_CANNOT"))
		from_plain();
	all_to_all(8);
	return 0;
}

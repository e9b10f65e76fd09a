/* SPDX-License-Identifier: MIT */
/*
 * Pools between real processes: descriptors over SCM_RIGHTS, pointers in 64 bytes. This
 * process exports, copies of it import, and the other way round.
 */
#include <sys/mman.h>

#include "procs.h"

#define BLOCKS 6
#define BYTES 100000
#define POSIX_FD hipMemHandleTypePosixFileDescriptor
#define DEVICES 2 /* where a test has them */

struct order {
	int count, device;
	hipMemPoolPtrExportData data[BLOCKS];
};

static hipMemPool_t shareable(int device)
{
	hipMemPoolProps props;
	hipMemPool_t pool;

	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = POSIX_FD;
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = device;
	OK(hipMemPoolCreate(&pool, &props));
	return pool;
}

static void fill(void *p, int value)
{
	OK(hipMemset(p, value, BYTES));
	OK(hipDeviceSynchronize());
}

static bool holds(void *p, int value)
{
	static unsigned char host[BYTES];

	OK(hipMemcpy(host, p, BYTES, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < BYTES; i++)
		if (host[i] != value)
			return false;
	return true;
}

static void *by_value(int fd)
{
	return (void *)(intptr_t)fd;
}

static int export_pool(hipMemPool_t pool)
{
	int fd = -1;

	OK(hipMemPoolExportToShareableHandle(&fd, pool, POSIX_FD, 0));
	CHECK(fd >= 3);
	return fd;
}

static hipMemPool_t import_pool(int fd)
{
	hipMemPool_t pool;

	OK(hipMemPoolImportFromShareableHandle(&pool, by_value(fd), POSIX_FD, 0));
	return pool;
}

/* ---- importers ---------------------------------------------------------- */

static hipMemPool_t open_all(struct order *o, void **p)
{
	int fd = receive_fd(3);
	hipMemPool_t pool = import_pool(fd);

	close(fd); /* the pool does not need it */
	hear(3, o, sizeof(*o));
	OK(hipSetDevice(o->device));
	for (int i = 0; i < o->count; i++) {
		OK(hipMemPoolImportPointer(&p[i], pool, &o->data[i]));
		CHECK(holds(p[i], 10 + i));
	}
	return pool;
}

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
	char go = 1;

	open_all(&o, p);
	tell(4, &go, 1);
	if (read(3, &go, 1) <= 0) { /* the exporter is dead */
		for (int i = 0; i < o.count; i++)
			CHECK(holds(p[i], 10 + i));
		for (int i = 0; i < o.count; i++)
			OK(hipFree(p[i]));
		CHECK(sim_count("hipIpcCloseMemHandle") == 1);
	}
	return 0;
}

/* Without the shim: nothing of ours opens, least of all at the wrong place. */
static int plain(void)
{
	hipMemPoolProps props;
	hipMemPool_t pool;
	struct order o;
	char go = 1;
	void *p;
	int fd = receive_fd(3);

	CHECK(!preloaded());
	hear(3, &o, sizeof(o));
	CHECK(hipMemPoolImportFromShareableHandle(&pool, by_value(fd), POSIX_FD, 0) != hipSuccess);
	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = POSIX_FD;
	props.location.type = hipMemLocationTypeDevice;
	OK(hipMemPoolCreate(&pool, &props));
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

static void export(struct order *o, hipMemPool_t pool, void **p, int count, int device)
{
	memset(o, 0, sizeof(*o));
	o->count = count;
	o->device = device;
	for (int i = 0; i < count; i++) {
		OK(hipMallocFromPoolAsync(&p[i], BYTES, pool, NULL));
		fill(p[i], 10 + i);
		OK(hipMemPoolExportPointer(&o->data[i], p[i]));
	}
}

static void hand_over(int to, hipMemPool_t pool, const struct order *o)
{
	int fd = export_pool(pool);

	send_fd(to, fd);
	close(fd);
	tell(to, o, sizeof(*o));
}

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

static uint64_t reserved(hipMemPool_t pool)
{
	uint64_t v;

	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &v));
	return v;
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
	uint64_t (*left)(int) = (uint64_t (*)(int))sim_call("somasim_device_free_bytes");
	uint64_t before;
	int fds;

	ask("hold", true, SIGKILL);
	fds = open_fds();
	before = left(0);
	for (int i = 0; i < 4; i++) {
		ask("hold", true, i % 2 ? SIGKILL : 0);
		exporter_dies();
	}
	CHECK(open_fds() == fds && left(0) == before);
}

/* ---- every process shares with every other ------------------------------ */

/* Has a pool of its own with a block for each, and opens its block of each. */
static int peer(void)
{
	void *own[BLOCKS + 2], *theirs[BLOCKS + 2];
	hipMemPoolPtrExportData data[BLOCKS + 2];
	hipMemPool_t pool = shareable(0), imported;
	int me, n, fd;
	char go = 1;

	hear(3, &me, sizeof(me));
	hear(3, &n, sizeof(n));
	for (int i = 0; i < n; i++) {
		OK(hipMallocFromPoolAsync(&own[i], BYTES, pool, NULL));
		fill(own[i], me * 16 + i);
		OK(hipMemPoolExportPointer(&data[i], own[i]));
	}
	fd = export_pool(pool);
	send_fd(4, fd);
	close(fd);
	tell(4, data, sizeof(data[0]) * (size_t)n);
	for (int i = 0; i < n; i++) {
		hipMemPoolPtrExportData d;

		fd = receive_fd(3);
		hear(3, &d, sizeof(d));
		imported = import_pool(fd);
		close(fd);
		OK(hipMemPoolImportPointer(&theirs[i], imported, &d));
		CHECK(holds(theirs[i], i * 16 + me));
	}
	tell(4, &go, 1);
	hear(3, &go, 1); /* all have looked */
	for (int i = 0; i < n; i++)
		fill(theirs[i], 128 + (i * 16 + me) % 128);
	tell(4, &go, 1);
	hear(3, &go, 1); /* all have written */
	for (int i = 0; i < n; i++)
		CHECK(holds(own[i], 128 + (me * 16 + i) % 128));
	for (int i = 0; i < n; i++)
		OK(hipFree(theirs[i]));
	tell(4, &go, 1);
	hear(3, &go, 1); /* importers have freed: now the exporters */
	for (int i = 0; i < n; i++)
		OK(hipFreeAsync(own[i], NULL));
	OK(hipDeviceSynchronize());
	return 0;
}

static void all_to_all(int n)
{
	hipMemPoolPtrExportData data[8][8];
	struct child c[8];
	int fd[8];
	char go = 1;

	for (int i = 0; i < n; i++) {
		c[i] = start("peer", true);
		tell(c[i].to, &i, sizeof(i));
		tell(c[i].to, &n, sizeof(n));
	}
	for (int i = 0; i < n; i++) {
		fd[i] = receive_fd(c[i].from);
		hear(c[i].from, data[i], sizeof(data[0][0]) * (size_t)n);
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			send_fd(c[i].to, fd[k]);
			tell(c[i].to, &data[k][i], sizeof(data[0][0]));
		}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < n; i++)
			hear(c[i].from, &go, 1);
		for (int i = 0; i < n; i++)
			tell(c[i].to, &go, 1);
	}
	for (int i = 0; i < n; i++) {
		close(fd[i]);
		finish(&c[i], 0);
	}
}

/* ---- both programs of the HIP guide's interprocess section --------------- */

/* A pointer of hipMalloc, imported into a pool that was made here. */
static int guide_pointer(void)
{
	hipMemPoolPtrExportData data;
	hipMemPool_t pool;
	void *p;
	int v = 0;
	char go = 1;

	hear(3, &data, sizeof(data));
	pool = shareable(0);
	OK(hipMemPoolImportPointer(&p, pool, &data));
	OK(hipMemcpy(&v, p, sizeof(v), hipMemcpyDeviceToHost));
	CHECK(v == 4711);
	v = 1147;
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipFree(p));
	tell(4, &go, 1);
	return 0;
}

/* Its descriptor is passed on by address. */
static int guide_handle(void)
{
	int descriptor = receive_fd(3), v = 5, w = 0;
	hipMemPool_t pool;
	void *p;
	char go = 1;

	OK(hipMemPoolImportFromShareableHandle(&pool, &descriptor, POSIX_FD, 0));
	OK(hipMallocFromPoolAsync(&p, sizeof(int), pool, 0));
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipMemcpy(&w, p, sizeof(w), hipMemcpyDeviceToHost));
	CHECK(w == 5);
	OK(hipFree(p));
	OK(hipMemPoolDestroy(pool));
	tell(4, &go, 1);
	return 0;
}

static void guide(void)
{
	struct child c = start("guide-pointer", true);
	hipMemPoolPtrExportData data;
	hipMemPool_t pool;
	void *p, *other;
	int v = 4711, descriptor;
	char go;

	OK(hipMalloc(&other, sizeof(int)));
	OK(hipMalloc(&p, sizeof(int)));
	OK(hipMemcpy(p, &v, sizeof(v), hipMemcpyHostToDevice));
	OK(hipMemPoolExportPointer(&data, p));
	tell(c.to, &data, sizeof(data));
	hear(c.from, &go, 1);
	OK(hipMemcpy(&v, p, sizeof(v), hipMemcpyDeviceToHost));
	CHECK(v == 1147);
	OK(hipFree(p));
	OK(hipFree(other));
	finish(&c, 0);

	c = start("guide-handle", true);
	pool = shareable(0);
	OK(hipMallocFromPoolAsync(&p, sizeof(int), pool, 0));
	OK(hipMemPoolExportToShareableHandle(&descriptor, pool, POSIX_FD, 0));
	send_fd(c.to, descriptor);
	OK(hipFree(p));
	OK(hipMemPoolDestroy(pool)); /* the descriptor outlives it */
	hear(c.from, &go, 1);
	close(descriptor);
	finish(&c, 0);
}

/* ---- a process without us exports --------------------------------------- */

static int plain_exporter(void)
{
	hipMemPool_t pool = shareable(0);
	struct order o;
	void *p[2];
	char go;

	CHECK(!preloaded());
	export(&o, pool, p, 2, 0);
	hand_over(4, pool, &o);
	hear(3, &go, 1);
	CHECK(holds(p[0], 60) && holds(p[1], 61));
	return 0;
}

static void from_plain(void)
{
	struct child c = start("plain-exporter", false);
	hipMemPool_t pool, ours = shareable(0);
	struct order o;
	int fd = receive_fd(c.from);
	void *p[2];
	char go = 1;

	hear(c.from, &o, sizeof(o));
	pool = import_pool(fd);
	close(fd);
	for (int i = 0; i < 2; i++) {
		/* Into the runtime's pool, and into one of ours. */
		OK(hipMemPoolImportPointer(&p[i], i ? ours : pool, &o.data[i]));
		CHECK(holds(p[i], 10 + i));
		fill(p[i], 60 + i);
	}
	OK(hipFree(p[0]));
	OK(hipFreeAsync(p[1], NULL));
	OK(hipDeviceSynchronize());
	tell(c.to, &go, 1);
	finish(&c, 0);
	OK(hipMemPoolDestroy(pool));
	OK(hipMemPoolDestroy(ours));
}

/* ---- in one process ------------------------------------------------------ */

/* Exported and imported here: one block, open twice, gone with the last free. */
static void same_process(void)
{
	hipMemPool_t pool = shareable(0), imported;
	hipMemPoolPtrExportData data, stale;
	void *p[3], *q;
	int fd = export_pool(pool);

	imported = import_pool(fd);
	close(fd);
	CHECK(imported != pool);
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd, imported, POSIX_FD, 0));
	for (int i = 0; i < 3; i++)
		OK(hipMallocFromPoolAsync(&p[i], BYTES, pool, NULL));
	for (int first = 0; first < 2; first++) {
		fill(p[first], 7);
		OK(hipMemPoolExportPointer(&data, p[first]));
		OK(hipMemPoolImportPointer(&q, imported, &data));
		CHECK(holds(q, 7));
		fill(q, 8);
		CHECK(holds(p[first], 8));
		OK(first ? hipFree(q) : hipFreeAsync(p[first], NULL));
		CHECK(holds(first ? p[first] : q, 8));
		OK(first ? hipFreeAsync(p[first], NULL) : hipFree(q));
		GIVES(hipErrorInvalidValue, hipFreeAsync(p[first], NULL));
		stale = data;
		GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, imported, &stale));
	}
	OK(hipFreeAsync(p[2], NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(imported));
	OK(hipMemPoolDestroy(pool));
}

/* ---- arguments ----------------------------------------------------------- */

static void refused(void *handle)
{
	hipMemPool_t pool;

	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&pool, handle, POSIX_FD, 0));
}

/* Descriptors of all kinds, some of which would keep a reader waiting for ever. */
static void hostile_descriptors(hipMemPool_t pool)
{
	unsigned char card[8192];
	int fd = export_pool(pool), pipes[2], sockets[2], fds, m, bad = 1000000;
	ssize_t size = pread(fd, card, sizeof(card), 0);

	CHECK(size > 0);
	CHECK(pwrite(fd, card, 1, 0) < 0 && ftruncate(fd, 0) < 0); /* sealed */
	CHECK(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	fds = open_fds();
	refused(by_value(pipes[0]));
	refused(by_value(sockets[0]));
	refused(&pipes[1]);
	refused(by_value(bad));
	refused(&bad);
	refused((void *)8);           /* closed, and nothing to read there */
	refused((void *)(~0ull - 64));
	m = open("/proc/self/exe", O_RDONLY);
	refused(by_value(m));
	close(m);
	m = open("/dev/zero", O_RDONLY);
	refused(by_value(m));
	close(m);
	/* All of it, but not sealed; sealed, but not all of it; a bit changed. */
	for (int i = -1; i < (int)size * 8 + 1; i += i < 512 ? 1 : 61) {
		size_t bytes = i == (int)size * 8 ? (size_t)size - 1 : (size_t)size;
		hipMemPool_t made;
		hipError_t err;

		m = memfd_create("test", MFD_ALLOW_SEALING);
		if (i >= 0 && i < (int)size * 8)
			card[i >> 3] ^= 1 << (i & 7);
		CHECK(write(m, card, bytes) == (ssize_t)bytes);
		if (i >= 0 && i < (int)size * 8)
			card[i >> 3] ^= 1 << (i & 7);
		if (i >= 0)
			CHECK(!fcntl(m, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW |
						     F_SEAL_SEAL));
		err = hipMemPoolImportFromShareableHandle(&made, by_value(m), POSIX_FD, 0);
		if (i < 128 || i == (int)size * 8) /* before that come magic and counts */
			CHECK(err == hipErrorInvalidValue || i >= 96);
		if (err == hipSuccess)
			OK(hipMemPoolDestroy(made));
		else
			CHECK(err == hipErrorInvalidValue || err == hipErrorInvalidDevice);
		close(m);
	}
	CHECK(open_fds() == fds);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(sockets[i]);
	}
	close(fd);
}

static void arguments(void)
{
	hipMemPool_t pool = shareable(0), other;
	hipMemPoolPtrExportData data;
	hipMemPoolProps props;
	int fd = export_pool(pool), fd2 = export_pool(pool);
	void *p, *q;

	CHECK(fd != fd2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd2); /* each is the caller's own */
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, NULL));
	OK(hipMemPoolExportPointer(&data, p));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(NULL, pool, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, NULL, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, pool, POSIX_FD, 1));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolExportToShareableHandle(&fd2, pool, hipMemHandleTypeNone, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(NULL, by_value(fd), POSIX_FD, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&other, NULL, POSIX_FD, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemPoolImportFromShareableHandle(&other, by_value(fd), hipMemHandleTypeNone, 0));
	GIVES(hipErrorInvalidValue, hipMemPoolImportFromShareableHandle(&other, by_value(fd), POSIX_FD, 1));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(NULL, p));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, NULL));
	CHECK(hipMemPoolExportPointer(&data, &data) != hipSuccess);
	OK(hipMemPoolExportPointer(&data, p));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(NULL, pool, &data));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, NULL, &data));
	GIVES(hipErrorInvalidValue, hipMemPoolImportPointer(&q, pool, NULL));
	/* A pool that was not made to be shared has no descriptor. */
	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.location.type = hipMemLocationTypeDevice;
	OK(hipMemPoolCreate(&other, &props));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, other, POSIX_FD, 0));
	OK(hipMemPoolDestroy(other));
	GIVES(hipErrorInvalidValue, hipMemPoolExportToShareableHandle(&fd2, other, POSIX_FD, 0));
	hostile_descriptors(pool);
	OK(hipFreeAsync(p, NULL));
	GIVES(hipErrorInvalidValue, hipMemPoolExportPointer(&data, p));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolDestroy(pool));
	close(fd);
}

/* Reuse flags travel with the descriptor, as in the runtime. */
static void attributes(void)
{
	hipMemPool_t pool = shareable(0), copy;
	int off = 0, on = 1, fd;

	OK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &off));
	fd = export_pool(pool);
	copy = import_pool(fd);
	OK(hipMemPoolGetAttribute(copy, hipMemPoolReuseAllowOpportunistic, &on));
	CHECK(on == 0);
	OK(hipMemPoolGetAttribute(copy, hipMemPoolReuseFollowEventDependencies, &on));
	CHECK(on == 1);
	close(fd);
	OK(hipMemPoolDestroy(copy));
	OK(hipMemPoolDestroy(pool));
}

/* ---- two devices --------------------------------------------------------- */

static int right_device(void)
{
	hipMemLocation where = {hipMemLocationTypeDevice, 0};
	hipPointerAttribute_t a;
	hipMemAccessFlags f;
	hipMemPool_t pool;
	struct order o;
	void *p[BLOCKS], *q;
	char go = 1;

	pool = open_all(&o, p);
	for (int i = 0; i < o.count; i++) {
		OK(hipPointerGetAttributes(&a, p[i]));
		CHECK(a.device == o.device);
	}
	OK(hipSetDevice(0));
	OK(hipMallocFromPoolAsync(&q, BYTES, pool, NULL));
	OK(hipPointerGetAttributes(&a, q));
	CHECK(a.device == o.device);
	OK(hipMemPoolGetAccess(&f, pool, &where));
	CHECK(f == (o.device ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtReadWrite));
	where.id = 1;
	OK(hipMemPoolGetAccess(&f, pool, &where));
	CHECK(f == (o.device ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtNone));
	for (int i = 0; i < o.count; i++)
		OK(hipFree(p[i]));
	OK(hipFree(q));
	tell(4, &go, 1);
	return 0;
}

static void devices(void)
{
	for (int dev = 0; dev < DEVICES; dev++) {
		hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0},
					   hipMemAccessFlagsProtReadWrite};
		struct child c = start("right-device", true);
		hipMemPool_t pool = shareable(dev);
		struct order o;
		void *p[BLOCKS];
		char go;

		if (dev)
			OK(hipMemPoolSetAccess(pool, &access, 1));
		export(&o, pool, p, 3, dev);
		hand_over(c.to, pool, &o);
		hear(c.from, &go, 1);
		finish(&c, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; int (*run)(void); } roles[] = {
		{"import", import}, {"lazy", lazy}, {"hold", hold}, {"plain", plain},
		{"hostile", hostile}, {"doomed", doomed}, {"peer", peer},
		{"guide-pointer", guide_pointer}, {"guide-handle", guide_handle},
		{"plain-exporter", plain_exporter}, {"right-device", right_device},
	};
	int count = 0;

	procs_init(argv[0]);
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
	guide();
	ask("plain", false, 0);
	ask("hostile", true, 0);
	ask("lazy", true, 0);
	no_leak();
	two_ways(4);
	if (!getenv("SHARE_NATIVE_CANNOT"))
		from_plain();
	all_to_all(8);
	return 0;
}

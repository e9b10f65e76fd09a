/* SPDX-License-Identifier: MIT */
/*
 * Streams of one device work with memory of another device, where nothing of theirs is
 * allocated. A free must wait for them.
 *
 *   copy MODE   a copy between devices, then hipFree of its source (MODE: peer or none)
 *   destroy     a kernel of a stream that is destroyed before the hipFree
 *   reset       a kernel on a device that is reset
 *   access      hipMemPoolSetAccess that the driver refuses
 *   current     copies and memsets of a pool's block while the other device is current
 */
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

#define SIZE (8u << 20)

static atomic_int running; /* 1: the kernel, 2: it is over */
static hipStream_t there;
static void *block;

static void kernel(void)
{
}

static void body(void **args)
{
	atomic_store(&running, 1);
	usleep(300000);
	memset(*(void **)args[0], 0xaa, SIZE);
	atomic_store(&running, 2);
}

/* On a stream of device 1, without waiting for it. */
static void launch(void)
{
	void (*reg)(const void *, void (*)(void **),
		    const size_t *) = sim_must("somasim_register_kernel_args");
	static const size_t sizes[] = {sizeof(void *), 0};
	void *args[1] = {&block};

	reg((void *)kernel, body, sizes);
	OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&there, hipStreamNonBlocking));
	OK(hipLaunchKernel((void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, there));
	while (!atomic_load(&running))
		usleep(1000);
}

static void over(void)
{
	while (atomic_load(&running) != 2)
		usleep(1000);
}

/* Is all of p, on device 0, this byte? */
static bool holds(void *p, unsigned char byte)
{
	unsigned char *h = malloc(SIZE);
	bool same = h != NULL;

	OK(hipMemcpy(h, p, SIZE, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < SIZE && same; i++)
		same = h[i] == byte;
	free(h);
	return same;
}

/* Until hipMalloc gives `block` again, or four others. */
static void *again(void)
{
	void *p = NULL;

	OK(hipSetDevice(0));
	for (int i = 0; i < 4 && p != block; i++)
		OK(hipMalloc(&p, SIZE));
	return p;
}

static void copy(bool peer)
{
	void *to, *p;

	OK(hipMalloc(&block, SIZE));
	OK(hipMemset(block, 0x55, SIZE));
	OK(hipDeviceSynchronize());
	OK(hipSetDevice(1));
	if (peer)
		OK(hipDeviceEnablePeerAccess(0, 0));
	OK(hipMalloc(&to, SIZE));
	OK(hipStreamCreateWithFlags(&there, hipStreamNonBlocking));
	stall(there);
	OK(hipMemcpyPeerAsync(to, 1, block, 0, SIZE, there));
	OK(hipFree(block));
	p = again();
	CHECK(p != block);
	OK(hipMemset(p, 0x11, SIZE));
	OK(hipDeviceSynchronize());
	release(there);
	OK(hipSetDevice(1));
	OK(hipStreamSynchronize(there));
	CHECK(holds(to, 0x55));
	/* Afterwards it is memory as any. */
	CHECK(again() == block);
}

static void destroyed(void)
{
	void *p;

	OK(hipMalloc(&block, SIZE));
	OK(hipSetDevice(1));
	OK(hipDeviceEnablePeerAccess(0, 0));
	launch();
	OK(hipStreamDestroy(there));
	OK(hipSetDevice(0));
	OK(hipFree(block));
	CHECK(atomic_load(&running) == 1);
	p = again();
	CHECK(p != block || atomic_load(&running) == 2);
	OK(hipMemset(p, 0x11, SIZE));
	over();
	CHECK(holds(p, 0x11));
}

static void *reset_it(void *arg)
{
	OK(hipSetDevice(1));
	OK(hipFreeAsync(block, there));
	OK(hipDeviceReset());
	return arg;
}

static void reset(void)
{
	int (*hold)(const char *, int) = sim_must("somasim_hold");
	int (*held)(void) = sim_must("somasim_holds");
	void (*let_go)(void) = sim_must("somasim_let_go");
	hipStream_t here;
	pthread_t thread;
	void *p;

	OK(hipStreamCreateWithFlags(&here, hipStreamNonBlocking));
	OK(hipMallocAsync(&block, SIZE, here));
	OK(hipStreamSynchronize(here));
	launch();
	hold("hipDeviceReset", 0);
	CHECK(!pthread_create(&thread, NULL, reset_it, NULL));
	while (!held())
		usleep(1000);
	OK(hipSetDevice(0));
	OK(hipMallocAsync(&p, SIZE, here));
	OK(hipMemsetAsync(p, 0x11, SIZE, here));
	OK(hipStreamSynchronize(here));
	let_go();
	pthread_join(thread, NULL);
	over();
	CHECK(holds(p, 0x11));
}

static void refused(void)
{
	void (*fail)(const char *) = sim_must("somasim_fail");
	void (*clear)(void) = sim_must("somasim_fail_clear");
	hipMemAccessDesc peer = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	hipMemAccessFlags flags = hipMemAccessFlagsProtReadWrite;
	uint64_t n;
	void *p;

	OK(hipMallocFromPoolAsync(&p, 1 << 20, pool, NULL));
	fail("hsa_amd_agents_allow_access:%1");
	CHECK(hipMemPoolSetAccess(pool, &peer, 1) != hipSuccess);
	clear();
	OK(hipMemPoolGetAccess(&flags, pool, &peer.location));
	CHECK(flags == hipMemAccessFlagsProtNone);
	/* Nor has what comes later another access. */
	n = sim_count("hsa_amd_agents_allow_access");
	OK(hipMallocFromPoolAsync(&block, 256 << 20, pool, NULL));
	CHECK(sim_count("hsa_amd_agents_allow_access") == n);
	OK(hipMemPoolSetAccess(pool, &peer, 1));
	OK(hipMemPoolGetAccess(&flags, pool, &peer.location));
	CHECK(flags == hipMemAccessFlagsProtReadWrite);
	OK(hipFreeAsync(block, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipMemPoolDestroy(pool));
}

static unsigned char *bytes(unsigned char value)
{
	unsigned char *h = malloc(SIZE);

	CHECK(h);
	memset(h, value, SIZE);
	return h;
}

/* Every kind of copy between a block of device 0 and one of device 1, whichever is current. */
static void use_both(void *a, void *b)
{
	unsigned char *h = bytes(7);
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMemcpy(a, h, SIZE, hipMemcpyHostToDevice));
	CHECK(holds(a, 7));
	OK(hipMemset(a, 8, SIZE));
	OK(hipDeviceSynchronize());
	CHECK(holds(a, 8));
	OK(hipMemcpyPeer(b, 1, a, 0, SIZE));
	CHECK(holds(b, 8));
	OK(hipMemsetAsync(b, 9, SIZE, s));
	OK(hipMemcpyPeerAsync(a, 0, b, 1, SIZE, s));
	OK(hipStreamSynchronize(s));
	CHECK(holds(a, 9));
	OK(hipMemsetD8(a, 10, SIZE));
	OK(hipMemcpyDtoD(b, a, SIZE));
	OK(hipDeviceSynchronize());
	CHECK(holds(b, 10));
	memset(h, 11, SIZE);
	OK(hipMemcpy2DAsync(b, 4096, h, 4096, 4096, SIZE / 4096, hipMemcpyHostToDevice, s));
	OK(hipMemcpyAsync(a, b, SIZE, hipMemcpyDefault, s));
	OK(hipStreamSynchronize(s));
	CHECK(holds(a, 11));
	OK(hipStreamDestroy(s));
	free(h);
}

static void current(void)
{
	hipStream_t s[2];
	void *p[2], *large;

	for (int d = 0; d < 2; d++) {
		OK(hipSetDevice(d));
		OK(hipStreamCreateWithFlags(&s[d], hipStreamNonBlocking));
		OK(hipMallocAsync(&p[d], SIZE, s[d]));
	}
	for (int d = 0; d < 2; d++) {
		OK(hipSetDevice(d));
		use_both(p[0], p[1]);
	}
	/* What the pools hold is mapped elsewhere for a larger block. */
	for (int d = 0; d < 2; d++) {
		OK(hipSetDevice(d));
		OK(hipFreeAsync(p[d], s[d]));
		OK(hipStreamSynchronize(s[d]));
		OK(hipMallocAsync(&p[d], 3 * SIZE, s[d]));
		OK(hipMallocAsync(&large, 5 * SIZE, s[d]));
		OK(hipFreeAsync(p[d], s[d]));
		p[d] = (char *)large + 2 * SIZE;
	}
	for (int d = 0; d < 2; d++) {
		OK(hipSetDevice(d));
		use_both(p[0], p[1]);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	CHECK(preloaded());
	if (!strcmp(what, "copy"))
		copy(argc > 2 && !strcmp(argv[2], "peer"));
	else if (!strcmp(what, "destroy"))
		destroyed();
	else if (!strcmp(what, "reset"))
		reset();
	else if (!strcmp(what, "access"))
		refused();
	else if (!strcmp(what, "current"))
		current();
	else
		return 2;
	return 0;
}

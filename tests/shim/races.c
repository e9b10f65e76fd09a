/* SPDX-License-Identifier: MIT */
/*
 * Two threads act at the same time:
 *
 *   visit        one frees; the other's streams touch memory of another device for the first time
 *   owed WHAT    both end the mode in which hipFree need not wait, after one of them freed
 *                (WHAT: stream or device)
 *   transit HOW  one gives memory back, the other allocates as much (HOW: sync, trim or pools)
 *   capture      one waits in hipFree, the other begins a capture of a stream that is waited for
 *                later
 *   reset        one gives access to memory that the other takes away
 *   trims        one gives back all memory, the other less, and neither can do it at once
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "device.h"
#include "reach.h"
#include "test.h"

#define MIB ((size_t)1 << 20)

/* ---- visit -------------------------------------------------------------- */

#define STREAMS 100
#define VISIT_MS 3000

static atomic_bool over;
static void *block;

static void *visit(void *arg)
{
	hipStream_t v;
	void *to;

	OK(hipSetDevice(1));
	OK(hipMalloc(&to, 4096));
	while (!atomic_load(&over)) {
		OK(hipStreamCreateWithFlags(&v, hipStreamNonBlocking));
		OK(hipMemcpyPeerAsync(to, 1, block, 0, 64, v));
		OK(hipStreamSynchronize(v));
		OK(hipStreamDestroy(v));
	}
	return arg;
}

/* The host's heap is what shows it (marks beyond the end of their array). */
static void visiting(void)
{
	static hipStream_t s[STREAMS], low[8];
	double end = now_ms() + VISIT_MS;
	pthread_t t;
	void *p;

	OK(hipSetDevice(1));
	for (int i = 0; i < 8; i++)
		OK(hipStreamCreateWithFlags(&low[i], hipStreamNonBlocking));
	OK(hipSetDevice(0));
	OK(hipMalloc(&block, 4096));
	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&s[i], hipStreamNonBlocking));
	for (int i = 0; i < 8; i++)
		OK(hipStreamDestroy(low[i]));
	pthread_create(&t, NULL, visit, NULL);
	while (now_ms() < end) {
		OK(hipMalloc(&p, 512));
		OK(hipFree(p));
	}
	atomic_store(&over, true);
	pthread_join(t, NULL);
}

/* ---- owed --------------------------------------------------------------- */

static atomic_int running; /* 1: the kernel, 2: it is over */
static bool devices;

static void kernel(void)
{
}

static void body(void **args)
{
	atomic_store(&running, 1);
	usleep(400000);
	memset(*(void **)args[0], 0x77, 4096);
	atomic_store(&running, 2);
}

static hipStream_t another(void)
{
	hipStream_t s;

	if (devices)
		OK(hipSetDevice(1));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	return s;
}

static void *first(void *arg)
{
	(void)another();
	return arg;
}

static void owing(void)
{
	void (*reg)(const void *, void (*)(void **),
		    const size_t *) = sim_must("somasim_register_kernel_args");
	static const size_t sizes[] = {sizeof(void *), 0};
	void *p, *to, *args[1] = {&block};
	unsigned char host[4096];
	hipStream_t mine;
	pthread_t t;

	reg((void *)kernel, body, sizes);
	OK(hipMalloc(&block, 4096));
	OK(hipMalloc(&p, MIB));
	OK(hipMemset(block, 0x11, 4096));
	OK(hipDeviceSynchronize());
	OK(hipLaunchKernel((void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL));
	while (!atomic_load(&running))
		usleep(1000);
	OK(hipFree(p)); /* waits for the kernel, as far as anybody can tell */
	pthread_create(&t, NULL, first, NULL);
	usleep(100000);
	mine = another();
	if (devices) {
		OK(hipMalloc(&to, 4096));
		OK(hipMemcpyPeerAsync(to, 1, block, 0, 4096, mine));
		block = to;
	}
	OK(hipMemcpyAsync(host, block, 4096, hipMemcpyDeviceToHost, mine));
	OK(hipStreamSynchronize(mine));
	CHECK(host[0] == 0x77 && host[4095] == 0x77);
	pthread_join(t, NULL);
}

/* ---- transit ------------------------------------------------------------ */

#define ROUNDS 100
#define BIG (96 * MIB) /* of 128 */

static pthread_barrier_t bar;
static hipMemPool_t mine, other;
static bool classic;

static void *giver(void *arg)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < ROUNDS; i++) {
		if (classic) {
			OK(hipMalloc(&p, BIG));
			OK(hipFree(p));
			OK(hipDeviceSynchronize());
			usleep(10000); /* twice the decay */
		} else {
			OK(hipMallocFromPoolAsync(&p, BIG, mine, s));
			OK(hipMemsetAsync(p, 1, 4096, s));
			OK(hipFreeAsync(p, s));
			OK(hipStreamSynchronize(s));
		}
		pthread_barrier_wait(&bar);
		if (classic)
			OK(hipDeviceSynchronize());
		else
			OK(hipMemPoolTrimTo(mine, 0));
		pthread_barrier_wait(&bar);
		pthread_barrier_wait(&bar);
	}
	return arg;
}

static void transit(const char *how)
{
	hipStream_t s;
	pthread_t t;

	classic = !strcmp(how, "sync");
	mine = other = make_pool(0, hipMemHandleTypeNone);
	if (!strcmp(how, "pools"))
		other = make_pool(0, hipMemHandleTypeNone);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	pthread_barrier_init(&bar, NULL, 2);
	pthread_create(&t, NULL, giver, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		void *p = NULL;

		pthread_barrier_wait(&bar);
		usleep(20 * (unsigned)(i % 10));
		if (classic) {
			OK(hipMalloc(&p, BIG));
			OK(hipFree(p));
		} else {
			OK(hipMallocFromPoolAsync(&p, BIG, other, s));
			OK(hipFreeAsync(p, s));
		}
		pthread_barrier_wait(&bar);
		OK(hipStreamSynchronize(s));
		OK(hipMemPoolTrimTo(other, 0));
		OK(hipDeviceSynchronize());
		pthread_barrier_wait(&bar);
	}
	pthread_join(t, NULL);
}

/* ---- capture ------------------------------------------------------------ */

static hipStream_t busy;

static void *free_block(void *arg)
{
	OK(hipFree(block));
	GIVES(hipSuccess, hipStreamQuery(busy)); /* so it has waited */
	return arg;
}

/* In which order the streams are waited for nobody knows, so each is the busy one once. */
static void capturing(void)
{
	hipStream_t s[2];
	hipGraph_t graph;
	pthread_t t;
	void *x;

	OK(hipMalloc(&x, 4096));
	for (int i = 0; i < 2; i++)
		OK(hipStreamCreateWithFlags(&s[i], hipStreamNonBlocking));
	for (int i = 0; i < 2; i++) {
		OK(hipMalloc(&block, 4096));
		busy = s[i];
		stall(busy);
		OK(hipMemsetAsync(x, 1, 4096, busy));
		pthread_create(&t, NULL, free_block, NULL);
		usleep(100000);
		OK(hipStreamBeginCapture(s[!i], hipStreamCaptureModeRelaxed));
		release(busy);
		pthread_join(t, NULL);
		OK(hipMemsetAsync(x, 1, 4096, s[!i]));
		OK(hipStreamEndCapture(s[!i], &graph));
		OK(hipGraphDestroy(graph));
	}
}

/* ---- reset -------------------------------------------------------------- */

static void *enable(void *arg)
{
	OK(hipSetDevice(1));
	OK(hipDeviceEnablePeerAccess(0, 0));
	return arg;
}

static void resetting(void)
{
	pthread_t t;
	void *p[4];

	OK(hipSetDevice(1));
	OK(hipMalloc(&p[0], MIB));
	OK(hipSetDevice(0));
	for (int i = 0; i < 4; i++)
		OK(hipMalloc(&p[i], 64 * MIB));
	pthread_create(&t, NULL, enable, NULL);
	usleep(100000);
	OK(hipDeviceReset());
	for (int i = 0; i < 2; i++)
		OK(hipMalloc(&p[i], 64 * MIB));
	pthread_join(t, NULL);
	for (int i = 2; i < 4; i++)
		OK(hipMalloc(&p[i], 64 * MIB));
	for (int i = 0; i < 4; i++)
		CHECK(reach(p[i]) == 2);
}

/* ---- trims -------------------------------------------------------------- */

static void *trim_less(void *arg)
{
	OK(hipMemPoolTrimTo(mine, (size_t)1 << 40));
	return arg;
}

static void trims(void)
{
	uint64_t most = UINT64_MAX;
	hipStream_t a, b;
	pthread_t t;
	void *p, *x;

	mine = make_pool(0, hipMemHandleTypeNone);
	OK(hipMemPoolSetAttribute(mine, hipMemPoolAttrReleaseThreshold, &most));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipMalloc(&x, 4096));
	stall(b);
	OK(hipMemsetAsync(x, 1, 64, b));
	OK(hipMallocFromPoolAsync(&p, 64 * MIB, mine, a));
	OK(hipMemsetAsync(p, 1, 64, a));
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	OK(hipMemPoolTrimTo(mine, 0));
	pthread_create(&t, NULL, trim_less, NULL);
	pthread_join(t, NULL);
	release(b);
	OK(hipDeviceSynchronize());
	CHECK(figure(mine, hipMemPoolAttrReservedMemCurrent) == 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";

	CHECK(preloaded());
	if (!strcmp(what, "visit")) {
		visiting();
	} else if (!strcmp(what, "owed")) {
		devices = !strcmp(how, "device");
		owing();
	} else if (!strcmp(what, "transit")) {
		transit(how);
	} else if (!strcmp(what, "capture")) {
		capturing();
	} else if (!strcmp(what, "reset")) {
		resetting();
	} else if (!strcmp(what, "trims")) {
		trims();
	} else {
		return 2;
	}
	return 0;
}

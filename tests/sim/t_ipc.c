/* SPDX-License-Identifier: MIT */
/* Two processes: memory, interior offsets, death of either, events, pools. */
#include <pthread.h>
#include <sys/wait.h>

#include "test.h"

#define LAZY 1                        /* 0 in Debian 12's header, 1 since */

struct msg {
	hipIpcMemHandle_t mem, inner;
	hipIpcEventHandle_t ev;
	hipMemPoolPtrExportData ptr;
	pid_t pid;
	int poolfd;
};

static void say(int fd, const void *p, size_t n)
{
	CHECK(write(fd, p, n) == (ssize_t)n);
}

static void hear(int fd, void *p, size_t n)
{
	CHECK(read(fd, p, n) == (ssize_t)n);
}

static void *lets_go(void *stream)
{
	usleep(50000);
	release(stream);
	return NULL;
}

/* Opened on two devices: since 7.0 one mapping, of the device that opened it last. Closing
 * waits for that one, and for the null stream of the current device. */
static void on_two_devices(const struct msg *m)
{
	hipStream_t blocking, free;
	hipPointerAttribute_t a;
	hipIpcMemHandle_t other = m->mem;
	int devices, version, far = 2;
	void *p[2], *q;
	pthread_t t;

	OK(hipGetDeviceCount(&devices));
	OK(hipRuntimeGetVersion(&version));
	if (devices < 2)
		return;
	OK(hipStreamCreate(&blocking));
	OK(hipStreamCreateWithFlags(&free, hipStreamNonBlocking));
	OK(hipMalloc(&q, 4096));
	for (int dev = 0; dev < 2; dev++) {
		OK(hipSetDevice(dev));
		OK(hipIpcOpenMemHandle(&p[dev], m->mem, LAZY));
	}
	OK(hipPointerGetAttributes(&a, p[0]));
	CHECK((p[0] == p[1]) == (version >= 70000000) && a.device == (p[0] == p[1]));
	stall(free);
	OK(hipMemsetAsync(q, 1, 4096, free));
	OK(hipIpcCloseMemHandle(p[1]));
	EXPECT(hipStreamQuery(free), hipErrorNotReady);
	OK(hipIpcOpenMemHandle(&p[1], m->mem, LAZY));
	release(free);
	OK(hipStreamSynchronize(free));
	OK(hipSetDevice(0));
	stall(blocking);
	OK(hipMemsetAsync(q, 1, 4096, blocking));
	CHECK(!pthread_create(&t, NULL, lets_go, blocking));
	OK(hipIpcCloseMemHandle(p[1]));
	OK(hipStreamQuery(blocking));
	CHECK(!pthread_join(t, NULL));
	OK(hipIpcCloseMemHandle(p[0]));
	OK(hipFree(q));
	OK(hipStreamDestroy(blocking));
	OK(hipStreamDestroy(free));
	/* One that this process does not see; older handles do not name it. */
	memcpy((char *)&other + 52, &far, sizeof far);
	if (version >= 70000000)
		EXPECT(hipIpcOpenMemHandle(&q, other, LAZY), hipErrorInvalidValue);
}

static int importer(int in, int out)
{
	struct msg m;
	char *p, *q, c, back[4096];
	hipEvent_t ev;
	hipMemPool_t pool;

	hear(in, &m, sizeof m);
	on_two_devices(&m);
	OK(hipIpcOpenMemHandle((void **)&p, m.mem, LAZY));
	OK(hipMemcpy(back, p, 4096, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42 && back[4095] == 42);
	/* The offset of an interior handle is ignored. */
	OK(hipIpcOpenMemHandle((void **)&q, m.inner, LAZY));
	OK(hipMemcpy(back, q, 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42);
	OK(hipMemset(p + (1 << 20), 17, 16));
	OK(hipDeviceSynchronize());
	EXPECT(hipIpcOpenMemHandle((void **)&q, m.mem, 2), hipErrorInvalidValue);

	/* The event is behind a held stream there. */
	OK(hipIpcOpenEventHandle(&ev, m.ev));
	EXPECT(hipEventQuery(ev), hipErrorNotReady);
	say(out, "r", 1);
	OK(hipEventSynchronize(ev));
	OK(hipEventQuery(ev));

	/* A pool, its descriptor taken from the exporter's table. */
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)m.pid, m.poolfd);
	FILE *f = m.poolfd < 0 ? NULL : fopen(path, "r+");
	CHECK(f || m.poolfd < 0);
	int fd = f ? fileno(f) : -1;
	if (fd >= 0) {
		OK(hipMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)fd, hipMemHandleTypePosixFileDescriptor, 0));
		OK(hipMemPoolImportPointer((void **)&q, pool, &m.ptr));
		OK(hipMemcpy(back, q, 16, hipMemcpyDeviceToHost));
		CHECK(back[0] == 55);
		OK(hipFreeAsync(q, NULL));
	}

	/* The exporter frees and allocates again: our view must not change. */
	say(out, "m", 1);
	hear(in, &c, 1);
	OK(hipMemcpy(back, p, 4096, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42 && back[4095] == 42);
	OK(hipIpcCloseMemHandle(p));
	EXPECT(hipIpcCloseMemHandle(p), hipErrorInvalidValue);
	say(out, "c", 1);
	hear(in, &c, 1);
	/* Freed there and closed here: the handle is dead. */
	EXPECT(hipIpcOpenMemHandle((void **)&p, m.mem, LAZY), hipErrorInvalidDevicePointer);
	return 0;
}

int main(int argc, char **argv)
{
	hipMemPoolProps props = { .allocType = hipMemAllocationTypePinned,
		.handleTypes = hipMemHandleTypePosixFileDescriptor,
		.location = { hipMemLocationTypeDevice, 0 } };
	struct msg m;
	int to[2], from[2], status, version;
	size_t before, now, total;
	char *d, *e, *x, c, back[16];
	hipStream_t s;
	hipEvent_t ev;
	hipMemPool_t pool;

	if (argc > 2)
		return importer(atoi(argv[1]), atoi(argv[2]));
	CHECK(!pipe(to) && !pipe(from));
	pid_t pid = fork();                   /* before the device is touched */
	if (!pid) {
		char a[16], b[16];

		close(to[1]);
		close(from[0]);
		snprintf(a, sizeof a, "%d", to[0]);
		snprintf(b, sizeof b, "%d", from[1]);
		execl("/proc/self/exe", argv[0], a, b, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	memset(&m, 0, sizeof m);
	m.pid = getpid();
	OK(hipMemGetInfo(&before, &total));
	OK(hipMalloc((void **)&d, 8 << 20));
	OK(hipMemset(d, 42, 1 << 20));
	OK(hipMemset(d + (1 << 20), 43, 1 << 20));
	OK(hipIpcGetMemHandle(&m.mem, d));
	OK(hipIpcGetMemHandle(&m.inner, d + (1 << 20)));
	EXPECT(hipIpcOpenMemHandle((void **)&x, m.mem, LAZY), hipErrorInvalidContext);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&ev, hipEventInterprocess | hipEventDisableTiming));
	OK(hipIpcGetEventHandle(&m.ev, ev));
	stall(s);
	OK(hipEventRecord(ev, s));
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync((void **)&x, 4096, pool, NULL));
	OK(hipMemset(x, 55, 4096));
	OK(hipDeviceGetMemPool(&pool, 0));
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipRuntimeGetVersion(&version));
	m.poolfd = -1;
	if (version < 50700000) {                 /* not yet */
		EXPECT(hipMemPoolExportPointer(&m.ptr, x), hipErrorNotSupported);
		EXPECT(hipMemPoolExportToShareableHandle(&m.poolfd, pool, hipMemHandleTypePosixFileDescriptor, 0), hipErrorNotSupported);
	} else {
		OK(hipMemPoolExportPointer(&m.ptr, x));
		OK(hipMemPoolExportToShareableHandle(&m.poolfd, pool, hipMemHandleTypePosixFileDescriptor, 0));
	}
	OK(hipStreamSynchronize(NULL));
	say(to[1], &m, sizeof m);

	hear(from[0], &c, 1);
	CHECK(c == 'r');
	release(s);
	hear(from[0], &c, 1);
	CHECK(c == 'm');
	OK(hipMemcpy(back, d + (1 << 20), 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 17);                 /* written over there */
	OK(hipFree(d));
	OK(hipMemGetInfo(&now, &total));
	CHECK(now <= before - (8 << 20));     /* an importer still holds it */
	OK(hipMalloc((void **)&e, 8 << 20));
	CHECK(e != d);
	OK(hipMemset(e, 99, 8 << 20));
	OK(hipDeviceSynchronize());
	say(to[1], "g", 1);
	hear(from[0], &c, 1);
	CHECK(c == 'c');
	say(to[1], "g", 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(hipFree(e));
	OK(hipFreeAsync(x, NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemGetInfo(&now, &total));
	CHECK(now == before);
	return 0;
}

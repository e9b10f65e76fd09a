/* SPDX-License-Identifier: MIT */
/* Two processes share memory, also by interior pointers, events, and pools; memory that its
 * exporter frees stays valid for the importer. */
#include <pthread.h>
#include <sys/wait.h>

#include "test.h"

/* hipIpcMemLazyEnablePeerAccess, which is 0 in Debian 12's header and 1 in later ones. */
#define LAZY 1

struct msg {
	hipIpcMemHandle_t mem, inner;
	hipIpcEventHandle_t ev;
	hipMemPoolPtrExportData ptr;
	pid_t pid;
	int poolfd;
};

static void tell(int fd, const void *p, size_t n)
{
	CHECK(write(fd, p, n) == (ssize_t)n);
}

static void receive(int fd, void *p, size_t n)
{
	CHECK(read(fd, p, n) == (ssize_t)n);
}

static void *release_later(void *stream)
{
	usleep(50000);
	release(stream);
	return NULL;
}

/* A handle is opened on two devices. Since 7.0 both opens give the same mapping, which belongs
 * to the device that opened it last. Closing waits for that device, and for the null stream of
 * the current one. */
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
	CHECK(!pthread_create(&t, NULL, release_later, blocking));
	OK(hipIpcCloseMemHandle(p[1]));
	OK(hipStreamQuery(blocking));
	CHECK(!pthread_join(t, NULL));
	OK(hipIpcCloseMemHandle(p[0]));
	OK(hipFree(q));
	OK(hipStreamDestroy(blocking));
	OK(hipStreamDestroy(free));
	/* A handle of a device that this process does not see. Before 7.0 handles do not name their
	 * device. */
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

	receive(in, &m, sizeof m);
	on_two_devices(&m);
	OK(hipIpcOpenMemHandle((void **)&p, m.mem, LAZY));
	OK(hipMemcpy(back, p, 4096, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42 && back[4095] == 42);
	/* A handle made from an interior pointer opens at the base. */
	OK(hipIpcOpenMemHandle((void **)&q, m.inner, LAZY));
	OK(hipMemcpy(back, q, 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42);
	OK(hipMemset(p + (1 << 20), 17, 16));
	OK(hipDeviceSynchronize());
	EXPECT(hipIpcOpenMemHandle((void **)&q, m.mem, 2), hipErrorInvalidValue);

	/* The exporter has recorded the event on a stalled stream. */
	OK(hipIpcOpenEventHandle(&ev, m.ev));
	EXPECT(hipEventQuery(ev), hipErrorNotReady);
	tell(out, "r", 1);
	OK(hipEventSynchronize(ev));
	OK(hipEventQuery(ev));

	/* A pool, by the descriptor that the exporter has open. */
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)m.pid, m.poolfd);
	FILE *f = m.poolfd < 0 ? NULL : fopen(path, "r+");
	CHECK(f || m.poolfd < 0);
	int fd = f ? fileno(f) : -1;
	if (fd >= 0) {
		OK(hipMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)fd,
						       hipMemHandleTypePosixFileDescriptor, 0));
		OK(hipMemPoolImportPointer((void **)&q, pool, &m.ptr));
		OK(hipMemcpy(back, q, 16, hipMemcpyDeviceToHost));
		CHECK(back[0] == 55);
		OK(hipFreeAsync(q, NULL));
	}

	/* The exporter frees the memory and allocates other: nothing may change here. */
	tell(out, "m", 1);
	receive(in, &c, 1);
	OK(hipMemcpy(back, p, 4096, hipMemcpyDeviceToHost));
	CHECK(back[0] == 42 && back[4095] == 42);
	OK(hipIpcCloseMemHandle(p));
	EXPECT(hipIpcCloseMemHandle(p), hipErrorInvalidValue);
	tell(out, "c", 1);
	receive(in, &c, 1);
	/* The exporter has freed it and it is closed here, so the handle is no longer valid. */
	EXPECT(hipIpcOpenMemHandle((void **)&p, m.mem, LAZY), hipErrorInvalidDevicePointer);
	return 0;
}

int main(int argc, char **argv)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .handleTypes = hipMemHandleTypePosixFileDescriptor,
				 .location = {hipMemLocationTypeDevice, 0}};
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
	pid_t pid = fork(); /* before the device starts */
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
	if (version < 50700000) { /* pools cannot be shared yet */
		EXPECT(hipMemPoolExportPointer(&m.ptr, x), hipErrorNotSupported);
		EXPECT(hipMemPoolExportToShareableHandle(&m.poolfd, pool,
							 hipMemHandleTypePosixFileDescriptor, 0),
		       hipErrorNotSupported);
	} else {
		OK(hipMemPoolExportPointer(&m.ptr, x));
		OK(hipMemPoolExportToShareableHandle(&m.poolfd, pool,
						     hipMemHandleTypePosixFileDescriptor, 0));
	}
	OK(hipStreamSynchronize(NULL));
	tell(to[1], &m, sizeof m);

	receive(from[0], &c, 1);
	CHECK(c == 'r');
	release(s);
	receive(from[0], &c, 1);
	CHECK(c == 'm');
	OK(hipMemcpy(back, d + (1 << 20), 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 17); /* the importer has written it */
	OK(hipFree(d));
	OK(hipMemGetInfo(&now, &total));
	CHECK(now <= before - (8 << 20)); /* the importer still has it open */
	OK(hipMalloc((void **)&e, 8 << 20));
	CHECK(e != d);
	OK(hipMemset(e, 99, 8 << 20));
	OK(hipDeviceSynchronize());
	tell(to[1], "g", 1);
	receive(from[0], &c, 1);
	CHECK(c == 'c');
	tell(to[1], "g", 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(hipFree(e));
	OK(hipFreeAsync(x, NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemGetInfo(&now, &total));
	CHECK(now == before);
	return 0;
}

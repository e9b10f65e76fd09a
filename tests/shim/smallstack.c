/* SPDX-License-Identifier: MIT */
/*
 * Threads with a stack near the smallest that there is. No call of ours may need more. Only the
 * first call of the process (`first`) also asks the loader, which alone needs some.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define STACK (20 << 10)
#define STACK_FIRST (32 << 10)

static char root[] = "/tmp/somashim-smallstack.XXXXXX";

static void put(const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (char *at = strchr(name + sizeof(root), '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		CHECK(!mkdir(name, 0700) || errno == EEXIST);
		*at = '/';
	}
	CHECK((f = fopen(name, "w")));
	fputs(text, f);
	fclose(f);
}

/* A machine with a GPU: the report of out of memory, and the live page, ask its kernel for the
 * memory of the process. */
static void with_kernel(void)
{
	char path[128];

	CHECK(mkdtemp(root) && !setenv("SOMASIM_KERNEL_ROOT", root, 1));
	put("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "77\n");
	put("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 256\ndomain 0\n");
	snprintf(path, sizeof(path), "sys/class/kfd/kfd/proc/%d/vram_77", (int)getpid());
	put(path, "1048576\n");
	put("proc/self/fdinfo/5", "drm-pdev:\t0000:01:00.0\ndrm-memory-vram:\t1024 KiB\n");
	put("proc/self/fd/none", "");
	snprintf(path, sizeof(path), "%s/proc/self/fd/5", root);
	CHECK(!symlink("/dev/dri/renderD128", path));
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static void blocks(hipStream_t s)
{
	void *p, *q;

	for (int i = 0; i < 20; i++) {
		OK(hipMalloc(&p, 1000u << i % 10));
		OK(hipMemset(p, 1, 1000));
		OK(hipMallocAsync(&q, 1000u << i % 10, s));
		OK(hipFreeAsync(q, s));
		OK(hipFree(p));
	}
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, (size_t)1 << 50, s));
}

/* Each way to give memory back, and what is said to another process. */
static void pools(hipStream_t s)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor), twin, def;
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	void *p;
	int fd;

	OK(hipMallocFromPoolAsync(&p, 100 << 20, pool, s));
	OK(hipMemPoolExportToShareableHandle(&fd, pool, hipMemHandleTypePosixFileDescriptor, 0));
	OK(hipMemPoolImportFromShareableHandle(&twin, (void *)(intptr_t)fd,
					       hipMemHandleTypePosixFileDescriptor, 0));
	close(fd);
	OK(hipMemPoolExportPointer(&data, p));
	OK(hipMemPoolDestroy(twin));
	OK(hipFreeAsync(p, s));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolDestroy(pool));
	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipMallocAsync(&p, 64 << 20, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolTrimTo(def, 0));
	OK(hipMalloc(&p, 4096));
	OK(hipIpcGetMemHandle(&handle, p));
	OK(hipFree(p));
}

static void *all(void *arg)
{
	hipStream_t s;

	(void)arg;
	OK(hipStreamCreate(&s));
	blocks(s);
	blocks(hipStreamPerThread);
	pools(s);
	OK(hipStreamDestroy(s));
	OK(hipDeviceSynchronize());
	return NULL;
}

int main(int argc, char **argv)
{
	bool first = argc > 1 && !strcmp(argv[1], "first");
	pthread_attr_t attr;
	pthread_t thread;
	void *p;

	CHECK(preloaded());
	with_kernel();
	if (!first) {
		OK(hipMalloc(&p, 16));
		OK(hipFree(p));
	}
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, first ? STACK_FIRST : STACK));
	/* More than any frame, so that none lies beyond it. */
	CHECK(!pthread_attr_setguardsize(&attr, 1 << 20));
	for (int i = 0; i < 2; i++) {
		CHECK(!pthread_create(&thread, &attr, all, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
	CHECK(!nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS));
	return 0;
}

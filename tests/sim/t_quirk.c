/* SPDX-License-Identifier: MIT */
/* Quirks: the one that SOMASIM_QUIRKS names shows its defect. */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define CHUNK (4UL << 20)

struct prop { /* hipMemAllocationProp since 5.7 */
	int type, handle;
	hipMemLocation location;
	void *win32;
	unsigned char flags[8];
};

static size_t avail(void)
{
	size_t a, t;

	OK(hipMemGetInfo(&a, &t));
	return a;
}

static int fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Whoever maps over all of what a mapping keeps lets go of it. */
static void lets_go(char *va, size_t before, bool by_mapping)
{
	for (size_t i = 0; i < 2; i++)
		for (size_t half = 0; half < 2; half++) {
			CHECK(before - avail() == (by_mapping ? 2 - i : 2) * CHUNK);
			CHECK(mmap(va + i * CHUNK + half * CHUNK / 2, CHUNK / 2, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
				   0) != MAP_FAILED);
		}
	CHECK(before - avail() == (by_mapping ? 0 : 2) * CHUNK);
}

/* Does a load end a process? */
static bool load_faults(const volatile char *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*p == 9 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* The device has access to both chunks, and the host to the second, once it was given. */
static void host_loads(char *va)
{
	hipMemAccessDesc host = {{(hipMemLocationType)2, 0}, hipMemAccessFlagsProtReadWrite};

	if (pkey_alloc(0, 0) < 0)
		exit(77);
	OK(hipMemset(va, 9, 2 * CHUNK));
	OK(hipDeviceSynchronize());
	CHECK(load_faults(va) && load_faults(va + CHUNK));
	OK(hipMemSetAccess(va + CHUNK, CHUNK, &host, 1));
	CHECK(load_faults(va) && !load_faults(va + CHUNK));
	host.flags = hipMemAccessFlagsProtNone;
	OK(hipMemSetAccess(va + CHUNK, CHUNK, &host, 1));
	CHECK(load_faults(va + CHUNK));
}

int main(void)
{
	const char *q = getenv("SOMASIM_QUIRKS");
	struct prop prop = {.type = 1, .location = {hipMemLocationTypeDevice, 0}};
	hipMemAllocationProp *p = (void *)&prop;
	hipMemAccessDesc rw = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t h[2];
	char *va, back[16];
	size_t before, g;
	int open0;

	if (!q)
		return 77;
	before = avail();
	open0 = fds();
	if (!strcmp(q, "no-vmm")) {
		EXPECT(hipMemAddressReserve((void **)&va, CHUNK, 0, NULL, 0), hipErrorNotSupported);
		return 0;
	}
	OK(hipMemAddressReserve((void **)&va, 8 * CHUNK, 0, NULL, 0));
	if (!strcmp(q, "create-chunk")) {
		EXPECT(hipMemCreate(&h[0], 512UL << 20, p, 0), hipErrorOutOfMemory);
		return 0;
	}
	if (!strcmp(q, "create-cap")) {
		EXPECT(hipMemCreate(&h[0], 2UL << 30, p, 0), hipErrorOutOfMemory);
		OK(hipMemCreate(&h[0], 1UL << 30, p, 0));
		return 0;
	}
	OK(hipMemGetAllocationGranularity(&g, p, hipMemAllocationGranularityMinimum));
	CHECK(g == (strcmp(q, "granularity-2m") ? 4096 : 2 << 20));
	for (int i = 0; i < 2; i++) {
		OK(hipMemCreate(&h[i], CHUNK, p, 0));
		if (!strcmp(q, "map-fails")) {
			EXPECT(hipMemMap(va, CHUNK, 0, h[i], 0), hipErrorUnknown);
			return 0;
		}
		OK(hipMemMap(va + (size_t)i * CHUNK, CHUNK, 0, h[i], 0));
	}
	CHECK(fds() == open0 + (strcmp(q, "fd-per-handle") ? 0 : 2));
	EXPECT(hipMemSetAccess(va + CHUNK, CHUNK, &rw, 1),
	       strcmp(q, "setaccess-tail") ? hipSuccess : hipErrorInvalidValue);
	OK(hipMemSetAccess(va, 2 * CHUNK, &rw, 1));
	if (!strcmp(q, "host-no-access"))
		host_loads(va);
	OK(hipMemset(va, 3, 2 * CHUNK));
	OK(hipDeviceSynchronize());
	/* The memset ran within SOMASIM_SETTLE_US; the copy runs after it. */
	if (!strcmp(q, "map-settle"))
		usleep(1500000);
	OK(hipMemcpy(back, va, 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == (strcmp(q, "map-settle") ? 3 : 0));
	OK(hipMemUnmap(va, 2 * CHUNK));
	OK(hipMemRelease(h[0]));
	OK(hipMemRelease(h[1]));
	size_t lost = before - avail();
	if (!strncmp(q, "phys-", 5) || !strcmp(q, "release-leaks"))
		CHECK(lost == 2 * CHUNK);
	else
		CHECK(lost == (strcmp(q, "unmap-partial") ? 0 : CHUNK));
	if (!strncmp(q, "phys-", 5))
		lets_go(va, before, !strcmp(q, "phys-kept"));
	if (strcmp(q, "unmap-partial"))
		OK(hipMemAddressFree(va, 8 * CHUNK));
	CHECK(avail() == before || !strcmp(q, "release-leaks") || !strcmp(q, "unmap-partial"));
	return 0;
}

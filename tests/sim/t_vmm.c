/* SPDX-License-Identifier: MIT */
/* Virtual memory: mapping, access, moving a handle, release, and device page faults. */
#include <sys/wait.h>

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

int main(int argc, char **argv)
{
	struct prop prop = {.type = 1, .location = {hipMemLocationTypeDevice, 0}};
	hipMemAllocationProp *p = (void *)&prop;
	hipMemAccessDesc rw = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t h[4];
	char *va, *spare, back[16];
	size_t before, size;
	hipDeviceptr_t base;
	int version, status;

	OK(hipRuntimeGetVersion(&version));
	if (version < 60000000) {
		va = (char *)1;
		OK(hipMemAddressReserve((void **)&va, 1 << 20, 0, NULL, 0));
		CHECK(version < 50300000 ? va == (char *)1 : va == NULL);
		return 0;
	}
	before = avail();
	OK(hipMemAddressReserve((void **)&va, 64UL << 30, 0, NULL, 0));
	CHECK(avail() == before);
	for (int i = 0; i < 4; i++) {
		OK(hipMemCreate(&h[i], CHUNK, p, 0));
		OK(hipMemMap(va + i * CHUNK, CHUNK, 0, h[i], 0));
	}
	CHECK(avail() == before - 4 * CHUNK);
	EXPECT(hipMemMap(va, CHUNK, 0, h[0], 0), hipErrorInvalidValue);
	/* A copy from a mapping without access is refused. */
	EXPECT(hipMemcpy(back, va, 16, hipMemcpyDeviceToHost), hipErrorUnknown);
	OK(hipMemSetAccess(va, 4 * CHUNK, &rw, 1));
	OK(hipMemset(va, 3, 4 * CHUNK));
	OK(hipMemcpy(back, va + CHUNK - 8, 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 3 && back[15] == 3);
	OK(hipMemGetAddressRange(&base, &size, va + CHUNK + 5));
	CHECK(base == va + CHUNK && size == CHUNK);

	/* A handle keeps its contents when it is mapped elsewhere. */
	OK(hipMemset(va + CHUNK, 9, 16));
	OK(hipDeviceSynchronize());
	OK(hipMemUnmap(va + CHUNK, CHUNK));
	spare = va + 100 * CHUNK;
	OK(hipMemMap(spare, CHUNK, 0, h[1], 0));
	OK(hipMemSetAccess(spare, CHUNK, &rw, 1));
	OK(hipMemcpy(back, spare, 16, hipMemcpyDeviceToHost));
	CHECK(back[0] == 9);
	EXPECT(hipMemAddressFree(va, 64UL << 30), hipErrorInvalidValue);

	/* Device work on memory that is not mapped ends the process. */
	pid_t pid = argc > 1 ? 0 : fork();
	if (!pid) {
		if (argc > 1) {
			close(2);
			OK(hipMemcpyAsync(va + CHUNK, va, 16, hipMemcpyDefault, NULL));
			OK(hipDeviceSynchronize());
			return 0;
		}
		execl("/proc/self/exe", argv[0], "fault", (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);

	/* Memory is free again once its handle is released and unmapped, in either order. */
	for (int i = 0; i < 4; i++)
		OK(hipMemRelease(h[i]));
	CHECK(avail() == before - 4 * CHUNK);
	OK(hipMemUnmap(va, CHUNK));
	OK(hipMemUnmap(spare, CHUNK));
	if (version >= 70000000) {
		OK(hipMemUnmap(va + 2 * CHUNK, 2 * CHUNK));
	} else {
		OK(hipMemUnmap(va + 2 * CHUNK, CHUNK));
		OK(hipMemUnmap(va + 3 * CHUNK, CHUNK));
	}
	bool kept = getenv("SOMASIM_QUIRKS") && strstr(getenv("SOMASIM_QUIRKS"), "phys-");
	CHECK((avail() == before) == !kept);
	EXPECT(hipMemUnmap(va, CHUNK), hipErrorInvalidValue);
	OK(hipMemAddressFree(va, 64UL << 30));
	CHECK(avail() == before);
	/* There is no more physical memory than the device has. */
	EXPECT(hipMemCreate(&h[0], before + CHUNK, p, 0), hipErrorOutOfMemory);
	return 0;
}

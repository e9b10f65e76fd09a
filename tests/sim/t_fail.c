/* SPDX-License-Identifier: MIT */
/* Failures on request, the limit of device memory, call counts, and a fork after the start. */
#include <sys/wait.h>

#include "test.h"

int main(void)
{
	void (*fail)(const char *) = control("somasim_fail");
	void (*clear)(void) = control("somasim_fail_clear");
	uint64_t (*count)(const char *) = control("somasim_call_count");
	uint64_t (*avail)(int) = control("somasim_device_free_bytes");
	uint64_t (*all)(void) = control("somasim_total_calls");
	void *p, *q = (void *)5;
	hipStream_t s;
	size_t f, t;
	int status, n;

	OK(hipStreamCreate(&s));
	fail("hipMalloc:2,hipStreamSynchronize:%3=719");
	OK(hipMalloc(&p, 64));
	EXPECT(hipMalloc(&q, 64), hipErrorOutOfMemory);
	CHECK(q == (void *)5);
	EXPECT(hipGetLastError(), hipErrorOutOfMemory);
	OK(hipMalloc(&q, 64));
	for (int i = 1; i < 10; i++)
		EXPECT(hipStreamSynchronize(s), i % 3 ? 0 : 719);
	clear();
	for (int i = 1; i < 10; i++)
		OK(hipStreamSynchronize(s));
	CHECK(count("hipMalloc") == 3);
	CHECK(count("hipStreamSynchronize") == 18);
	CHECK(count("hipMemGetInfo") == 0);
	uint64_t before = all();
	OK(hipGetDevice(&n));
	CHECK(all() == before + 1);

	/* All of the device memory can be allocated, and no more. */
	OK(hipMemGetInfo(&f, &t));
	CHECK(f == avail(0) && f == t - 2 * 4096);
	OK(hipFree(p));
	OK(hipFree(q));
	OK(hipMalloc(&p, t));
	CHECK(avail(0) == 0);
	EXPECT(hipMalloc(&q, 1), hipErrorOutOfMemory);
	CHECK(count("hipMemGetInfo") == 1); /* the nested call of hipMalloc does not count */
	OK(hipFree(p));

	OK(hipMemsetAsync(NULL, 0, 0, s));
	pid_t pid = fork();
	if (!pid)
		_exit(hipStreamSynchronize(s) == hipErrorNotInitialized &&
				      hipMalloc(&p, 64) == hipErrorNotInitialized ?
			      0 :
			      1);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}

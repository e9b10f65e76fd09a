/* SPDX-License-Identifier: MIT */
/* A program that is linked with HIP. Prints "seen" if the runtime saw none of its allocations. */
#include "test.h"

int main(void)
{
	size_t left, total;
	void *p;

	CHECK(preloaded());
	sim_calls();
	OK(hipMalloc(&p, 100));
	OK(hipFree(p));
	OK(hipMallocAsync(&p, 100, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipMemGetInfo(&left, &total));
	CHECK(!sim_count("hipMalloc") && !sim_count("hipMallocAsync"));
	/* An address is the same however it is asked for. */
	CHECK(dlsym(dlopen("libamdhip64.so.5", RTLD_LAZY), "hipMalloc") ==
	      dlsym(RTLD_DEFAULT, "hipMalloc"));
	CHECK(dlvsym(RTLD_DEFAULT, "hipMalloc", "hip_4.2") == dlsym(RTLD_DEFAULT, "hipMalloc"));
	CHECK(dlvsym(RTLD_DEFAULT, "hipMallocAsync", "hip_5.1") == (void *)hipMallocAsync);
	puts("seen");
	return 0;
}

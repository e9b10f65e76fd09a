/* SPDX-License-Identifier: MIT */
/*
 * A program whose files may not grow (RLIMIT_FSIZE, argument 1; batch systems and shells set it).
 * A write beyond the limit raises SIGXFSZ, which would end it: the library must not make one.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "test.h"

int main(int argc, char **argv)
{
	rlim_t most = argc > 1 ? (rlim_t)atol(argv[1]) : 0;
	const struct rlimit limit = {most, most};
	void *hsa = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_GLOBAL), *p;
	int (*init)(void) = hsa ? (int (*)(void))dlsym(hsa, "hsa_init") : NULL;
	hipMemPool_t pool;
	int fd = -1;

	/* The software device makes a file of its memory. */
	CHECK(init && init() == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	for (int i = 0; i < 2000; i++) {
		OK(hipMalloc(&p, 4096 + (size_t)i));
		OK(hipFree(p));
	}
	pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);
	(void)hipMemPoolExportToShareableHandle(&fd, pool, hipMemHandleTypePosixFileDescriptor, 0);
	(void)hipMemPoolImportFromShareableHandle(&pool, &fd, hipMemHandleTypePosixFileDescriptor,
						  0);
	return 0;
}

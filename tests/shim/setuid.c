/* SPDX-License-Identifier: MIT */
/* A program that may run with the rights of its file's owner (setuid.sh). It is linked with the
 * library. */
#include <dlfcn.h>
#include <sys/auxv.h>

#include "test.h"

int main(int argc, char **argv)
{
	void *p;

	/* The device, and the runtime that uses it. */
	for (int i = 1; i < argc; i++)
		CHECK(dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL));
	OK(hipMalloc(&p, 1 << 20));
	OK(hipFree(p));
	return getauxval(AT_SECURE) ? 42 : 0;
}

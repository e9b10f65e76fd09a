/* SPDX-License-Identifier: MIT */
/* Files with kernels: code objects, and programs with a section of bundles. The first byte
 * chooses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/check/kernel_args.c"

/* In the place of those of the shim and the driver. */
struct ss_real ss_real;
__thread struct ss_tls ss_tls;
int ss_rocm_devices;

const char *ss_rocm_arch(int dev)
{
	(void)dev;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ss_unpack_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct kernel *k, *next;
	char path[64];

	if (fd < 0)
		fd = memfd_create("kernels", MFD_CLOEXEC);
	if (size < 1)
		return 0;
	if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file_read(path, data[0] & 1, NULL);
	HASH_ITER(hh, kernels, k, next) {
		HASH_DEL(kernels, k);
		free(k->arg);
		free(k);
	}
	return 0;
}

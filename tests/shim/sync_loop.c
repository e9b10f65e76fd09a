/* SPDX-License-Identifier: MIT */
/* Takes 8 MiB, frees it and synchronizes, again and again: with a threshold of 0 all of it is
 * released in between. `sync_loop ROUNDS` */
#include <stdlib.h>

#include <hip/hip_runtime_api.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;

	for (int i = 0; i < rounds; i++) {
		void *p;
		if (hipMallocAsync(&p, 8 << 20, NULL) != hipSuccess ||
		    hipFreeAsync(p, NULL) != hipSuccess || hipStreamSynchronize(NULL) != hipSuccess)
			return 1;
	}
	return 0;
}

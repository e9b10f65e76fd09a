/* SPDX-License-Identifier: MIT */
/*
 * Takes memory as fast as it can and is killed before its next call. Prints the bytes that it
 * holds.
 *   grows COUNT    COUNT blocks of 16 MiB, by each way in turn; 0: until there is no more
 */
#include <signal.h>
#include <unistd.h>

#include "../shim/test.h"

#define BLOCK ((size_t)16 << 20)

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? (size_t)atoi(argv[1]) : 0, i;
	hipError_t err = hipSuccess;
	char text[32];
	void *p;
	int n;

	CHECK(preloaded());
	for (i = 0; !count || i < count; i++) {
		err = i & 1 ? hipMalloc(&p, BLOCK) : hipMallocAsync(&p, BLOCK, NULL);
		if (err != hipSuccess)
			break;
	}
	CHECK(err == (count ? hipSuccess : hipErrorOutOfMemory));
	n = snprintf(text, sizeof(text), "%zu\n", i * BLOCK);
	CHECK(write(STDOUT_FILENO, text, (size_t)n) == n);
	kill(getpid(), SIGKILL);
	return 1;
}

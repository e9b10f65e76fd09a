/* SPDX-License-Identifier: MIT */
/* Takes 12 and 3 MiB, frees the 3, and makes no more call. Prints its process id, and
 * crashes when its stdin says so. */
#include <signal.h>
#include <unistd.h>

#include "../shim/test.h"

#define MIB ((size_t)1 << 20)

int main(void)
{
	void *kept, *freed;
	char text[32], byte;
	int n;

	CHECK(preloaded());
	OK(hipMallocAsync(&kept, 12 * MIB, NULL));
	OK(hipMallocAsync(&freed, 3 * MIB, NULL));
	OK(hipFreeAsync(freed, NULL));
	n = snprintf(text, sizeof(text), "pid %d\n", (int)getpid());
	CHECK(write(STDOUT_FILENO, text, (size_t)n) == n);
	CHECK(read(STDIN_FILENO, &byte, 1) == 1);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 1;
}

/* SPDX-License-Identifier: MIT */
/*
 * Programs that go on in another way than they began: each part takes and frees one block.
 *   again exec        becomes itself, without the argument
 *   again keep        does not free it
 *   again fork FILE   forks and ends; the child takes its block when there is FILE
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hip/hip_runtime_api.h>

static int use(bool keep)
{
	void *p;

	return hipMalloc(&p, 4096) == hipSuccess && (keep || hipFree(p) == hipSuccess) ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "fork") == 0) {
		if (fork() != 0)
			return 0;
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		alarm(600);
		while (access(argv[2], F_OK) != 0)
			usleep(1000);
		return use(false);
	}
	if (use(argc > 1 && strcmp(argv[1], "keep") == 0) != 0)
		return 1;
	if (argc > 1 && strcmp(argv[1], "exec") == 0) {
		execl("/proc/self/exe", argv[0], (char *)NULL);
		return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Processes that share the memory of their devices (SOMASIM_SHARED): one is out of memory by what
 * another has, and what a process had returns when it is killed.
 */
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

#define MIB (1ull << 20)
#define VRAM (64 * MIB)

/* Takes so much, says so, and waits to be killed. */
static int holder(size_t size)
{
	void *p;

	OK(hipMalloc(&p, size));
	CHECK(write(1, "x", 1) == 1);
	for (;;)
		pause();
}

/* A program that was loaded with the option. */
static pid_t start(char *self, int *out)
{
	char *argv[] = {self, "holder", NULL}, c;
	int fd[2];
	pid_t pid;

	CHECK(!pipe(fd));
	pid = fork();
	if (!pid) {
		dup2(fd[1], 1);
		close(fd[0]);
		execv(self, argv);
		_exit(127);
	}
	close(fd[1]);
	CHECK(read(fd[0], &c, 1) == 1);
	*out = fd[0];
	return pid;
}

static size_t free_bytes(void)
{
	size_t left, total;

	OK(hipMemGetInfo(&left, &total));
	CHECK(total == VRAM);
	return left;
}

static int test(char *self)
{
	size_t before = free_bytes();
	int status, fd;
	void *p, *q;
	pid_t pid;

	for (int round = 0; round < 2; round++) {
		OK(hipMalloc(&q, 4 * MIB));
		pid = start(self, &fd);
		CHECK(free_bytes() == before - 52 * MIB);
		EXPECT(hipMalloc(&p, 16 * MIB), hipErrorOutOfMemory);
		OK(hipMalloc(&p, 8 * MIB));
		OK(hipFree(p));
		/* Its own memory is free again, and no more. */
		OK(hipFree(q));
		EXPECT(hipMalloc(&p, 20 * MIB), hipErrorOutOfMemory);
		CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
		close(fd);
		CHECK(free_bytes() == before);
		OK(hipMalloc(&p, 40 * MIB));
		OK(hipFree(p));
	}
	return 0;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/somasim-shared-XXXXXX", *args[] = {argv[0], "test", NULL};
	int status, fd;
	pid_t pid;

	if (argc > 1 && !strcmp(argv[1], "holder"))
		return holder(48 * MIB);
	if (argc > 1)
		return test(argv[0]);
	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	setenv("SOMASIM_SHARED", path, 1);
	setenv("SOMASIM_VRAM", "64M", 1);
	pid = fork();
	if (!pid) {
		execv(argv[0], args);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	unlink(path);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as on a machine that was started less than a second ago: in a time namespace whose
 * clocks begin near 0. Skips, with the reason, where the kernel allows no such namespace.
 *
 *   just_started PRELOAD PROGRAM [ARGUMENT ...]
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define SKIP 77

static int skip(const char *what)
{
	printf("skipped: no time namespace: %s: %s\n", what, strerror(errno));
	return SKIP;
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), good;

	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Whoever is not root may be so in a user namespace. */
static int enter(void)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %d 1", (int)getuid());
	if (!unshare(CLONE_NEWTIME))
		return 1;
	return errno == EPERM && !unshare(CLONE_NEWUSER | CLONE_NEWTIME) &&
	       put("/proc/self/uid_map", map);
}

int main(int argc, char **argv)
{
	struct timespec up, with_suspend, now;
	char offsets[128];
	int status;
	pid_t pid;

	if (argc < 3)
		return 2;
	if (!enter())
		return skip("unshare");
	clock_gettime(CLOCK_MONOTONIC, &up);
	clock_gettime(CLOCK_BOOTTIME, &with_suspend);
	snprintf(offsets, sizeof(offsets), "monotonic -%ld 0\nboottime -%ld 0\n", (long)up.tv_sec,
		 (long)with_suspend.tv_sec);
	if (!put("/proc/self/timens_offsets", offsets))
		return skip("/proc/self/timens_offsets");
	/* Only children are in the namespace. */
	pid = fork();
	if (pid < 0)
		return skip("fork");
	if (!pid) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > 60)
			_exit(skip("its clock"));
		setenv("LD_PRELOAD", argv[1], 1);
		execv(argv[2], &argv[2]);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

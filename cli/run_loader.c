/* SPDX-License-Identifier: MIT */
/*
 * Facts about the dynamic loader of this machine, for `somashim run`: which way into HIP to use
 * besides the preload, and why the library was not loaded.
 */
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_loader.h"

/* Release notes of glibc 2.35: before it, la_symbind() was not called for objects that bind at
 * start (bugs 15533, 28061), and every other call through a PLT went through the loader. */
#define AUDIT_MINOR 35

bool ss_loader_audits(const char *version, bool quiet)
{
	const char *table = getenv("SOMASHIM_API_TABLE");
	int minor = 0;

	if (!version)
		version = gnu_get_libc_version();
	if (sscanf(version, "2.%d", &minor) != 1 || minor >= AUDIT_MINOR)
		return true;
	/* A user who switches the table off wants the auditor. */
	if (table && strcmp(table, "0") == 0)
		return true;
	setenv("SOMASHIM_API_TABLE", "1", 0);
	if (!quiet) {
		fprintf(stderr,
			"somashim: glibc %s: LD_AUDIT misses programs that bind at start and "
			"slows calls before glibc 2.%d. So SOMASHIM_API_TABLE=1 is set instead, "
			"which "
			"works with AMD's builds of ROCm 6.0 and later (SOMASHIM_API_TABLE=0: "
			"LD_AUDIT)\n",
			version, AUDIT_MINOR);
	}
	return false;
}

bool ss_loader_refusal(const char *library, char *reason, size_t size)
{
	size_t have = 0;
	ssize_t n;
	int fd[2];

	if (pipe(fd) != 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		unsetenv("LD_AUDIT");
		setenv("LD_PRELOAD", library, 1);
		setenv("LC_ALL", "C", 1);
		setenv("SOMASHIM_DISABLE", "1", 1);
		execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	while (pid > 0 && have < size - 1 && (n = read(fd[0], reason + have, size - 1 - have)) > 0)
		have += (size_t)n;
	reason[have] = '\0';
	close(fd[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	/* The loader names the library in its messages and writes one line for each. */
	reason[strcspn(reason, "\n")] = '\0';
	return strstr(reason, library) != NULL;
}

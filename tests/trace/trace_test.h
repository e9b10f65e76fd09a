/* SPDX-License-Identifier: MIT */
/* What the tests of the trace share: a child process that records, and reading it back. */
#ifndef TEST_TRACE_H
#define TEST_TRACE_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/reader.h"
#include "trace/writer.h"

#define BASE 0x7f0000000000ull
#define POOL ((void *)0x1000)
#define STREAM ((void *)0x2000)

static char dir[64]; /* of this test program, removed at its end */

static inline int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "%s/trace-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static inline const char *path_in(const char *name)
{
	static char path[16][256];
	static unsigned next;
	char *p = path[next++ % 16];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

/* Runs `body` in a child that may open a recording. Returns its wait status. */
static inline int in_child(void (*body)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		body(arg);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* For the child, where cmocka's asserts do not work. */
#define MUST(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		_exit(1); \
	} \
} while (0)

static inline struct ss_trace_reader *open_one(const char *path)
{
	char err[512] = "";
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));

	if (!r)
		fail_msg("%s", err);
	return r;
}

static inline void *address(uint64_t thread, uint64_t n)
{
	return (void *)(uintptr_t)(BASE + (thread << 32) + n * 256);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Notes which edges of a library a process reaches, for scripts/suite.sh: a file REACHED/edges with
 * a byte per edge, which all processes of one test share, however they end. The calls are those
 * that clang's -fsanitize-coverage=edge,trace-pc-guard makes. No locks: a byte is only ever set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden"), no_sanitize("coverage")))

void __sanitizer_cov_trace_pc_guard_init(uint32_t *begin, uint32_t *end);
void __sanitizer_cov_trace_pc_guard(uint32_t *guard);

static unsigned char *edges;

/* The library stands in for some of these calls, so the kernel is asked without them. */
HIDDEN void __sanitizer_cov_trace_pc_guard_init(uint32_t *begin, uint32_t *end)
{
	const char *dir = getenv("REACHED");
	long count = end - begin, fd, at;
	char path[4096];

	if (!dir || begin == end || edges)
		return;
	snprintf(path, sizeof(path), "%s/edges", dir);
	fd = syscall(SYS_openat, (long)AT_FDCWD, path, (long)(O_RDWR | O_CREAT | O_CLOEXEC), 0666L);
	if (fd < 0 || syscall(SYS_ftruncate, fd, count) != 0)
		return;
	at = syscall(SYS_mmap, 0L, count, (long)(PROT_READ | PROT_WRITE), (long)MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (at == -1)
		return;
	edges = (unsigned char *)at;
	for (uint32_t *guard = begin; guard < end; guard++)
		*guard = (uint32_t)(guard - begin) + 1;
}

HIDDEN void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	if (*guard && edges)
		edges[*guard - 1] = 1;
}

/* SPDX-License-Identifier: MIT */
/* A file to which the library writes lines, in a program that may close descriptors of others. */
#ifndef SS_CONFIG_SINK_H
#define SS_CONFIG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ss_sink {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/* Opens `path` for appending. False: errno says why; ENXIO is a FIFO without a reader. */
bool ss_sink_open(struct ss_sink *s, const char *path);
/* The same with a file that no other process writes to (ss_file_new()). */
bool ss_sink_new(struct ss_sink *s, const char *pattern, char *path, size_t size, unsigned *number);
/* Uses the current file of `fd`. The descriptor stays the caller's. False: `fd` is closed. */
bool ss_sink_borrow(struct ss_sink *s, int fd);
/* As one write(2), but with EBADF if the descriptor has become another file, and EPIPE and EFBIG
 * without a signal. Any thread and any signal handler may call it. */
ssize_t ss_sink_write(const struct ss_sink *s, const void *data, size_t size);
void ss_sink_close(struct ss_sink *s);

#endif

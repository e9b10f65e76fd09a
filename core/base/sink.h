/* SPDX-License-Identifier: MIT */
/* A file that lines go to, in a program that may close what it has not opened. */
#ifndef SS_CORE_SINK_H
#define SS_CORE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ss_sink {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/* Appends to the file at `path`; on a FIFO that nobody reads: ENXIO. False: errno says why. */
bool ss_sink_open(struct ss_sink *s, const char *path);
/* Takes what `fd` is now, which stays its owner's. False: it is closed. */
bool ss_sink_borrow(struct ss_sink *s, int fd);
/* As write(2), once; but EBADF where the descriptor has become another file, and EPIPE without
 * a signal. Any thread at any time; a signal's handler too. */
ssize_t ss_sink_write(const struct ss_sink *s, const void *data, size_t size);
void ss_sink_close(struct ss_sink *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Opens a file whose path comes from another program, so it may name anything. */
#ifndef SS_BASE_REGULAR_FILE_H
#define SS_BASE_REGULAR_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a regular file for reading, and nothing else: a FIFO would wait for a writer, and a device
 * may do something when it is opened. -1 with errno set; EINVAL: it is of another kind. */
static inline int ss_regular_open(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	/* The path may name another file by now. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

#endif

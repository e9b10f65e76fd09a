/* SPDX-License-Identifier: MIT */
/*
 * Writes lines to a file. Some programs close all descriptors up to some number and then open files
 * of their own. So the sink's descriptor has a high number, and before each line its file is
 * compared with the file that was opened: no line is written into a file of the program. A pipe
 * without a reader, or a file that may not grow, must not end the program.
 *
 * Locks: none.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/sink.h"
#include "core/base/quiet.h"
#include "trace/file_name.h"

bool ss_sink_borrow(struct ss_sink *s, int fd)
{
	struct stat st;

	s->fd = -1;
	if (fstat(fd, &st))
		return false;
	*s = (struct ss_sink){.fd = fd, .dev = st.st_dev, .ino = st.st_ino};
	return true;
}

static bool adopt(struct ss_sink *s, int fd)
{
	int flags;

	s->fd = -1;
	if (fd < 0)
		return false;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	return ss_sink_borrow(s, ss_file_move_up(fd));
}

bool ss_sink_open(struct ss_sink *s, const char *path)
{
	/* O_NONBLOCK, because open() of a FIFO would otherwise wait for a reader. */
	return adopt(s, open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644));
}

bool ss_sink_new(struct ss_sink *s, const char *pattern, char *path, size_t size, unsigned *number)
{
	return adopt(s, ss_file_new(pattern, O_WRONLY | O_APPEND, path, size, number));
}

/* May a write to this file raise a signal? The calls that block the signal cost more than the
 * line. */
static bool may_raise(const struct stat *st)
{
	struct rlimit limit;

	return S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) ||
	       (S_ISREG(st->st_mode) && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		limit.rlim_cur != RLIM_INFINITY);
}

ssize_t ss_sink_write(const struct ss_sink *s, const void *data, size_t size)
{
	struct stat st;

	if (fstat(s->fd, &st))
		return -1;
	if (st.st_dev != s->dev || st.st_ino != s->ino) {
		errno = EBADF;
		return -1;
	}
	return may_raise(&st) ? ss_quiet_write(s->fd, data, size) : write(s->fd, data, size);
}

void ss_sink_close(struct ss_sink *s)
{
	struct stat st;

	if (s->fd >= 0 && !fstat(s->fd, &st) && st.st_dev == s->dev && st.st_ino == s->ino)
		close(s->fd);
	s->fd = -1;
}

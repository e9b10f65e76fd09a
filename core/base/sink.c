/* SPDX-License-Identifier: MIT */
/*
 * Writing lines to a file. Some programs close all descriptors up to some number and then open files
 * of their own. So the descriptor here has a high number, and before each line its file is compared
 * with the one that was opened: no line gets into a file of the program. If the reader of a pipe has
 * gone, that must not end the program.
 *
 * Locks: none.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/sink.h"

#define HIGH 512 /* lowest descriptor to use, if the limit allows it: above what programs close */

static int move_up(int fd)
{
	struct rlimit limit;
	int least = HIGH, high;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur <= HIGH)
		least = (int)limit.rlim_cur - 1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0 && fd <= STDERR_FILENO)
		high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

bool ss_sink_borrow(struct ss_sink *s, int fd)
{
	struct stat st;

	s->fd = -1;
	if (fstat(fd, &st))
		return false;
	*s = (struct ss_sink){.fd = fd, .dev = st.st_dev, .ino = st.st_ino};
	return true;
}

bool ss_sink_open(struct ss_sink *s, const char *path)
{
	/* O_NONBLOCK, because open() of a FIFO would otherwise wait for a reader. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
	int flags;

	s->fd = -1;
	if (fd < 0)
		return false;
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	return ss_sink_borrow(s, move_up(fd));
}

/* Writes, and consumes the SIGPIPE that the write raises in this thread if nobody reads. */
static ssize_t write_pipe(int fd, const void *data, size_t size)
{
	const struct timespec now = {0};
	sigset_t pipe, before, pending;
	ssize_t n;
	int err;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	n = write(fd, data, size);
	err = errno;
	if (n < 0 && err == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
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
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ? write_pipe(s->fd, data, size) :
							      write(s->fd, data, size);
}

void ss_sink_close(struct ss_sink *s)
{
	struct stat st;

	if (s->fd >= 0 && !fstat(s->fd, &st) && st.st_dev == s->dev && st.st_ino == s->ino)
		close(s->fd);
	s->fd = -1;
}

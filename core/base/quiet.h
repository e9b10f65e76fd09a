/* SPDX-License-Identifier: MIT */
/*
 * Writing in a program that is not ours. A write beyond RLIMIT_FSIZE, or to a pipe without a
 * reader, raises a signal that ends the program. Between the two calls it raises none: the write
 * fails with EFBIG or EPIPE.
 */
#ifndef SS_BASE_QUIET_H
#define SS_BASE_QUIET_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct ss_quiet {
	sigset_t mask;   /* of the thread */
	sigset_t raised; /* signals that a write may raise, and that were not pending before */
};

/* Any thread and any signal handler may call these, in pairs. */
static inline void ss_quiet_begin(struct ss_quiet *q)
{
	static const int signals[] = {SIGPIPE, SIGXFSZ};
	sigset_t pending, both;

	sigemptyset(&both);
	sigemptyset(&q->raised);
	sigpending(&pending);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&both, signals[i]);
		if (!sigismember(&pending, signals[i]))
			sigaddset(&q->raised, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &both, &q->mask);
}

/* Consumes the raised signals. Leaves errno alone. */
static inline void ss_quiet_end(const struct ss_quiet *q)
{
	const struct timespec now = {0};
	int saved = errno;

	while (sigtimedwait(&q->raised, NULL, &now) > 0 || errno == EINTR)
		errno = 0;
	pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
	errno = saved;
}

/* As write(2), but for the signals. */
static inline ssize_t ss_quiet_write(int fd, const void *data, size_t size)
{
	struct ss_quiet q;
	ssize_t n;

	ss_quiet_begin(&q);
	n = write(fd, data, size);
	ss_quiet_end(&q);
	return n;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The switch that keeps pthread_cancel() out of our code.
 *
 * A thread might end at a cancellation point of ours (a wait, a sleep, a file that is opened) or of
 * the runtime. It would leave behind the lock, the turn, or the count of calls in progress that it
 * held. So a cancellation waits until the outermost function of ours returns.
 * pthread_setcancelstate() is one of the three functions that POSIX allows a thread with
 * asynchronous cancelability to call.
 */
#ifndef SS_BASE_UNCANCELLED_H
#define SS_BASE_UNCANCELLED_H

#include <pthread.h>

static inline int ss_cancel_off(void)
{
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	return was;
}

static inline void ss_cancel_restore(const int *was)
{
	pthread_setcancelstate(*was, NULL);
}

/* A declaration: from here to the end of the block no cancellation acts on the thread. */
#define SS_UNCANCELLED \
	const int ss_cancel_was __attribute__((cleanup(ss_cancel_restore), unused)) = \
		ss_cancel_off()

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The thread that releases idle memory. The thread exists only while there is idle memory: a free
 * starts it, and it ends when no memory is left that could be released.
 */
#ifndef SS_SHIM_DECAY_THREAD_H
#define SS_SHIM_DECAY_THREAD_H

/* From now on memory that becomes idle starts the thread, unless the options forbid that. Once,
 * when the core exists. Makes no HIP call. */
void ss_decay_thread_init(void);
/* exit() has begun: ends the thread, and no other is started. The wait for the thread is
 * bounded. */
void ss_decay_thread_stop(void);
/* Between these two calls the thread makes no call into the runtime, unless a call does not return.
 * The pairs nest. */
void ss_decay_thread_pause(void);
void ss_decay_thread_resume(void);

#endif

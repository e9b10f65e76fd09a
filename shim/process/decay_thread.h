/* SPDX-License-Identifier: MIT */
/*
 * The thread that releases idle memory. It exists only while there is idle memory: a free starts
 * it, and it ends when nothing is left that could go.
 */
#ifndef SS_SHIM_DECAY_THREAD_H
#define SS_SHIM_DECAY_THREAD_H

/* From now on it is started when memory becomes idle, unless the options forbid that. Once, when
 * the core exists. Makes no HIP call. */
void ss_decay_thread_init(void);
/* exit() has begun: the thread ends, and no other is started. Waits for it, but not for long. */
void ss_decay_thread_stop(void);
/* Between these two it makes no call into the runtime, unless one does not return. They nest. */
void ss_decay_thread_pause(void);
void ss_decay_thread_resume(void);

#endif

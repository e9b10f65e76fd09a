/* SPDX-License-Identifier: MIT */
/* Threads that end and have a per-thread stream. */
#ifndef SS_SHIM_THREAD_EXIT_H
#define SS_SHIM_THREAD_EXIT_H

/* The calling thread has a timeline of its own on dev: retire it when the thread ends. */
void ss_thread_exit_register(int dev);

#endif

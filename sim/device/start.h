/* SPDX-License-Identifier: MIT */
/*
 * When the device starts. As the real runtime, it does not start when it is loaded, nor when
 * a program registers its kernels and variables before main, but at the first call that may
 * need a device. A child that is forked before that may use the device; in a child that is
 * forked later every call fails.
 */
#ifndef SIM_START_H
#define SIM_START_H

#include <stdbool.h>

/* Called when the device starts. The file that has the memory sets it, before any call can come. */
extern void (*sim_on_start)(void);

/* Starts the device once. Thread-safe. */
void sim_start(void);
bool sim_started(void);

/* True in a child of a process in which the device had started: its threads are missing. */
bool sim_is_dead(void);

#endif

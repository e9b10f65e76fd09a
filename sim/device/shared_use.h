/* SPDX-License-Identifier: MIT */
/*
 * Device memory that processes share (SOMASIM_SHARED): what each of them has in use is counted in
 * one file. The share of a process that has ended, in whatever way, counts no more. Thread-safe.
 */
#ifndef SIM_SHARED_USE_H
#define SIM_SHARED_USE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens the file that the option names, once, and has sim_devices count there. False: it cannot be
 * used, or it has no place for one more process. True without the option, too. */
bool sim_shared_init(void);

/* The bytes that other processes have in use. Until sim_shared_end() no other process can take
 * more. 0, and nothing is held, without the option. */
uint64_t sim_shared_begin(int device);
void sim_shared_end(void);

#endif

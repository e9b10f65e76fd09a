/* SPDX-License-Identifier: MIT */
/*
 * Signals: 64-byte objects in memory that the device can reach. As on the real runtime the
 * handle is the object's address, and the value is 8 bytes behind it, where streams and the
 * program may write it with plain stores. All functions are thread-safe, but a handle must
 * be live.
 */
#ifndef SIM_SIGNAL_H
#define SIM_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

enum sim_signal_op {
	SIG_LOAD,
	SIG_STORE,
	SIG_ADD,
	SIG_SUB,
	SIG_AND,
	SIG_OR,
	SIG_XOR,
	SIG_XCHG,
	SIG_CAS
};

/* As hsa_signal_condition_t. */
enum sim_condition { SIM_EQUAL, SIM_NOT_EQUAL, SIM_LESS, SIM_NOT_LESS };

/* Returns the handle, or 0: out of memory. */
uint64_t sim_signal_new(int64_t value);
void sim_signal_free(uint64_t handle);

/* False: the signal was freed. */
bool sim_signal_is_live(uint64_t handle);

/* The address of the value. */
void *sim_signal_value(uint64_t handle);

/* Applies op to the value and returns what the value was. `expected` is for SIG_CAS only. */
int64_t sim_signal_op(uint64_t handle, enum sim_signal_op op, int64_t v, int64_t expected);

/* Reads the value to *out. True: the condition holds. */
bool sim_signal_holds(uint64_t handle, enum sim_condition c, int64_t ref, int64_t *out);

/* Waits until the condition holds, or for timeout nanoseconds (UINT64_MAX: for ever).
 * Returns the last value. */
int64_t sim_signal_wait(uint64_t handle, enum sim_condition c, int64_t ref, uint64_t timeout);

/* Sleeps between two looks at a value; round counts the looks. */
void sim_signal_pause(unsigned round);

#endif

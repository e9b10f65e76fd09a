/* SPDX-License-Identifier: MIT */
/* Commands that write a value to memory, or wait until memory holds one. */
#ifndef SIM_STREAM_VALUE_H
#define SIM_STREAM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* As the hipStreamWaitValue flags. */
enum sim_value_condition { SIM_VALUE_GTE, SIM_VALUE_EQ, SIM_VALUE_AND, SIM_VALUE_NOR };

/* wide: 64 bits instead of 32. */
struct sim_command *sim_write_value_command(void *p, uint64_t value, bool wide);
struct sim_command *sim_wait_value_command(void *p, uint64_t value, uint64_t mask,
					   enum sim_value_condition condition, bool wide);

#endif

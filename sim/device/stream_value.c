/* SPDX-License-Identifier: MIT */
/* Commands that write a value to memory, or wait until memory holds one. */
#include <sched.h>
#include <time.h>

#include "device/command.h"
#include "device/stream_value.h"

static void run_write(struct sim_command *c)
{
	if (c->value.wide)
		__atomic_store_n((uint64_t *)c->value.ptr, c->value.value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)c->value.ptr, (uint32_t)c->value.value,
				 __ATOMIC_RELEASE);
}

static bool value_holds(const struct sim_command *c)
{
	uint64_t v, ref = c->value.value & c->value.mask;

	if (c->value.wide)
		v = __atomic_load_n((uint64_t *)c->value.ptr, __ATOMIC_ACQUIRE);
	else
		v = __atomic_load_n((uint32_t *)c->value.ptr, __ATOMIC_ACQUIRE);
	v &= c->value.mask;
	switch (c->value.condition) {
	case SIM_VALUE_GTE:
		return c->value.wide ? (int64_t)(v - ref) >= 0 :
				       (int32_t)((uint32_t)v - (uint32_t)ref) >= 0;
	case SIM_VALUE_EQ: return v == ref;
	case SIM_VALUE_AND: return (v & c->value.value) != 0;
	default: return (~(v | c->value.value) & c->value.mask) != 0;
	}
}

static void run_wait(struct sim_command *c)
{
	struct timespec ts = {0, 20000};

	for (int i = 0; !value_holds(c); i++)
		if (i < 8)
			sched_yield();
		else
			nanosleep(&ts, NULL);
}

struct sim_command *sim_write_value_command(void *p, uint64_t value, bool wide)
{
	struct sim_command *c = sim_command_new(SIM_CMD_WRITE_VALUE, run_write);

	c->value.ptr = p;
	c->value.value = value;
	c->value.wide = wide;
	return c;
}

struct sim_command *sim_wait_value_command(void *p, uint64_t value, uint64_t mask,
					   enum sim_value_condition condition, bool wide)
{
	struct sim_command *c = sim_command_new(SIM_CMD_WAIT_VALUE, run_wait);

	c->value.ptr = p;
	c->value.value = value;
	c->value.mask = mask;
	c->value.condition = condition;
	c->value.wide = wide;
	return c;
}

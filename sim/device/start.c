/* SPDX-License-Identifier: MIT */
/* The start of the device at its first use, and what a fork does to it. */
#include <pthread.h>
#include <stdatomic.h>

#include "device/calls.h"
#include "device/start.h"

static atomic_bool started, dead;
void (*sim_on_start)(void);

bool sim_started(void)
{
	return atomic_load(&started);
}

bool sim_is_dead(void)
{
	return atomic_load(&dead);
}

void sim_start(void)
{
	/* The mark comes first: a fork in the middle of the start counts as one after it. */
	atomic_store(&started, true);
	if (sim_on_start)
		sim_on_start();
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		atomic_fetch_and(&sim_call_special[i], (unsigned char)~SIM_CALL_STARTS);
}

static void after_fork_in_child(void)
{
	if (!sim_started())
		return;
	atomic_store(&dead, true);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		atomic_store(&sim_call_special[i], SIM_CALL_DEAD);
}

/* ---- test control, found by dlsym ---- */

int somasim_started(void);

int somasim_started(void)
{
	return sim_started();
}

__attribute__((constructor(102))) static void start_init(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

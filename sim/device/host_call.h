/* SPDX-License-Identifier: MIT */
/* Commands that call a function of the program. */
#ifndef SIM_HOST_CALL_H
#define SIM_HOST_CALL_H

/* fn runs on a thread of its own, one for all queues; the queue waits for it. */
struct sim_command *sim_host_command(void (*fn)(void *arg), void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/* Device page faults. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>

/* Prints the fault and ends the process. */
void sim_fault(const void *addr, const char *who, const char *why) __attribute__((noreturn));

/* `fn` is told of a fault before the process ends; true: it has said all that there is to say. */
void sim_fault_tell(bool (*fn)(const void *addr));

/* The name of the device work that this thread executes; NULL: none. It tells a fault of device
 * work from one of the program, and names it. */
extern __thread const char *sim_device_work __attribute__((tls_model("initial-exec")));

/* Installs the signal handlers, once. Only a process that reserves address space, or wants to be
 * told of faults, needs them. */
void sim_watch_faults(void);

#endif

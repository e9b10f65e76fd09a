/* SPDX-License-Identifier: MIT */
/* Quirk host-no-access: the host has no access to mapped memory unless it was given some. */
#ifndef SIM_HOST_ACCESS_H
#define SIM_HOST_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Device work can load and store in [p, p + size), and the host if `host`, or without the quirk. */
void sim_host_access(void *p, size_t size, bool host);

/* Around device work of this thread. `who`: its name, for a fault. */
void sim_work_begin(const char *who);
void sim_work_end(void);

#endif

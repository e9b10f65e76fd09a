/* SPDX-License-Identifier: MIT */
/* Device variables of code objects. */
#ifndef SIM_HIP_VARIABLE_H
#define SIM_HIP_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Adds a variable. A managed one has host memory, which is given; others get device memory at
 * their first use on a device. */
void variable_add(const void *host, const char *name, size_t size, void *managed);

/* The variable's address on the current device, and its size. NULL: unknown, or no memory. */
void *variable_address(const void *host, size_t *size);

/* The host address of the variable of that name, or NULL. */
const void *variable_named(const char *name);

#endif

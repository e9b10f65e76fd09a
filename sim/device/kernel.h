/* SPDX-License-Identifier: MIT */
/*
 * Kernels. Code objects are not executed: a kernel runs the host function
 * somasim_kernel_<name> if the process exports one, or a body that a test registered, and
 * does nothing otherwise. Kernels are never freed. All functions are thread-safe.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

struct sim_command;
struct sim_kernel;

/* Gives a name to the kernel behind a host function's address. */
void sim_kernel_register(const void *host, const char *name);

/* The kernel behind an address, or NULL: it was not registered. */
struct sim_kernel *sim_kernel_at(const void *host);

/* The kernel of that name of any module. */
struct sim_kernel *sim_kernel_named(const char *name);

/* NULL if it has none. */
const char *sim_kernel_name(const struct sim_kernel *k);

/* The command that launches a kernel; dims are grid and block. Arguments are copied: `packed`,
 * a buffer of size bytes, if it is not NULL, or else the values that args points to. */
struct sim_command *sim_kernel_command(struct sim_kernel *k, const uint32_t dims[6], void **args,
				       const void *packed, size_t size);

#endif

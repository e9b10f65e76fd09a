/* SPDX-License-Identifier: MIT */
/* Launches of kernels. */
#ifndef SIM_HIP_LAUNCH_H
#define SIM_HIP_LAUNCH_H

#include <stdint.h>

#include <hip/hip_runtime_api.h>

struct sim_command;

/* The command that launches a kernel. NULL with *e set: the call is wrong. */
struct sim_command *launch_command(const void *func, dim3 grid, dim3 block, void **args,
				   void **extra, hipError_t *e);

#endif

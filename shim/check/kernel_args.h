/* SPDX-License-Identifier: MIT */
/*
 * The arguments of kernels. Their layout comes from the metadata of the code object that the kernel
 * is in: of all files that are loaded (section .hip_fatbin), and of what the program loads as
 * modules. A kernel is found by its name, which the runtime knows. Any thread.
 */
#ifndef SS_SHIM_CHECK_KERNEL_ARGS_H
#define SS_SHIM_CHECK_KERNEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word of an argument. */
struct ss_kernel_word {
	const void *value;
	bool pointer;       /* an argument of pointer type; else eight bytes that may be one */
	bool reads, writes; /* of one of pointer type, as the metadata says */
	bool sole;          /* the only pointer of which that is so */
	const char *kernel; /* its name, which stays */
	uint32_t argument;  /* from 1 */
	uint32_t at;        /* bytes from its start */
};

/* Is this the address of a host function that stands for a kernel? */
bool ss_kernel_is_host(const void *function);
/* Calls `fn` for each word of the arguments that may be a pointer. `function` is what was launched;
 * `host`: the address of a host function, else a hipFunction_t. `args` is the array of addresses of
 * arguments, or `extra` what hipModuleLaunchKernel takes in its place. False: the layout is not
 * known, and `fn` was not called. */
bool ss_kernel_args(const void *function, bool host, void *const *args, void *const *extra,
		    void (*fn)(const struct ss_kernel_word *word, void *arg), void *arg);

#endif

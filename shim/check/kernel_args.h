/* SPDX-License-Identifier: MIT */
/*
 * The arguments of kernels. Their layout comes from the metadata of the kernel's code object: in
 * all loaded files (section .hip_fatbin), and in the modules that the program loads. A kernel is
 * found by its name, which the runtime knows. Any thread.
 */
#ifndef SS_SHIM_CHECK_KERNEL_ARGS_H
#define SS_SHIM_CHECK_KERNEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word of an argument. */
struct ss_kernel_word {
	const void *value;
	/* An argument of pointer type that the code uses; else eight bytes that may be one */
	bool pointer;
	bool reads, writes; /* access of an argument of pointer type, from the metadata */
	bool sole;          /* the only pointer with this access */
	const char *kernel; /* its name, which stays */
	uint32_t argument;  /* from 1 */
	uint32_t at;        /* bytes from its start */
};

/* Is this the address of a host function that represents a kernel? */
bool ss_kernel_is_host(const void *function);
/* Calls `fn` for each word of the arguments that may be a pointer. `function` is the launched
 * kernel; `host`: the address of a host function, else a hipFunction_t. `args` is the array of
 * addresses of arguments. `extra` is the alternative of hipModuleLaunchKernel. False: the layout is
 * unknown, and `fn` was not called. */
bool ss_kernel_args(const void *function, bool host, void *const *args, void *const *extra,
		    void (*fn)(const struct ss_kernel_word *word, void *arg), void *arg);

#endif

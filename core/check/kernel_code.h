/* SPDX-License-Identifier: MIT */
/* Which arguments does the code of a kernel load? The metadata has the arguments that the source
 * declares, used or not. The input may be any bytes. */
#ifndef SS_CHECK_KERNEL_CODE_H
#define SS_CHECK_KERNEL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_ARGUMENT_WORDS 1024 /* of four bytes; no kernel has more */

/* The words of the arguments that the code loads. */
struct kernel_loads {
	bool word[KERNEL_ARGUMENT_WORDS];
};

/* Finds the code of a kernel in an ELF file, and the loads in it. A load that uses the address of
 * the arguments in another way is not found. False: there is no such code, or no load. */
bool kernel_code_read(const uint8_t *elf, size_t size, const char *name, size_t length,
		      struct kernel_loads *out);
/* Does it load some of these bytes? */
bool kernel_code_loads(const struct kernel_loads *loads, uint32_t offset, uint32_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* Which arguments does the code of a kernel load? The metadata has the arguments that the source
 * declares, used or not. The input may be any bytes. */
#ifndef SS_CHECK_KERNEL_CODE_H
#define SS_CHECK_KERNEL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_code {
	const uint8_t *at;
	size_t size;
	unsigned base; /* the first of the two registers with the address of the arguments */
};

/* Finds the code of a kernel in an ELF file. */
bool kernel_code_find(const uint8_t *elf, size_t size, const char *name, size_t length,
		      struct kernel_code *out);
/* Is there a load of some of the bytes [from, to) of the arguments? Loads that use the address in
 * another way are not found. */
bool kernel_code_loads(const struct kernel_code *code, uint32_t from, uint32_t to);

#endif

/* SPDX-License-Identifier: MIT */
/* A library whose kernels nobody launches. */
#include <stddef.h>

#include "own_code.h"

void **__hipRegisterFatBinary(const void *image);

/* As a compiler's code does, it asks the runtime for this function. */
int own_code_library(void);
__attribute__((visibility("default"))) int own_code_library(void)
{
	static const int image;

	return __hipRegisterFatBinary(&image) != NULL;
}

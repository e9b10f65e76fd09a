/* SPDX-License-Identifier: MIT */
/* Code objects, and the bundles, packed or not, that they come in. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check/code_object.h"
#include "shim/check/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv);

static volatile uint64_t sum;

static void look(const struct ss_kernel_layout *k, void *unused)
{
	(void)unused;
	for (size_t i = 0; i < k->name_size; i++)
		sum += (uint64_t)k->name[i];
	if (k->count > SS_KERNEL_ARGS_MAX)
		abort();
	for (uint32_t i = 0; i < k->count; i++)
		sum += k->arg[i].offset;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ss_unpack_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1); /* so that its end is known */

	if (!exact)
		abort();
	memcpy(exact, data, size);
	(void)ss_code_object_read(exact, size, ss_unpack, look, NULL);
	free(exact);
	return 0;
}

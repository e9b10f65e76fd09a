/* SPDX-License-Identifier: MIT */
/* The layouts of kernels. Nothing reads the metadata of code objects yet, so none is known. */
#include "shim/check/kernel_args.h"

bool ss_kernel_args(const void *function, void *const *args, void *const *extra,
		    void (*fn)(enum ss_kernel_word word, const void *value, void *arg), void *arg)
{
	return false;
}

/* SPDX-License-Identifier: MIT */
/* Unpacks code with the libraries of the system, if it has them. */
#ifndef SS_SHIM_CHECK_UNPACK_H
#define SS_SHIM_CHECK_UNPACK_H

#include "core/check/code_object.h"

/* Finds the libraries. Call it once, under no lock, since it takes the loader's lock. */
void ss_unpack_open(void);
/* An ss_unpack_fn. Any thread. */
bool ss_unpack(enum ss_packing how, const void *data, size_t size, void *out, size_t room);

#endif

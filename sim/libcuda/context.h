/* SPDX-License-Identifier: MIT */
/* cuInit and contexts. */
#ifndef SIM_LIBCUDA_CONTEXT_H
#define SIM_LIBCUDA_CONTEXT_H

#include <stdbool.h>

#include "cuda/driver_types.h"

bool initialized(void);

/* 201: the thread has no current context; 709: it is gone. */
CUresult context_missing(void);

/* module.c: the context of the device ends, and its modules with it. */
void modules_end(int device);

#endif

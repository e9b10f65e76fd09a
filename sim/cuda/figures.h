/* SPDX-License-Identifier: MIT */
/* What a process took of the device, printed at its end if SOMACUDA_STATS is 1. */
#ifndef SIM_CUDA_FIGURES_H
#define SIM_CUDA_FIGURES_H

#include "cuda/driver.h"

/* The first context starts the figures; c is current in the calling thread. */
void figures_start(CUcontext c);

#endif
